"""The NVRTC stand-in, and what the CUDA stand-in finds in kernels: barriers, races, undefined behaviour. No tack in it."""

from __future__ import annotations

import ctypes
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "simulators"))

import standins
from cuda_client import CompileError, Gpu, Nvrtc, byref, c_float, c_int, c_longlong, c_size_t, c_uint, c_ulonglong, c_void_p, in_process

try:
    standins.compiler()
except standins.Unavailable as missing:
    pytest.skip(str(missing), allow_module_level=True)

GROUP = """
extern "C" __global__ void k(float* out, const float* in) {
  __shared__ float s[64], t[2][32];
  s[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x < half) s[threadIdx.x] += s[threadIdx.x + half];
    __syncthreads();
  }
  t[threadIdx.x / 32][threadIdx.x % 32] = s[0];
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = t[threadIdx.x / 32][(threadIdx.x + 1) % 32];
}
extern "C" __global__ void dynamic(int* out, int n) {
  extern __shared__ int d[];
  d[threadIdx.x] = n;
  __syncthreads();
  out[threadIdx.x] = d[blockDim.x - 1 - threadIdx.x];
  const int k = __syncthreads_count(threadIdx.x < 3);
  if (threadIdx.x == 0) out[0] = k;
}
"""


def program_groups() -> None:
    gpu = Gpu()
    module = gpu.module(gpu.nvrtc.compile(GROUP))
    out, data = gpu.alloc(512), gpu.upload([float(i % 7) for i in range(128)])
    gpu.launch(gpu.function(module, "k"), 2, 64, out, data)
    sums = [float(sum(i % 7 for i in range(b * 64, b * 64 + 64))) for b in (0, 1)]
    assert gpu.download(out, 128) == [sums[0]] * 64 + [sums[1]] * 64
    numbers = gpu.alloc(400)
    gpu.launch(gpu.function(module, "dynamic"), 1, (10, 1, 1), numbers, c_int(6), shared=40)
    assert gpu.download(numbers, 10, c_int) == [3, *[6] * 9]
    assert gpu.reports() == []
    gpu.launch(gpu.function(module, "dynamic"), 1, 10, numbers, c_int(6), shared=36)
    assert gpu.outcome() == "ILLEGAL_ADDRESS"
    assert "past the launch's dynamic shared memory" in gpu.reports()[-1]


@pytest.mark.parametrize("order", ["lazy", "delayed"])
def test_groups_meet_at_barriers(order: str) -> None:
    in_process(program_groups, order=order)


BAD = {
    "divergent": ("if (threadIdx.x < 3) { __syncthreads(); } else { __syncthreads(); }", "divergent barriers"),
    "missing": (
        "if (threadIdx.x < 3) __syncthreads();",
        "a barrier that not all threads of the block reach: 3 of 8 threads wait at it, 5 have ended",
    ),
    "race": (
        "s[threadIdx.x] = 1; p[threadIdx.x] = s[(threadIdx.x + 1) % 8];",
        "shared memory is read that no thread of the block has written",
    ),
    "read": ("s[threadIdx.x] = 1; __syncthreads(); s[0] = p[0]; p[threadIdx.x] = s[0];", "race in shared memory: thread"),
    "write": ("s[threadIdx.x / 2] = 1;", "race in shared memory: thread 0 and thread 1 write the same bytes with no barrier between"),
    "atomic": ("if (threadIdx.x == 0) s[0] = 1; __syncthreads(); atomicAdd(&s[0], 1.0f); p[0] = s[0];", "race in shared memory: thread"),
    "volatile": ("if (threadIdx.x == 0) s[0] = 1; __syncthreads(); s[0] += *(volatile float*)&s[0];", "race in shared memory: thread"),
    "unwritten": ("if (threadIdx.x < 4) s[threadIdx.x] = 1; __syncthreads(); p[0] = s[7];", "shared memory is read that no thread"),
    "divide": ("p[0] = 1 / n;", "undefined behaviour"),
    "overflow": ("p[0] = n + 2147483647 + 1;", "undefined behaviour"),
    "shift": ("p[0] = 1 << (n + 32);", "undefined behaviour"),
    "float": ("p[0] = (int)(1e30f + p[0]);", "undefined behaviour"),
    "stack": ("p[0] = deep(n, p);", "the thread's stack is exhausted"),
    "assert": ("assert(n == 1);", "assertion failed: n == 1"),
    "trap": ("if (n == 0) __trap();", "the kernel called __trap()"),
    "lane": ("p[0] = __shfl_sync(1u, p[0], 0);", "a lane that its mask leaves out"),
    "endless": ("while (n < 1) p[0] = n;", "it takes more than 1 seconds (TACK_SIM_TIMEOUT)"),
    "texture": ("p[0] = tex3D<float>(17, 0.f, 0.f, 0.f);", "samples a texture object that does not exist"),
}
RESULTS = {"endless": "702", "assert": "ASSERT", "trap": "715", "stack": "ILLEGAL_ADDRESS", "texture": "ILLEGAL_ADDRESS"}
FRAME = """
__device__ __noinline__ float deep(int n, float* p) {{
  float big[5000];
  for (int i = 0; i < 5000; i++) big[i] = p[0] + i;
  return n > 100000 ? 0.0f : deep(n + 1, big) + big[n % 5000];
}}
extern "C" __global__ void k(float* p, int n) {{
  __shared__ float s[8];
  {body}
}}
"""


def program_bad() -> None:
    gpu = Gpu()
    body, report = BAD[os.environ["CASE"]]
    gpu.launch(gpu.kernel(FRAME.format(body=body)), 1, 8, gpu.upload([0.0] * 8), c_int(0))
    assert gpu.outcome() == RESULTS.get(os.environ["CASE"], "LAUNCH_FAILED"), gpu.reports()
    assert len(gpu.reports()) == 1
    assert gpu.reports()[0].startswith("kernel k, block (0, 0, 0), thread (")
    assert report in gpu.reports()[0], gpu.reports()


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_in_a_kernel_is_reported(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASE", case)
    in_process(program_bad, check=1, undefined=1, timeout=1)


GOOD = """
__constant__ float table[4] = {1, 2, 4, 8};
struct Pair { long long a; float b; };
static __device__ __forceinline__ float twice(float x) { return x + x; }
extern "C" __global__ void k(float* p, Pair pair, double d, unsigned char c, bool flag, short s) {
  __shared__ float counts[2];
  if (threadIdx.x < 2) counts[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&counts[threadIdx.x % 2], 0.5f);  // atomics do not race with atomics
  int* word = (int*)&counts[threadIdx.x % 2];  // nor do volatile reads, as in the programming guide's loops
  for (int seen = *(volatile int*)word, next; true; seen = next) {
    next = atomicCAS(word, seen, __float_as_int(__int_as_float(seen) + 0.5f));
    if (next == seen) break;
  }
  __syncthreads();
  p[threadIdx.x] = *(volatile float*)&counts[0] + counts[0];  // nor do reads of two kinds
  float local[8];
  for (int i = 0; i < 8; i++) local[i] = table[i % 4] * i;
  const float sum = __shfl_xor_sync(0xffu, counts[0] + threadIdx.x, 1);
  if (threadIdx.x == 3) {
    p[0] = pair.a + pair.b;
    p[1] = d + c + flag + s;
    p[2] = twice(local[5]);
    p[3] = counts[1];
    p[4] = sum;
    p[5] = __float_as_int(1.0f) == 0x3f800000 && __popc(255u) == 8 && __clz(1) == 31 && __ffs(8) == 4 && __mulhi(1 << 30, 8) == 2;
    p[6] = __float2int_rz(1e20f) == 2147483647 && __float2int_rz(nanf("")) == 0 && __float2int_rn(2.5f) == 2;
    p[7] = __umul64hi(1ull << 63, 6) + min(1u, 2) + max(1.0f, 2.0) + rsqrtf(4.0f);
  }
}
"""


def program_builtins() -> None:
    class Pair(ctypes.Structure):
        _fields_ = [("a", c_longlong), ("b", c_float)]

    gpu = Gpu()
    module, p = gpu.module(gpu.nvrtc.compile(GOOD)), gpu.upload([0.0] * 8)
    k = gpu.function(module, "k")
    gpu.launch(k, 1, 8, p, Pair(40, 2), ctypes.c_double(0.5), ctypes.c_ubyte(200), ctypes.c_bool(True), ctypes.c_short(-1))
    assert gpu.download(p, 8) == [42, 200.5, 20, 4, 6, 1, 1, 3 + 1 + 2 + 0.5]
    assert gpu.reports() == []
    # The same arguments in one buffer, each at its own alignment.
    packed = (ctypes.c_char * 40)()
    c_ulonglong.from_buffer(packed, 0).value = p
    Pair.from_buffer(packed, 8).a, Pair.from_buffer(packed, 8).b = 10, 5
    ctypes.c_double.from_buffer(packed, 24).value = 1
    ctypes.c_ubyte.from_buffer(packed, 32).value = 2
    ctypes.c_short.from_buffer(packed, 34).value = 3
    size = c_size_t(36)
    extra = (c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), 0)
    gpu.call("cuLaunchKernel", k, *(c_uint(n) for n in (1, 1, 1, 8, 1, 1, 0)), None, None, extra)
    assert gpu.download(p, 2) == [15, 6]


def test_builtins_and_arguments() -> None:
    in_process(program_builtins)


TEXTURE = """
extern "C" __global__ void k(float* out, cudaTextureObject_t t, const float* at, int n) {
  for (int i = 0; i < n; i++) out[i] = tex3D<float>(t, at[3 * i], at[3 * i + 1], at[3 * i + 2]);
}
"""


class ArrayDescription(ctypes.Structure):
    _fields_ = [("width", c_size_t), ("height", c_size_t), ("depth", c_size_t), ("format", c_int), ("channels", c_uint), ("flags", c_uint)]


class Side(ctypes.Structure):
    _fields_ = [
        *((name, c_size_t) for name in ("x", "y", "z", "level")),
        ("kind", c_uint),
        *((name, c_void_p) for name in ("host", "device", "array", "reserved")),
        ("pitch", c_size_t),
        ("height", c_size_t),
    ]


class Copy3D(ctypes.Structure):
    _fields_ = [("source", Side), ("target", Side), ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t)]


class Resource(ctypes.Structure):
    _fields_ = [("kind", c_int), ("array", c_void_p), ("rest", c_int * 30), ("flags", c_uint)]


class TextureDescription(ctypes.Structure):
    _fields_ = [
        ("address", c_int * 3),
        ("filter", c_int),
        ("flags", c_uint),
        ("anisotropy", c_uint),
        ("mipmap_filter", c_int),
        ("levels", c_float * 3),
        ("border", c_float * 4),
        ("reserved", c_int * 12),
    ]


def make_texture(gpu: Gpu, values: list[float], width: int, height: int, depth: int, **more: Any) -> tuple[c_void_p, c_ulonglong]:
    array, texture = c_void_p(), c_ulonglong()
    gpu.call("cuArray3DCreate_v2", byref(array), byref(ArrayDescription(width, height, depth, 0x20, 1, 0)))
    source = (c_float * len(values))(*values)
    copy = Copy3D(width=4 * width, height=height, depth=depth)
    copy.source.kind, copy.source.host = 1, ctypes.addressof(source)
    copy.source.pitch, copy.source.height = 4 * width, height
    copy.target.kind, copy.target.array = 3, array.value
    gpu.call("cuMemcpy3D_v2", byref(copy))
    gpu.call("cuTexObjectCreate", byref(texture), byref(Resource(0, array.value)), byref(TextureDescription(**more)), None)
    return array, texture


def program_textures() -> None:
    gpu = Gpu()
    k, out = gpu.kernel(TEXTURE), gpu.alloc(400)

    def sample(texture: c_ulonglong, points: list[tuple[float, float, float]]) -> list[float]:
        gpu.launch(k, 1, 1, out, texture, gpu.upload([c for p in points for c in p]), c_int(len(points)))
        return gpu.download(out, len(points))

    width, height, depth = 4, 3, 2
    values = [float(x + 10 * y + 100 * z) for z in range(depth) for y in range(height) for x in range(width)]
    array, linear = make_texture(gpu, values, width, height, depth, address=(c_int * 3)(1, 1, 1), filter=1)
    centre = [(x + 0.5, y + 0.5, z + 0.5) for z in range(depth) for y in range(height) for x in range(width)]
    assert sample(linear, centre) == values
    # Between texels: weights have 8 bits; outside, the last texel.
    assert sample(linear, [(1.0, 0.5, 0.5), (0.5, 1.0, 0.5), (0.5, 0.5, 1.0), (1.0, 1.0, 1.0)]) == [0.5, 5, 50, 55.5]
    assert sample(linear, [(0.5 + 1 / 1024, 0.5, 0.5), (0.5 + 3 / 1024, 0.5, 0.5)]) == [0, 1 / 256]
    assert sample(linear, [(-5, -5, -5), (99, 99, 99), (3.9, 0.5, 0.5)]) == [0, 123, 3]
    _, border = make_texture(gpu, values, width, height, depth, address=(c_int * 3)(3, 3, 3), filter=1, border=(c_float * 4)(-8))
    assert sample(border, [(0.0, 0.5, 0.5), (-1.0, 0.5, 0.5), (0.5, 0.5, 0.5)]) == [-4, -8, 0]
    _, wrapped = make_texture(gpu, values, width, height, depth, address=(c_int * 3)(0, 2, 1), filter=0, flags=2)
    assert sample(wrapped, [(1.125, 0.2, 0.2), (-0.125, 0.2, 0.2), (0.2, 1.1, 0.2), (0.2, -0.1, 0.2)]) == [0, 3, 20, 0]
    gpu.call("cuTexObjectDestroy", linear)
    gpu.call("cuArrayDestroy", array)
    assert gpu.result("cuArrayDestroy", array) == "INVALID_HANDLE"
    counters = gpu.counters()["counters"]
    assert (counters["textures"], counters["arrays"]) == (2, 2)


def test_textures_are_sampled_as_documented() -> None:
    in_process(program_textures)


def program_compiler() -> None:
    nvrtc = Nvrtc()

    def log(text: str, *options: str, **more: Any) -> tuple[int, str]:
        with pytest.raises(CompileError) as caught:
            nvrtc.compile(text, *options, **more)
        return caught.value.args[0], caught.value.args[1]

    def body(statement: str) -> str:
        return f'extern "C" __global__ void k(float* p) {{\n#line 42 "user.py"\n  {statement}\n}}\n'

    # What NVRTC does not know without an include does not compile here either.
    for name in (
        "int64_t x = 0",
        "uint32_t x = 0",
        "uint x = 0",
        "p[0] = INFINITY",
        "p[0] = INT_MAX",
        "p[0] = __builtin_sinf(p[0])",
        "p[0] = __INT_MAX__",
    ):
        result, text = log(body(name + ";"))
        word = next(w for w in ("int64_t", "uint32_t", "uint", "INFINITY", "__INT_MAX__", "INT_MAX", "__builtin_sinf") if w in name)
        assert result == 6
        assert f'error: identifier "{word}" is undefined' in text, text
        assert '1 error detected in the compilation of "kernel.py".' in text or "__builtin" in word, text
    for wrong in (
        "#include <stdint.h>",
        "std::size_t x;",
        "__int128 x = 0;",
        "int n = p[0]; int a[n];",
        "atomicAdd((long long*)p, 1ll);",
        "typeof(p) q;",
    ):
        assert log(body("\n" + wrong + "\n"))[0] == 6, wrong
    assert 'user.py(42): error: identifier "nothing" is undefined' in log(body("nothing(p);"))[1]
    for right in (
        "size_t x = 0; p[x] = sizeof(long) == 8;",
        "p[0] = min(1.0f, 2.0);",
        "const dim3 d(1, 2); p[0] = d.z;",
        'printf("%d", 1);',
    ):
        nvrtc.compile(body(right))
    for option in ("--gpu-architecture=sm_52", "--nonsense", "--fmad=maybe", "-std=c++98"):
        assert log(body(""), option)[0] == 5, option
    nvrtc.compile(body("p[0] = N;"), "-DN=3", "--std=c++20", "-default-device", "-lineinfo")
    # Kernels that are templates, by name expressions.
    program, lowered = c_void_p(), ctypes.c_char_p()
    source = b"template <class T> __global__ void twice(T* p) { p[threadIdx.x] += p[threadIdx.x]; }"
    library = nvrtc.library
    assert library.nvrtcCreateProgram(byref(program), source, None, 0, None, None) == 0
    assert library.nvrtcAddNameExpression(program, b"twice<float>") == 0
    assert library.nvrtcGetLoweredName(program, b"twice<float>", byref(lowered)) == 9
    assert library.nvrtcCompileProgram(program, 0, None) == 0
    assert library.nvrtcGetLoweredName(program, b"twice<float>", byref(lowered)) == 0
    assert library.nvrtcDestroyProgram(byref(program)) == 0
    assert lowered.value


def test_the_compiler_takes_what_nvrtc_takes() -> None:
    in_process(program_compiler)


CONTRACTED = 'extern "C" __global__ void k(float* p) { p[0] = p[0] * p[1] + p[2]; }'


def program_contraction() -> None:
    gpu = Gpu()
    x = 1 + 2.0**-12
    values = [x, x, -(x * x - 2.0**-24)]  # the product is inexact by 2^-24
    fused, apart = gpu.upload(values), gpu.upload(values)
    gpu.launch(gpu.kernel(CONTRACTED, "k", "--fmad=true"), 1, 1, fused)
    gpu.launch(gpu.kernel(CONTRACTED), 1, 1, apart)
    assert (gpu.download(fused, 1), gpu.download(apart, 1)) == ([2.0**-24], [0.0])


def test_contraction_is_on_unless_switched_off() -> None:
    in_process(program_contraction)


def program_compile_once() -> None:
    Nvrtc().compile(f'extern "C" __global__ void k(float* p) {{ p[0] = {os.environ["NUMBER"]}.0f; }}')


def test_compiles_of_many_processes_at_once_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBER", "77")
    with ThreadPoolExecutor(4) as pool:
        ended = [task.result() for task in [pool.submit(in_process, program_compile_once, cache=tmp_path) for _ in range(4)]]
    assert [e.counters["libnvrtc"]["calls"]["nvrtcCompileProgram"] for e in ended] == [1] * 4
    assert len(list(tmp_path.iterdir())) == 1

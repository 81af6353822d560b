"""AMD's compilers, for tests: the real hipRTC, and clang for architectures that it does not know. No GPU is needed.

hipRTC runs in a process of its own (this file as a program), as the one of ROCm 5.2 ends the process for what it does not take.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

if __name__ != "__main__":
    from unit import units
    from unit.nvrtc import joined

# As in cpp/src/backends/hip/hiprtc.cpp.
OPTIONS = (
    "-std=c++17",
    "-O3",
    "-ffp-contract=off",
    "-fhip-fp32-correctly-rounded-divide-sqrt",
    "-fno-gpu-flush-denormals-to-zero",
    "-mno-unsafe-fp-atomics",
)


@functools.cache
def library() -> str | None:
    """The name of the library that has hipRTC (Debian 12: libamdhip64-5, which needs libhiprtc-builtins5), or None."""
    return ctypes.util.find_library("hiprtc") or ctypes.util.find_library("amdhip64")


def compile_texts(texts: Sequence[str], arch: str, options: Sequence[str] = OPTIONS) -> list[tuple[int, str, bytes]]:
    """Of each text hipRTC's result, log and code, which is empty where it was refused. Raises AssertionError where the process died."""
    command = [sys.executable, __file__]
    request = json.dumps({"library": library(), "options": [f"--offload-arch={arch}", *options], "texts": list(texts)})
    done = subprocess.run(command, input=request, capture_output=True, text=True)
    assert done.returncode == 0, f"hipRTC's process ended with {done.returncode} for {arch}: {done.stderr[-500:]}"
    return [(result, log, bytes.fromhex(code)) for result, log, code in json.loads(done.stdout)]


def refused(texts: Sequence[str], arch: str, options: Sequence[str] = OPTIONS) -> list[str]:
    """What hipRTC says about those texts that it refuses."""

    def said(unit: Sequence[str]) -> str:
        ((code, log, binary),) = compile_texts([joined(unit)], arch, options)
        return "" if code == 0 and binary else f"{arch}: {log or 'refused'}"

    return units.refused(texts, said, size=100_000)  # each in a process of its own


# What hipRTC's own header would bring, of what printed kernels use: in terms of clang's builtins, exactly the types that HIP 5.2 has.
PRELUDE = """
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
struct tack_index { unsigned x, y, z; };
#define threadIdx (tack_index{__builtin_amdgcn_workitem_id_x(), 0, 0})
#define blockIdx (tack_index{__builtin_amdgcn_workgroup_id_x(), 0, 0})
#define blockDim (tack_index{__builtin_amdgcn_workgroup_size_x(), 1, 1})
#define D static __device__ inline
D void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define sqrtf __builtin_sqrtf
#define floorf __builtin_floorf
#define ceilf __builtin_ceilf
#define truncf __builtin_truncf
#define rintf __builtin_rintf
#define fabsf __builtin_fabsf
#define copysignf __builtin_copysignf
#define fmaf __builtin_fmaf
#define sqrt __builtin_sqrt
#define floor __builtin_floor
#define ceil __builtin_ceil
#define trunc __builtin_trunc
#define rint __builtin_rint
#define fabs __builtin_fabs
#define copysign __builtin_copysign
#define fma __builtin_fma
D int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
D unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
D float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
D float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
D long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
D double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
D int __popc(unsigned x) { return __builtin_popcount(x); }
D int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
D int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
D int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
D long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
D unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
#define ATOMIC(name, builtin, T) \\
  D T name(T* p, T v) { return __hip_atomic_##builtin(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
#define INTEGERS(name, builtin) ATOMIC(name, builtin, int) ATOMIC(name, builtin, unsigned) ATOMIC(name, builtin, unsigned long long)
INTEGERS(atomicAdd, fetch_add)
ATOMIC(atomicAdd, fetch_add, float)
ATOMIC(atomicAdd, fetch_add, double)
INTEGERS(atomicMin, fetch_min)
INTEGERS(atomicMax, fetch_max)
INTEGERS(atomicAnd, fetch_and)
INTEGERS(atomicOr, fetch_or)
INTEGERS(atomicXor, fetch_xor)
INTEGERS(atomicExch, exchange)
ATOMIC(atomicExch, exchange, float)
#define CAS(T) \\
  D T atomicCAS(T* p, T compare, T v) { \\
    __hip_atomic_compare_exchange_strong(p, &compare, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); \\
    return compare; \\
  }
CAS(int) CAS(unsigned) CAS(unsigned long long)
#undef D
#if !__HIP_NO_IMAGE_SUPPORT
struct tack_texture;
typedef tack_texture* hipTextureObject_t;
template <class T> __device__ T tex3D(hipTextureObject_t texture, float x, float y, float z);
template <> __device__ inline float tex3D<float>(hipTextureObject_t texture, float x, float y, float z) {
  typedef int eight __attribute__((ext_vector_type(8)));
  typedef int four __attribute__((ext_vector_type(4)));
  typedef float three __attribute__((ext_vector_type(3)));
#define AT(T, n) (*(const __attribute__((address_space(4))) T*)((const __attribute__((address_space(4))) int*)texture + n))
  const three at = {x, y, z};
  float texel;
  asm volatile("image_sample %0, %1, %2, %3 dmask:0x1 dim:SQ_RSRC_IMG_3D\\n s_waitcnt vmcnt(0)"
               : "=v"(texel) : "v"(at), "s"(AT(eight, 0)), "s"(AT(four, 12)));
  return texel;
}
#endif
"""


# Accelerators without texture units: what samples by hardware is not printed for them, and would not compile.
WITHOUT_IMAGES = ("gfx90a", "gfx942")


def taken_by(arch: str, texts: Sequence[str]) -> list[str]:
    """The texts that may come to an architecture."""
    return [t for t in texts if arch not in WITHOUT_IMAGES or "hipTextureObject_t" not in t]


@functools.cache
def clang() -> str | None:
    """A clang that compiles HIP for new architectures, with its linker (Debian: clang-19 and lld-19), or None."""
    for version in range(25, 18, -1):
        if (found := shutil.which(f"clang++-{version}")) and shutil.which(f"ld.lld-{version}"):
            return found
    return None


def refused_by_clang(texts: Sequence[str], arch: str) -> list[str]:
    """What clang says about those texts that it refuses."""
    program = clang()
    assert program is not None
    with tempfile.TemporaryDirectory() as folder:
        prelude = Path(folder) / "prelude.h"
        prelude.write_text(PRELUDE, encoding="utf-8")
        command = [program, "-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}", "-nogpuinc", "-nogpulib"]
        command += [*(o for o in OPTIONS if o != "-O3"), "-O1", "-w", "-include", str(prelude), "-c", "-", "-o"]
        numbers = itertools.count()

        def said(unit: Sequence[str]) -> str:
            output = os.path.join(folder, f"{next(numbers)}.o")
            done = subprocess.run([*command, output], input=joined(unit), capture_output=True, text=True)
            return f"{arch}: {done.stderr or 'refused'}" if done.returncode != 0 else ""

        return units.refused(texts, said)


def _serve() -> None:
    """Compiles what stands on the standard input."""
    request = json.load(sys.stdin)
    lib = ctypes.CDLL(request["library"])
    options = (ctypes.c_char_p * len(request["options"]))(*(o.encode() for o in request["options"]))
    results = []
    for text in request["texts"]:
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        assert lib.hiprtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.hip", 0, None, None) == 0
        code = lib.hiprtcCompileProgram(program, len(options), options)
        lib.hiprtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value + 1)
        lib.hiprtcGetProgramLog(program, log)
        size.value = 0
        if code == 0:
            lib.hiprtcGetCodeSize(program, ctypes.byref(size))
        binary = ctypes.create_string_buffer(size.value)
        if code == 0:
            lib.hiprtcGetCode(program, binary)
        results.append((code, log.value.decode("utf-8", "replace"), binary.raw.hex()))
        lib.hiprtcDestroyProgram(ctypes.byref(program))
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    _serve()

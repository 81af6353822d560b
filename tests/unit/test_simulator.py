"""The CUDA driver stand-in against the driver's documented rules: devices, contexts, handles, memory, modules, faults. No tack in it."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "simulators"))

import standins
from cuda_client import DriverError, Gpu, byref, c_float, c_int, c_size_t, c_ulonglong, c_void_p, in_process

try:
    standins.compiler()
except standins.Unavailable as missing:
    pytest.skip(str(missing), allow_module_level=True)

ADD = """
extern "C" __global__ void __launch_bounds__(256) k(float* __restrict__ y, const float* __restrict__ x, long long n, float a) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = fmaf(a, x[i], y[i]);
}
"""
READ = 'extern "C" __global__ void k(float* out, const float* p, long long offset) { out[0] = p[offset]; }'


def program_a_kernel_runs() -> None:
    gpu = Gpu()
    k = gpu.kernel(ADD)
    x, y = gpu.upload(list(range(1000))), gpu.upload([1] * 1000)
    gpu.launch(k, 4, 256, y, x, 1000, c_float(2))
    assert gpu.download(y, 1000) == [1 + 2 * i for i in range(1000)]
    gpu.free(x)
    gpu.free(y)
    gpu.close()
    assert gpu.reports() == []


@pytest.mark.parametrize("order", ["lazy", "delayed"])
def test_a_kernel_runs_and_everything_is_counted(order: str) -> None:
    ended = in_process(program_a_kernel_runs, order=order)
    driver, compiler = ended.counters["libcuda"], ended.counters["libnvrtc"]
    assert driver["calls"]["cuLaunchKernel"] == driver["tallies"]["launches"] == 1
    assert {name: n for name, n in driver["counters"].items() if n} == {"left to their context": 1}, "the module went with its context"
    assert compiler["calls"]["nvrtcCompileProgram"] == 1
    assert compiler["counters"] == {"programs": 0}


def program_contexts() -> None:
    library = ctypes.CDLL(os.environ["TACK_LIBCUDA"])
    pointer = c_ulonglong()
    assert library.cuDeviceGetCount(byref(c_int())) == 3, "not initialized"
    assert library.cuMemAlloc_v2(byref(pointer), c_size_t(4)) == 3
    gpu = Gpu(current=False)
    assert gpu.result("cuMemAlloc_v2", byref(pointer), c_size_t(4)) == "INVALID_CONTEXT"
    assert gpu.result("cuCtxSynchronize") == "INVALID_CONTEXT"
    assert gpu.result("cuCtxPopCurrent_v2", None) == "INVALID_CONTEXT"
    assert gpu.result("cuCtxSetCurrent", c_void_p(1234)) == "INVALID_CONTEXT"

    def current() -> int | None:
        out = c_void_p()
        gpu.call("cuCtxGetCurrent", byref(out))
        return out.value

    assert current() is None
    second, own = Gpu(1, current=False), c_void_p()
    assert second.context.value != gpu.context.value
    gpu.call("cuCtxPushCurrent_v2", gpu.context)
    gpu.call("cuCtxPushCurrent_v2", second.context)
    device = c_int()
    gpu.call("cuCtxGetDevice", byref(device))
    assert (device.value, current()) == (1, second.context.value)
    gpu.call("cuCtxPopCurrent_v2", None)
    assert current() == gpu.context.value
    gpu.call("cuCtxCreate_v2", byref(own), 0, 0)
    assert current() == own.value not in (None, gpu.context.value)

    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(current()))
    thread.start()
    thread.join()
    assert seen == [None], "what is current is each thread's own"

    gpu.call("cuCtxDestroy_v2", own)
    assert current() == gpu.context.value
    assert gpu.result("cuCtxPushCurrent_v2", own) == "CONTEXT_IS_DESTROYED"

    # The primary context lives as long as it is retained.
    flags, active = ctypes.c_uint(), c_int()
    again = Gpu(current=False)
    assert again.context.value == gpu.context.value
    gpu.close()
    gpu.alloc(4)
    again.close()
    gpu.call("cuDevicePrimaryCtxGetState", 0, byref(flags), byref(active))
    assert active.value == 0
    assert gpu.result("cuMemAlloc_v2", byref(pointer), c_size_t(4)) == "CONTEXT_IS_DESTROYED"
    assert gpu.result("cuDevicePrimaryCtxRelease_v2", 0) == "INVALID_CONTEXT"
    assert gpu.result("cuDevicePrimaryCtxRetain", byref(own), 2) == "INVALID_DEVICE"
    assert gpu.counters()["counters"]["left to their context"] == 1


def test_contexts() -> None:
    in_process(program_contexts, devices=2)


def program_handles() -> None:
    gpu = Gpu()
    module = gpu.module(gpu.nvrtc.compile(ADD))
    k = gpu.function(module, "k")
    assert gpu.result("cuModuleGetFunction", byref(c_void_p()), module, b"other") == "NOT_FOUND"
    gpu.call("cuModuleUnload", module)
    assert gpu.result("cuModuleUnload", module) == "INVALID_HANDLE"
    with pytest.raises(DriverError, match="INVALID_HANDLE"):
        gpu.launch(k, 1, 1, 0, 0, 0, c_float(0))
    stream, event = gpu.stream(), gpu.event()
    gpu.call("cuEventRecord", event, stream)
    gpu.call("cuStreamDestroy_v2", stream)
    gpu.call("cuEventDestroy_v2", event)
    assert gpu.result("cuStreamSynchronize", stream) == "INVALID_HANDLE"
    assert gpu.result("cuEventQuery", event) == "INVALID_HANDLE"
    assert gpu.result("cuEventRecord", gpu.event(), stream) == "INVALID_HANDLE"
    other = Gpu(1)
    assert gpu.result("cuStreamSynchronize", c_void_p()) == "SUCCESS"
    there = other.stream()
    gpu.call("cuCtxSetCurrent", gpu.context)
    assert gpu.result("cuStreamSynchronize", there) == "INVALID_HANDLE", "a stream of another context"


def test_handles_end_with_their_objects() -> None:
    in_process(program_handles, devices=2)


class Copy2D(ctypes.Structure):
    _fields_ = [
        (side + name, kind)
        for side in ("source", "target")
        for name, kind in (
            ("x", c_size_t),
            ("y", c_size_t),
            ("kind", ctypes.c_uint),
            ("host", c_void_p),
            ("device", c_ulonglong),
            ("array", c_void_p),
            ("pitch", c_size_t),
        )
    ] + [("width", c_size_t), ("height", c_size_t)]


def program_memory() -> None:
    gpu = Gpu()
    assert gpu.result("cuMemAlloc_v2", byref(c_ulonglong()), c_size_t(0)) == "INVALID_VALUE"
    p = gpu.alloc(40)
    assert p % 256 == 0
    assert gpu.download(p, 40, ctypes.c_ubyte) == [0xCB] * 40, "new memory is not zero"
    gpu.call("cuMemsetD8Async", c_ulonglong(p), ctypes.c_ubyte(7), c_size_t(40), None)
    gpu.call("cuMemsetD32Async", c_ulonglong(p + 4), ctypes.c_uint(0x01020304), c_size_t(2), None)
    gpu.call("cuMemsetD2D16Async", c_ulonglong(p + 20), c_size_t(8), ctypes.c_ushort(0x0909), c_size_t(2), c_size_t(2), None)
    want = [7] * 4 + [4, 3, 2, 1] * 2 + [7] * 8 + [9] * 4 + [7] * 4 + [9] * 4 + [7] * 8
    assert gpu.download(p, 40, ctypes.c_ubyte) == want
    q = gpu.alloc(40)
    gpu.call("cuMemcpyDtoDAsync_v2", c_ulonglong(q), c_ulonglong(p), c_size_t(40), None)
    assert gpu.download(q, 40, ctypes.c_ubyte) == want
    # Copies that find out by the addresses what is where.
    there, back = (ctypes.c_ubyte * 40)(*range(40)), (ctypes.c_ubyte * 40)()
    for to, source in ((q, ctypes.addressof(there)), (r := gpu.alloc(40), q), (ctypes.addressof(back), r)):
        gpu.call("cuMemcpyAsync", c_ulonglong(to), c_ulonglong(source), c_size_t(40), None)
    assert list(back) == list(range(40))
    # Two rows of 8 bytes out of rows of 16.
    rows = Copy2D(1, 0, 1, ctypes.addressof(there), 0, 0, 16, 0, 1, 2, 0, r, 0, 10, 8, 2)
    gpu.call("cuMemcpy2D_v2", byref(rows))
    assert gpu.download(r, 20, ctypes.c_ubyte)[10:18] == list(range(1, 9))
    assert gpu.download(r, 40, ctypes.c_ubyte)[20:28] == list(range(17, 25))
    gpu.free(r)
    assert gpu.reports() == []

    buffer = (ctypes.c_ubyte * 64)()
    wrong = [
        ("cuMemcpyHtoD_v2", c_ulonglong(p), buffer, c_size_t(41)),  # past the end
        ("cuMemcpyHtoD_v2", c_ulonglong(ctypes.addressof(buffer)), buffer, c_size_t(4)),  # a host pointer for a device pointer
        ("cuMemcpyHtoD_v2", c_ulonglong(p), c_void_p(q), c_size_t(4)),  # and the other way round
        ("cuMemcpyDtoH_v2", c_void_p(q), c_ulonglong(p), c_size_t(4)),
        ("cuMemsetD8_v2", c_ulonglong(p + 1), ctypes.c_ubyte(0), c_size_t(40)),
        ("cuMemsetD32_v2", c_ulonglong(p + 2), ctypes.c_uint(0), c_size_t(1)),  # misaligned
        ("cuMemFree_v2", c_ulonglong(p + 16)),
    ]
    for name, *arguments in wrong:
        assert gpu.result(name, *arguments) == "INVALID_VALUE", (name, arguments)
    gpu.free(p)
    assert gpu.result("cuMemFree_v2", c_ulonglong(p)) == "INVALID_VALUE", "freed twice"
    assert gpu.result("cuMemcpyDtoH_v2", buffer, c_ulonglong(p), c_size_t(4)) == "INVALID_VALUE"
    assert len(gpu.reports()) == len(wrong) + 2
    assert "in freed memory" in gpu.reports()[-1]
    assert "host memory" in gpu.reports()[1]
    assert gpu.alloc(40) != p, "no address is given twice"

    free, total = c_size_t(), c_size_t()
    gpu.call("cuMemGetInfo_v2", byref(free), byref(total))
    assert total.value == 1 << 20
    assert gpu.result("cuMemAlloc_v2", byref(c_ulonglong()), c_size_t(free.value + 1)) == "OUT_OF_MEMORY"
    gpu.free(gpu.alloc(free.value))
    gpu.alloc(free.value)

    device, kind = c_int(), ctypes.c_uint()
    gpu.call("cuPointerGetAttribute", byref(kind), 2, c_ulonglong(q))
    gpu.call("cuPointerGetAttribute", byref(device), 9, c_ulonglong(q))
    assert (kind.value, device.value) == (2, 0)
    assert gpu.result("cuPointerGetAttribute", byref(kind), 2, c_ulonglong(ctypes.addressof(buffer))) == "INVALID_VALUE"
    pinned = gpu.pinned(64)
    gpu.call("cuPointerGetAttribute", byref(kind), 2, c_ulonglong(pinned))
    assert kind.value == 1
    ctypes.memset(pinned, 3, 64)  # the host may
    gpu.call("cuMemFreeHost", c_void_p(pinned))
    assert gpu.result("cuMemFreeHost", c_void_p(pinned)) == "INVALID_VALUE"


def test_memory() -> None:
    in_process(program_memory, memory=1 << 20)


def program_writes_around() -> None:
    gpu = Gpu()
    k = gpu.kernel('extern "C" __global__ void k(char* p) { p[100] = 1; }')
    p = gpu.alloc(100)
    gpu.launch(k, 1, 1, p)
    gpu.free(p)
    assert gpu.reports() == ["memory around an allocation of 100 bytes was written, found when it was freed"]
    gpu.launch(k, 1, 1, gpu.alloc(256) + 4096)  # a page further is the guard
    assert gpu.outcome() == "ILLEGAL_ADDRESS"
    assert "kernel k, block (0, 0, 0), thread (0, 0, 0): touches" in gpu.reports()[-1]


def test_guards_find_what_is_written_beside_an_allocation_without_the_checks() -> None:
    in_process(program_writes_around, check=0)


def program_host_reads_device_memory() -> None:
    gpu = Gpu()
    ctypes.string_at(gpu.alloc(64) + 8, 4)


def test_host_code_that_reads_device_memory_ends_with_a_message() -> None:
    ended = in_process(program_host_reads_device_memory, expect=None)
    assert ended.status == -11
    assert "host code touches device memory at 0x" in ended.err
    assert "in an allocation of 64 bytes on device 0" in ended.err


def program_fault() -> None:
    gpu = Gpu()
    k, out, p = gpu.kernel(READ), gpu.alloc(4), gpu.upload([1, 2, 3])
    host = (c_float * 4)()
    freed = gpu.alloc(16)
    gpu.free(freed)
    other = Gpu(1)
    elsewhere = other.alloc(16)
    gpu.call("cuCtxSetCurrent", gpu.context)
    pinned = gpu.pinned(16)
    gpu.launch(k, 1, 1, out, pinned, 3)
    assert gpu.outcome() == "SUCCESS", "pinned memory has one address for host and device"
    cases = {
        "past": (p, 3, "reads 4 bytes at 0x", "0 bytes past the end of an allocation of 12 bytes on device 0", "ILLEGAL_ADDRESS"),
        "before": (p, -1, "reads 4 bytes", "4 bytes before an allocation of 12 bytes", "ILLEGAL_ADDRESS"),
        "host": (ctypes.addressof(host), 0, "reads 4 bytes", "host memory", "ILLEGAL_ADDRESS"),
        "freed": (freed, 0, "reads 4 bytes", "in freed memory, once an allocation of 16 bytes", "ILLEGAL_ADDRESS"),
        "null": (0, 0, "reads 4 bytes", "a null pointer", "ILLEGAL_ADDRESS"),
        "device": (elsewhere, 0, "reads 4 bytes", "in an allocation of 16 bytes on device 1", "ILLEGAL_ADDRESS"),
        "odd": (p + 2, 0, "reads 4 bytes", "which is not aligned to its size", "MISALIGNED_ADDRESS"),
    }
    address, offset, what, where, result = cases[os.environ["CASE"]]
    gpu.launch(k, 1, 1, out, address, offset & (2**64 - 1))
    assert gpu.outcome() == result
    report = gpu.reports()[-1]
    assert report.startswith(f"kernel k, block (0, 0, 0), thread (0, 0, 0): {what}"), report
    assert report.endswith(where), report
    # The error stays.
    assert gpu.result("cuMemAlloc_v2", byref(c_ulonglong()), c_size_t(4)) == result
    assert gpu.result("cuStreamSynchronize", None) == result
    assert gpu.result("cuMemFree_v2", c_ulonglong(out)) == result
    gpu.call("cuCtxSetCurrent", other.context)
    other.alloc(4)  # but it is one context's


@pytest.mark.parametrize("case", ["past", "before", "host", "freed", "null", "device", "odd"])
def test_a_wrong_access_of_a_kernel_is_found_and_the_context_lost(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASE", case)
    in_process(program_fault, devices=2)


def program_images() -> None:
    gpu = Gpu()
    compile_ = gpu.nvrtc.compile

    def load(image: bytes) -> str:
        return gpu.result("cuModuleLoadData", byref(c_void_p()), image)

    assert load(compile_(ADD, arch="sm_86")) == "SUCCESS"
    assert load(compile_(ADD, arch="sm_80")) == "SUCCESS"
    assert load(compile_(ADD, arch="sm_87")) == "NO_BINARY_FOR_GPU"
    assert load(compile_(ADD, arch="sm_75")) == "NO_BINARY_FOR_GPU"
    assert load(compile_(ADD, arch="sm_90a")) == "NO_BINARY_FOR_GPU"
    assert load(compile_(ADD, arch="compute_75", what="PTX")) == "SUCCESS"
    assert load(compile_(ADD, arch="compute_90", what="PTX")) == "NO_BINARY_FOR_GPU"
    assert compile_(ADD, arch="compute_75", what="CUBIN") == b"", "a virtual architecture has no cubin"
    image = compile_(ADD, arch="sm_86")
    assert load(image[:300] + bytes([image[300] ^ 1]) + image[301:]) == "INVALID_IMAGE"
    assert load(b"something else\0") == "INVALID_IMAGE"


def program_images_newer_than_the_driver() -> None:
    gpu = Gpu()
    image = gpu.nvrtc.compile(ADD, arch="compute_75", what="PTX")
    assert gpu.result("cuModuleLoadData", byref(c_void_p()), image) == "UNSUPPORTED_PTX_VERSION"
    version = c_int()
    gpu.call("cuDriverGetVersion", byref(version))
    assert version.value == 12080


def test_images_fit_the_device() -> None:
    in_process(program_images, arch=86)
    in_process(program_images_newer_than_the_driver, arch=86, driver=12080)


def program_launch_limits() -> None:
    gpu = Gpu()
    k, p = gpu.kernel(ADD), gpu.alloc(4096)

    def launch(grid: Any, block: Any, **more: Any) -> str:
        try:
            gpu.launch(k, grid, block, p, p, 0, c_float(0), **more)
        except DriverError as error:
            return str(error.args[0])
        return "SUCCESS"

    assert launch(1, 256) == launch((1, 65535), (16, 16)) == "SUCCESS"
    assert launch(0, 1) == launch(1, 0) == launch((1, 65536), 1) == launch(1, (1, 1, 65)) == launch(1, 1025) == "INVALID_VALUE"
    assert launch(1, 257) == "LAUNCH_OUT_OF_RESOURCES"  # __launch_bounds__
    assert launch(1, 1, shared=49152) == "SUCCESS"
    assert launch(1, 1, shared=49153) == "INVALID_VALUE"
    gpu.call("cuFuncSetAttribute", k, 8, 65536)
    assert launch(1, 1, shared=65536) == "SUCCESS"
    value = c_int()
    gpu.call("cuFuncGetAttribute", byref(value), 0, k)
    assert value.value == 256


def test_launch_limits() -> None:
    in_process(program_launch_limits)


def program_devices() -> None:
    gpu = Gpu()
    count, value = c_int(), c_int()
    gpu.call("cuDeviceGetCount", byref(count))
    name = ctypes.create_string_buffer(64)
    gpu.call("cuDeviceGetName", name, 64, 1)
    capability = []
    for device in range(count.value):
        for attribute in (75, 76, 8):
            gpu.call("cuDeviceGetAttribute", byref(value), attribute, device)
            capability.append(value.value)
    assert capability == [9, 0, 16384, 7, 5, 16384]
    assert name.value == b"Simulated GPU 1 (no hardware)"
    function = c_void_p()
    gpu.call("cuGetProcAddress_v2", b"cuMemAlloc", byref(function), 13000, ctypes.c_ulonglong(0), None)
    assert function.value == ctypes.cast(gpu.library.cuMemAlloc_v2, c_void_p).value
    assert gpu.result("cuGetProcAddress_v2", b"cuNothing", byref(function), 13000, ctypes.c_ulonglong(0), None) == "NOT_FOUND"


def program_no_device() -> None:
    library = ctypes.CDLL(os.environ["TACK_LIBCUDA"])
    assert library.cuInit(0) == 100


def test_devices_are_as_set() -> None:
    in_process(program_devices, devices=2, arch="90,75", attributes="8=16384")
    in_process(program_no_device, devices=0)


def program_failing() -> None:
    gpu = Gpu()
    before = gpu.counters()["total"]
    gpu.fail_at(2, 2)
    p = gpu.alloc(4)
    assert gpu.result("cuMemAlloc_v2", byref(c_ulonglong()), c_size_t(4)) == "OUT_OF_MEMORY"
    assert gpu.result("cuMemAlloc_v2", byref(c_ulonglong()), c_size_t(4)) == "SUCCESS"
    counters = gpu.counters()
    assert (counters["injected"], counters["total"] - before, counters["counters"]["device memory"]) == (1, 3, 2)
    gpu.fail_at(1, 1)
    assert gpu.result("cuMemFree_v2", c_ulonglong(p)) == "INVALID_VALUE"
    assert gpu.counters()["counters"]["device memory"] == 1, "a release that fails has released"
    gpu.fail_at(1, 700)
    assert gpu.outcome() == gpu.outcome() == "ILLEGAL_ADDRESS", "such an error stays"


def program_failing_from_the_start() -> None:
    with pytest.raises(DriverError, match="OUT_OF_MEMORY.*cuCtxSetCurrent"):
        Gpu()


def test_a_chosen_call_fails() -> None:
    in_process(program_failing)
    ended = in_process(program_failing_from_the_start, fail="libcuda:3:2,libnvrtc:1:6")
    assert ended.counters["libcuda"]["injected"] == 1


def program_in_a_child() -> None:
    gpu = Gpu()
    child = os.fork()
    if child == 0:
        os._exit(gpu.library.cuDeviceGetCount(byref(c_int())))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3, "the driver does not survive a fork"


def test_a_forked_child_has_no_driver() -> None:
    in_process(program_in_a_child)


def test_traces_and_reports(tmp_path: Path) -> None:
    in_process(program_a_kernel_runs, trace=tmp_path / "trace")
    lines = (tmp_path / "trace").read_text().splitlines()
    assert any(line.startswith("libnvrtc") and line.endswith("nvrtcCompileProgram -> 0") for line in lines)
    assert any("k grid 4,1,1 block 256" in line for line in lines)


def test_the_command_runs_on_the_stand_ins() -> None:
    code = "import os, ctypes; print(ctypes.CDLL(os.environ['TACK_LIBCUDA']).cuInit(0))"
    command = [sys.executable, standins.__file__, "cuda", sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0\n"


@pytest.mark.parametrize(("machine", "runner"), [("", []), ("aarch64-linux-gnu-", ["qemu-aarch64"])])
def test_fibers_keep_registers_and_stacks(machine: str, runner: list[str], tmp_path: Path) -> None:
    for tool in (f"{machine}g++", *runner):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    folder, program = Path(standins.__file__).parent, tmp_path / "fibers"
    sources = [folder / "checks/fibers.cpp", folder / "engine/fiber.cpp"]
    subprocess.run([f"{machine}g++", "-std=c++20", "-O2", "-static", "-ffp-contract=off", *sources, "-o", program], check=True)
    ended = subprocess.run([*runner, program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "")


# How wide a parameter is, by the words of its type; all that is not listed is an address or a handle.
WIDTHS = {
    "float": 4,
    "int": 4,
    "unsigned": 4,
    "unsigned int": 4,
    "unsigned char": 1,
    "unsigned short": 2,
    "unsigned long long": 8,
    "size_t": 8,
}
WIDTHS |= {
    "CUdevice": 4,
    "CUdevice_attribute": 4,
    "CUpointer_attribute": 4,
    "CUfunction_attribute": 4,
    "CUresult": 4,
    "CUuuid": 16,
    "Result": 4,
}
WIDTHS |= {"CUlimit": 4, "cuuint64_t": 8}


def package_files(name: str) -> list[Any] | None:
    try:
        return files(name)
    except PackageNotFoundError:
        return None


def widths(parameters: str) -> list[int]:
    """Of a function's parameters, as C writes them."""
    found = []
    for parameter in parameters.replace("\n", " ").replace("std::", "").split(","):
        words = [w for w in parameter.replace("const", " ").split() if w]
        kind = " ".join(words) if " ".join(words) in WIDTHS else " ".join(words[:-1])
        found.append(8 if "*" in parameter or "[" in parameter else WIDTHS.get(kind, 8))
    return [] if parameters.strip() in {"", "void"} else found


def test_functions_and_structures_are_those_of_the_real_header(tmp_path: Path) -> None:
    installed = [Path(str(f.locate())) for f in (package_files("nvidia-cuda-runtime") or []) if f.name == "cuda.h"]
    if not installed:
        pytest.skip("needs the package nvidia-cuda-runtime")
    real = installed[0].read_text()
    declarations = re.findall(r"CUresult CUDAAPI (\w+)\(([^)]*)\);", real)
    declared = {name: widths(given) for name, given in reversed(declarations)}  # the first ones: those of old versions come later
    renamed = dict(re.findall(r"#define (cu\w+) +(cu\w+_v\d+)$", real, re.MULTILINE))  # cuda.h declares cuMemAlloc and means cuMemAlloc_v2
    declared |= {new: declared[old] for old, new in renamed.items() if old in declared}
    folder = Path(standins.__file__).parent / "cuda"
    ours = {
        n: widths(g) for p in folder.glob("*.cpp") for n, g in re.findall(r"^Result (cu\w+)\(([^)]*)\) \{", p.read_text(), re.MULTILINE)
    }
    assert len(ours) > 70
    assert {n: w for n, w in ours.items() if declared.get(n) != w} == {}

    fields = {"from.pitch": "srcPitch", "to.kind": "dstMemoryType", "height": "Height"}
    checks = [f"static_assert(offsetof(sim::cuda::Copy2D, {a}) == offsetof(CUDA_MEMCPY2D, {b}));" for a, b in fields.items()]
    checks.append("static_assert(sizeof(sim::cuda::Copy2D) == sizeof(CUDA_MEMCPY2D));")
    text = tmp_path / "compare.cpp"
    text.write_text(f'#include <cuda.h>\n#include "{folder}/texture_abi.h"\n' + "\n".join(checks))
    includes = ["-I", str(installed[0].parent), "-I", str(standins.ROOT / "third_party")]
    subprocess.run([standins.compiler(), "-std=c++20", "-fsyntax-only", "-Wno-invalid-offsetof", *includes, str(text)], check=True)

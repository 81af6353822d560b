"""The declarations in third_party/ against the vendors' own headers, wherever a package brings these: signatures, constants, sizes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def header(package: str, name: str) -> Path:
    """The header `name` that a pip package has installed, or a system's package ("apt:..."); skips where the package is not there."""
    if package.startswith("apt:"):
        found = Path("/usr/include") / name
        if not found.exists():
            pytest.skip(f"needs the packages{package.removeprefix('apt:')} (apt-get install{package.removeprefix('apt:')})")
        return found
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        pytest.skip(f"needs the package {package} (pip install {package})")
    return next(Path(str(f.locate())) for f in files if f.name == name)


def compiler() -> str:
    found = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if found is None:
        pytest.skip("needs a C++ compiler")
    return found


# Two types are the same to a binary when both are addresses, or both are numbers of one width and signedness; what an address points at is
# compared in the same way, where both sides say it.
SAME = """
template <class T> constexpr bool is_number = std::is_integral_v<T> || std::is_enum_v<T>;
template <class T> struct Plain { using type = T; };
template <class T> requires std::is_enum_v<T> struct Plain<T> { using type = std::underlying_type_t<T>; };
template <class A, class B> constexpr bool same() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using To = std::remove_cv_t<std::remove_pointer_t<A>>;
    using From = std::remove_cv_t<std::remove_pointer_t<B>>;
    if constexpr (is_number<To> || std::is_pointer_v<To>) return same<To, From>();
    return std::is_void_v<To> == std::is_void_v<From> && std::is_class_v<To> == std::is_class_v<From>;
  } else if constexpr (is_number<A> && is_number<B>) {
    // The values of an enum of C are all positive here, and GCC makes its type unsigned.
    const bool sign = std::is_enum_v<A> || std::is_enum_v<B> || std::is_signed_v<A> == std::is_signed_v<B>;
    return sizeof(A) == sizeof(B) && sign;
  } else {
    return false;
  }
}
template <class A, class B> struct Same : std::false_type {};
template <class R, class... A, class S, class... B> struct Same<R (*)(A...), S (*)(B...)> {
  static constexpr bool compare() {
    if constexpr (sizeof...(A) == sizeof...(B)) return same<R, S>() && (same<A, B>() && ...);
    else return false;
  }
  static constexpr bool value = compare();
};
static_assert(same<int*, int*>() && !same<int*, long*>() && !same<int, int*>() && !same<long, int>() && !same<unsigned, int>());
static_assert(!Same<int (*)(int), int (*)(int, int)>::value && !Same<int (*)(void*), int (*)(void**)>::value);
"""

DRIVER = """
#include <cuda.h>
#include <cuda/driver_abi.h>
#include <type_traits>
%s
namespace tack::cuda::abi {
#define X(need, member, symbol, ...) \\
  static_assert(Same<Result (*)(__VA_ARGS__), decltype(&::symbol)>::value, #symbol " has another signature");
#include "backends/cuda/driver.def"
#undef X
#define X(name, original, value) static_assert(value == static_cast<int>(::original), #original " has another value");
TACK_CUDA_RESULTS(X)
TACK_CUDA_DEVICE_ATTRIBUTES(X)
TACK_CUDA_FUNCTION_ATTRIBUTES(X)
TACK_CUDA_POINTER_ATTRIBUTES(X)
TACK_CUDA_JIT_OPTIONS(X)
TACK_CUDA_ARRAY_FORMATS(X)
TACK_CUDA_MEMORY_KINDS(X)
TACK_CUDA_RESOURCE_KINDS(X)
TACK_CUDA_ADDRESS_MODES(X)
TACK_CUDA_FILTER_MODES(X)
#undef X
#define X(structure, field, original, theirs) \\
  static_assert(offsetof(structure, field) == offsetof(::original, theirs), #original " has " #theirs " elsewhere");
TACK_CUDA_FIELDS(X)
#undef X
#define X(structure, original) static_assert(sizeof(structure) == sizeof(::original), #original " has another size");
TACK_CUDA_STRUCTURES(X)
#undef X
static_assert(texture_normalized_coordinates == CU_TRSF_NORMALIZED_COORDINATES);
static_assert(event_disable_timing == CU_EVENT_DISABLE_TIMING && host_alloc_portable == CU_MEMHOSTALLOC_PORTABLE);
static_assert(sizeof(Device) == sizeof(CUdevice) && sizeof(DevicePointer) == sizeof(CUdeviceptr) && sizeof(Result) == sizeof(CUresult));
}
"""

NVRTC = """
#include <nvrtc.h>
#include <cuda/nvrtc_abi.h>
#include <type_traits>
%s
namespace tack::cuda::abi {
#define X(need, member, symbol, ...) \\
  static_assert(Same<CompileResult (*)(__VA_ARGS__), decltype(&::symbol)>::value, #symbol " has another signature");
#include "backends/cuda/nvrtc.def"
#undef X
static_assert(Same<const char* (*)(CompileResult), decltype(&::nvrtcGetErrorString)>::value);
#define X(name, original, value) static_assert(value == static_cast<int>(::original), #original " has another value");
TACK_NVRTC_RESULTS(X)
#undef X
}
"""

HIP = """
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DISABLE_CPP_FUNCTIONS__ 1
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#include <hip/hiprtc_abi.h>
#include <hip/runtime_abi.h>
#include <type_traits>
%s
namespace tack::hip::abi {
#define X(need, member, symbol, ...) \\
  static_assert(Same<Result (*)(__VA_ARGS__), decltype(&::symbol)>::value, #symbol " has another signature");
#include "backends/hip/runtime.def"
#undef X
#define X(need, member, symbol, ...) \\
  static_assert(Same<CompileResult (*)(__VA_ARGS__), decltype(&::symbol)>::value, #symbol " has another signature");
#include "backends/hip/hiprtc.def"
#undef X
static_assert(Same<const char* (*)(Result), decltype(&::hipGetErrorName)>::value);
static_assert(Same<const char* (*)(Result), decltype(&::hipGetErrorString)>::value);
static_assert(Same<const char* (*)(CompileResult), decltype(&::hiprtcGetErrorString)>::value);
#define X(name, original, value) static_assert(value == static_cast<int>(::original), #original " has another value");
TACK_HIP_RESULTS(X)
TACK_HIP_DEVICE_ATTRIBUTES(X)
TACK_HIP_FUNCTION_ATTRIBUTES(X)
TACK_HIP_POINTER_ATTRIBUTES(X)
TACK_HIP_ARRAY_FORMATS(X)
TACK_HIP_COPY_KINDS(X)
TACK_HIP_RESOURCE_KINDS(X)
TACK_HIP_ADDRESS_MODES(X)
TACK_HIP_FILTER_MODES(X)
TACK_HIPRTC_RESULTS(X)
#undef X
#define X(structure, field, original, theirs) \\
  static_assert(offsetof(structure, field) == offsetof(::original, theirs), #original " has " #theirs " elsewhere");
TACK_HIP_FIELDS(X)
#undef X
#define X(structure, original) static_assert(sizeof(structure) == sizeof(::original), #original " has another size");
TACK_HIP_STRUCTURES(X)
#undef X
static_assert(texture_normalized_coordinates == HIP_TRSF_NORMALIZED_COORDINATES);
#if HIP_VERSION_MAJOR < 6
using Layout = Properties;
#else
using Layout = PropertiesR0600;
#endif
static_assert(Layout::size == sizeof(::hipDeviceProp_t) && Layout::architecture == offsetof(::hipDeviceProp_t, gcnArchName));
static_assert(architecture_bytes == sizeof(::hipDeviceProp_t::gcnArchName));
static_assert(event_disable_timing == hipEventDisableTiming && host_alloc_portable == hipHostMallocPortable);
static_assert(sizeof(Device) == sizeof(::hipDevice_t) && sizeof(DevicePointer) == sizeof(::hipDeviceptr_t));
}
"""

LEVEL_ZERO = """
#include <ze_api.h>
#include <ocloc_api.h>
#include <level_zero/ze_abi.h>
#include <cstddef>
#include <type_traits>
%s
namespace tack::level_zero::abi {
#define X(need, member, symbol, ...) \\
  static_assert(Same<Result (*)(__VA_ARGS__), decltype(&::symbol)>::value, #symbol " has another signature");
#include "backends/level_zero/driver.def"
#undef X
#define X(need, member, symbol, ...) \\
  static_assert(Same<int (*)(__VA_ARGS__), decltype(&::symbol)>::value, #symbol " has another signature");
#include "backends/level_zero/ocloc.def"
#undef X
#define X(name, original, value, words) static_assert(value == static_cast<int>(::original), #original " has another value");
TACK_ZE_RESULTS(X)
#undef X
#define X(name, original, value) static_assert(value == static_cast<int>(::original), #original " has another value");
TACK_ZE_CONSTANTS(X)
#undef X
#define X(name, original, stype, value) \\
  static_assert(value == static_cast<int>(::stype) && sizeof(name) == sizeof(::original), #original " has another size or number");
TACK_ZE_STRUCTURES(X)
#undef X
static_assert(sizeof(GroupCount) == sizeof(::ze_group_count_t) && sizeof(ImageRegion) == sizeof(::ze_image_region_t));
static_assert(sizeof(ImageFormat) == sizeof(::ze_image_format_t));
MEMBERS
}
"""


def fields(text: str, structure: str) -> list[str]:
    """The names of a structure's members, in their order."""
    body = re.search(rf"struct {structure}\s*\{{(.*?)\n\}}", text, re.DOTALL)
    assert body is not None, structure
    plain = re.sub(r"//.*", "", body[1])
    names = []
    for declaration in re.sub(r"=[^,;]*", "", plain).split(";"):
        if declaration.strip():
            names += [re.sub(r"\[.*", "", part).split()[-1].lstrip("*") for part in declaration.split(",")]
    return names


def level_zero_fields(ours: str, theirs: str) -> str:
    """Checks that each member of each structure lies where the original's does, and is as long."""
    lines = []
    without_a_number = [("GroupCount", "ze_group_count_t"), ("ImageFormat", "ze_image_format_t"), ("ImageRegion", "ze_image_region_t")]
    for name, original in [*re.findall(r"X\((\w+), (ze_\w+_t), ZE_STRUCTURE", ours), *without_a_number]:
        for mine, other in zip(fields(ours, name), fields(theirs, f"_{original}"), strict=True):
            same = f"offsetof({name}, {mine}) == offsetof(::{original}, {other}) && sizeof({name}::{mine}) == sizeof(::{original}::{other})"
            lines.append(f'static_assert({same}, "{original}::{other} lies elsewhere");')
    assert len(lines) > 80
    return "\n".join(lines)


HEADERS = {
    "driver": ("nvidia-cuda-runtime", "cuda.h", DRIVER),
    "nvrtc": ("nvidia-cuda-nvrtc", "nvrtc.h", NVRTC),
    "hip": ("apt: libamdhip64-dev", "hip/hip_runtime_api.h", HIP),
    "level_zero": ("apt: libze-dev intel-opencl-icd", "level_zero/ze_api.h", LEVEL_ZERO),
}


@pytest.fixture(params=sorted(HEADERS))
def vendor(request: pytest.FixtureRequest) -> Iterator[tuple[Path, str]]:
    package, name, program = HEADERS[request.param]
    path = header(package, name)
    program %= SAME
    if request.param == "level_zero":
        members = level_zero_fields((ROOT / "third_party/level_zero/ze_abi.h").read_text(), path.read_text())
        program = program.replace("MEMBERS", members)
    yield path.parent, program


def check(include: Path, program: str) -> subprocess.CompletedProcess[str]:
    command = [compiler(), "-std=c++20", "-fsyntax-only", f"-isystem{include}", f"-I{ROOT}/third_party", f"-I{ROOT}/cpp/src", "-xc++", "-"]
    return subprocess.run(command, input=program, capture_output=True, text=True)


def test_declarations_are_those_of_the_vendors_header(vendor: tuple[Path, str]) -> None:
    done = check(*vendor)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new"), [("(*)(__VA_ARGS__)", "(*)(__VA_ARGS__, int)"), ("value == static_cast", "value + 1 == static_cast")]
)
def test_a_wrong_declaration_is_noticed(vendor: tuple[Path, str], old: str, new: str) -> None:
    include, program = vendor
    assert old in program
    assert check(include, program.replace(old, new)).returncode != 0

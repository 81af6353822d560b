"""Tack: compute kernels as decorated Python functions, compiled for the CPU and GPUs.

import tack

@tack.kernel
def saxpy(out, x, y, a):
    for i in range(out.shape[0]):      # a top-level loop is parallel
        out[i] = a * x[i] + y[i]

x = tack.linspace(0.0, 1.0, 1_000_000)
y, out = tack.ones_like(x), tack.empty_like(x)
saxpy(out, x, y, 2.0)
"""

from __future__ import annotations

from . import _interpreter as _interpreter  # first: it may refuse
from . import _runtime
from .arrays import Array
from .compilation import CompiledKernel
from .compilation import compile as compile  # noqa: A004
from .creation import (
    arange,
    array,
    asarray,
    concatenate,
    copyto,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    stack,
    zeros,
    zeros_like,
)
from .debugging import debug
from .devices import Device, device, device_count, get_default_device, set_default_device, sync, sync_async
from .errors import CompileError, CompileNameError, CompileNotImplementedError, CompileTypeError, CompileValueError, UnsupportedError
from .funcs import func
from .inspection import inspect
from .intrinsics import INTRINSICS
from .kernels import compile_for_cpu, kernel, link_for_cpu
from .settings import config
from .sharing import array_from_ptr, from_dlpack
from .textures import texture3d
from .types import f32, f64, i8, i16, i32, i64, u8, u16, u32, u64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .intrinsics import IntrinsicFunction
    from .types import DType

    abs: IntrinsicFunction
    acos: IntrinsicFunction
    acosh: IntrinsicFunction
    add_sat: IntrinsicFunction
    asin: IntrinsicFunction
    asinh: IntrinsicFunction
    atan: IntrinsicFunction
    atan2: IntrinsicFunction
    atanh: IntrinsicFunction
    atomic_add: IntrinsicFunction
    atomic_and_: IntrinsicFunction
    atomic_cas: IntrinsicFunction
    atomic_exchange: IntrinsicFunction
    atomic_max: IntrinsicFunction
    atomic_min: IntrinsicFunction
    atomic_or_: IntrinsicFunction
    atomic_sub: IntrinsicFunction
    atomic_xor: IntrinsicFunction
    barrier: IntrinsicFunction
    bitcast: IntrinsicFunction
    block_dim: IntrinsicFunction
    block_id: IntrinsicFunction
    block_max: IntrinsicFunction
    block_min: IntrinsicFunction
    block_sum: IntrinsicFunction
    cbrt: IntrinsicFunction
    ceil: IntrinsicFunction
    clz: IntrinsicFunction
    copysign: IntrinsicFunction
    cos: IntrinsicFunction
    cosh: IntrinsicFunction
    ctz: IntrinsicFunction
    divmod: IntrinsicFunction
    erf: IntrinsicFunction
    erfc: IntrinsicFunction
    exp: IntrinsicFunction
    exp2: IntrinsicFunction
    expm1: IntrinsicFunction
    fabs: IntrinsicFunction
    floor: IntrinsicFunction
    fma: IntrinsicFunction
    fmod: IntrinsicFunction
    hypot: IntrinsicFunction
    isfinite: IntrinsicFunction
    isinf: IntrinsicFunction
    isnan: IntrinsicFunction
    local_array: IntrinsicFunction
    local_array_like: IntrinsicFunction
    log: IntrinsicFunction
    log10: IntrinsicFunction
    log1p: IntrinsicFunction
    log2: IntrinsicFunction
    max: IntrinsicFunction
    min: IntrinsicFunction
    mulhi: IntrinsicFunction
    ndrange: IntrinsicFunction
    popcount: IntrinsicFunction
    pow: IntrinsicFunction
    rotl: IntrinsicFunction
    rotr: IntrinsicFunction
    round: IntrinsicFunction
    rsqrt: IntrinsicFunction
    sequential: IntrinsicFunction
    shared: IntrinsicFunction
    shared_like: IntrinsicFunction
    sin: IntrinsicFunction
    sinh: IntrinsicFunction
    sqrt: IntrinsicFunction
    sub_sat: IntrinsicFunction
    tan: IntrinsicFunction
    tanh: IntrinsicFunction
    thread_id: IntrinsicFunction
    trunc: IntrinsicFunction

__version__ = _runtime.VERSION

globals().update(INTRINSICS)


def constant(value: int | float | bool, dtype: DType) -> object:
    """``value`` as a number with a type of its own: a NumPy scalar, which a kernel that captures it takes as ``dtype``.

    Raises OverflowError for an int, and TypeError for a float, that the integer type cannot hold.
    """
    from .arrays import as_dtype, element_bytes
    from .runtime.host_scalar import cast

    kind = as_dtype(dtype)
    element_bytes(value, kind, "tack.constant()")
    return cast(value, kind)


_runtime.set_errors(CompileError, UnsupportedError)
_runtime.set_cpu_compiler(compile_for_cpu)
_runtime.set_object_linker(link_for_cpu)

# Names of Python's builtins (min, max, abs, ...) are left out: `from tack import *` should not hide those.
__all__ = [
    "Array", "CompileError", "CompileNameError", "CompileNotImplementedError", "CompileTypeError", "CompileValueError", "CompiledKernel",
    "Device", "UnsupportedError", "arange", "array", "array_from_ptr", "asarray", "concatenate", "config", "constant", "copyto", "debug",
    "device", "device_count", "empty", "empty_like", "eye", "f32", "f64", "from_dlpack", "full", "full_like", "func",
    "get_default_device", "i8", "i16", "i32", "i64", "inspect", "kernel", "linspace", "ones", "ones_like", "set_default_device", "stack",
    "sync", "sync_async", "texture3d", "u8", "u16", "u32", "u64", "zeros", "zeros_like",
    *(name for name in INTRINSICS if name not in ("abs", "divmod", "max", "min", "pow", "round")),
]  # fmt: skip

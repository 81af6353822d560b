# The contract of tack._runtime between the bindings and python/tack. Deleted once nanobind makes the real stub at build.
# All dtypes cross as names ("f32"); shapes and strides as tuples of int (strides in bytes).
from collections.abc import Buffer, Callable, Sequence
from typing import Any
from .ir.source import KernelSource

class Device:
    type: str            # "cpu"
    index: int
    name: str            # str(device): "cpu", "cuda:1", "cpu(num_threads=1)"
    arch: str; device_name: str
    array_dtypes: tuple[str, ...]; atomic_dtypes: tuple[str, ...]
    supports_f64: bool; supports_workgroups: bool; supports_images: bool; f32_denormals: bool; queued: bool; host_addressable: bool
    max_iterations: int; block: int; vector_bits: int; threads: int; memory_id: int
    compiled: int; loaded: int               # kernels compiled / loaded from the disk cache
    memory: dict[str, int]                   # in_use cached peak allocations reused
    def can_address(self, other: Device) -> bool: ...
    def synchronize(self) -> None: ...       # GIL released
    def trim(self) -> int: ...
    def load(self, key: bytes) -> Kernel | None: ...
    def build(self, source: KernelSource, key: bytes) -> Kernel: ...   # takes the Python dataclass; GIL released while waiting
    def __enter__(self) -> Device: ...       # pushes on this thread's stack
    def __exit__(self, *exc: object) -> None: ...
    # __eq__/__hash__ by identity (nanobind returns the same object for the same C++ device), __str__ = name, __repr__ "tack.device('cpu')"

def device(spec: str, num_threads: int | None = None) -> Device: ...   # ValueError, RuntimeError("Cannot start the ...")
def device_count(type: str) -> int: ...
def backend_names() -> list[str]: ...
def default_device() -> Device: ...          # innermost `with` of this thread, else the process default, else cpu
def set_default_device(d: Device) -> None: ...
def synchronize() -> None: ...

class Array:                                  # tack.Array is a Python subclass (tack/array.py), registered by set_array_type
    def __init__(self, device: Device, dtype: str, shape: tuple[int, ...]) -> None: ...        # uninitialised
    # a view on the same buffer (offset in bytes relative to the base's element 0):
    def __init__(self, base: Array, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, read_only: bool) -> None: ...
    # memory that another object owns (kept alive), e.g. a NumPy array, by address:
    def __init__(self, device: Device, pointer: int, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], read_only: bool, owner: object, shared: bool) -> None: ...
    dtype_name: str; shape: tuple[int, ...]; strides: tuple[int, ...]; ndim: int; size: int; nbytes: int; itemsize: int
    device: Device; pointer: int; layout: int; read_only: bool; shared: bool
    def read_into(self, destination: Buffer) -> None: ...   # any writable buffer (NumPy array, any strides) of the same dtype and shape
    def write_from(self, source: Buffer) -> None: ...
    def copy_from(self, source: Array) -> None: ...         # same shape and dtype, any devices
    def fill(self, element: bytes) -> None: ...             # itemsize bytes
    # CPU arrays support the buffer protocol themselves (np.asarray(a) without a copy is what tack's numpy() copies from)

class Kernel:
    name: str; device: Device; from_cache: bool; simd: int
    def launch(self, args: Sequence[Any]) -> Any: ...       # Arrays and Python/NumPy scalars, in order; checks everything
    def schedule(self) -> dict[str, Any]: ...               # {"threads": n, "entries": [{symbol, ns_per_iteration, fan_out_ns, serial, parallel}], "steps": [...]}

class Dispatcher:
    """vectorcall; one per @tack.kernel. On a hit no Python runs."""
    def __init__(self, name: str, parameters: tuple[str, ...], defaults: tuple[Any, ...], miss: Callable[[Dispatcher, tuple[Any, ...], Device | None], tuple[Kernel, list[Guard]]]) -> None: ...
    # miss(dispatcher, args, device): args in parameter order, defaults filled in, NumPy arrays as they came. device is where it must run.
    # It raises the good error or answers the kernel and the guards: captured values to be checked on every hit.
    # Wrong counts/keywords/kinds: the dispatcher calls `bad_call(args, kwargs)` below, which must raise.
    def set_bad_call(self, f: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> None: ...
    def clear(self) -> None: ...              # forgets all specializations (a changed source, tests)
    specializations: int

# A guard: (namespace_dict, key, expected) for a global, or (cell, None, expected) for a closure cell, or (object, attr, expected).
# On a hit: identity first; else same type and equal (numbers, bools, tuples of them; -0.0 != 0.0, NaN is NaN) passes; else a miss.
Guard = tuple[Any, str | None, Any]

def set_array_type(cls: type) -> None: ...
def set_cpu_compiler(f: Callable[[str, str, str, int, str], bytes]) -> None: ...   # (name, llvm_ir, arch, optimize, output: "object"|"assembly"|"ir") -> bytes
def set_errors(compile_error: type, unsupported_error: type) -> None: ...           # the exception classes of tack.errors
def cache_get(key: bytes) -> bytes | None: ...      # small records of the Python side (capture manifests) in the same disk cache
def cache_put(key: bytes, value: bytes) -> None: ...
def digest(*parts: bytes) -> bytes: ...             # 32 bytes, stable across processes
def config_get(name: str) -> str: ...
def config_table() -> list[tuple[str, str, str, str]]: ...
ABI_VERSION: int; VERSION: str

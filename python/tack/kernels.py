"""@tack.kernel, and what a call does when the dispatcher has no kernel for it yet: key, disk cache, else a compile."""

from __future__ import annotations

import _thread  # threading is more than a lock, and not loaded by every program
import copyreg

from . import _runtime
from ._runtime import ABSENT
from .arguments import Argument, check_dtypes, classify, place, raise_bad_call
from .capture import Captures, capture
from .devices import title_of
from .errors import CompileError, CompileNotImplementedError, CompileTypeError
from .funcs import check_decorated, describe
from .source_text import SourceText, find_source, pickled_by_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType
    from typing import Any, NoReturn, overload

    from ._runtime import Device, Dispatcher, Kernel, Target
    from .capture import Guard, Paths

__all__ = ["KernelFunction", "Specialization", "compile_for_cpu", "kernel", "kernel_function", "link_for_cpu", "paths_of"]

_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE = 0x04, 0x08, 0x20, 0x80 | 0x100 | 0x200  # inspect.CO_*
_OPTIONS = "block=, fast_math=, exact=, simd="
_MOST_KERNELS = 256  # of one function: a captured number that changes all the time must not fill the memory with code


class Specialization:
    """A call's types resolved against a device: everything that the compiler needs, and the key that stored kernels are found by."""

    __slots__ = ("arguments", "captures", "debug", "device", "key")

    def __init__(self, arguments: tuple[Argument, ...], device: Device | Target, captures: Captures, debug: bool, key: bytes) -> None:
        self.arguments = arguments
        self.device = device
        self.debug = debug
        self.captures = captures
        self.key = key


class KernelFunction:
    """The Python side of one @tack.kernel: the function, its options, and the kernels made of it so far. Thread-safe."""

    __slots__ = ("defaults", "dispatcher", "function", "kernels", "keyword_only", "lock", "names", "options", "positional_only", "source")

    def __init__(self, function: FunctionType, options: tuple[tuple[str, object], ...], source: SourceText | None = None) -> None:
        code = function.__code__
        self.function = function
        self.options = options
        self.source = find_source(function) if source is None else source
        self.positional_only: int = code.co_posonlyargcount
        self.keyword_only: int = code.co_kwonlyargcount
        self.names: tuple[str, ...] = code.co_varnames[: code.co_argcount + self.keyword_only]
        self.defaults: tuple[Any, ...] = _defaults(function, self.names, code.co_argcount)  # of the last parameters, or ABSENT
        self.kernels: dict[tuple[Device, bytes], Kernel] = {}
        self.lock = _thread.RLock()
        self.dispatcher = _runtime.Dispatcher(
            self.source.name, self.names, self.defaults, self.miss, self.positional_only, self.keyword_only
        )
        self.dispatcher.set_bad_call(self.bad_call)
        self.dispatcher._kernel = self  # type: ignore[attr-defined]
        describe(self.dispatcher, function)

    @property
    def name(self) -> str:
        return self.source.name

    def miss(self, _dispatcher: Dispatcher, args: tuple[Any, ...], device: Device | None) -> tuple[Kernel, list[Guard]]:
        """The kernel for these arguments and what it captures; called by the dispatcher when it knows none."""
        try:
            special = self.specialize(args, device)
            return self.kernel_of(special), special.captures.guards
        except CompileError as error:
            # It names the kernel's own file and line; the frames of the compiler would only push them off the screen.
            raise error.with_traceback(None) from error.__cause__

    def bad_call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
        """Raises the error for a call whose arguments do not fit the parameters."""
        raise_bad_call(self.name, self.names, self.defaults, args, kwargs, self.positional_only, self.keyword_only)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in parameter order, with defaults filled in. Raises TypeError as a call does."""
        last = self.names[len(self.names) - len(self.defaults) :]
        values = {name: value for name, value in zip(last, self.defaults, strict=True) if value is not ABSENT}
        given = dict(zip(self.names, args, strict=False))
        values.update(given)
        values.update(kwargs)
        twice = (given.keys() | set(self.names[: self.positional_only])) & kwargs.keys()
        if len(args) > len(self.names) - self.keyword_only or twice or values.keys() != set(self.names):
            self.bad_call(args, kwargs)
        return tuple(values[name] for name in self.names)

    def specialize(self, args: tuple[Any, ...], device: Device | None, lacking: type[Exception] = RuntimeError) -> Specialization:
        """Everything that can be told and refused without compiling. ``lacking`` is raised for workgroup functions on a device without."""
        arguments = tuple(classify(self.name, name, value) for name, value in zip(self.names, args, strict=True))
        where = place(self.name, self.names, arguments, args) if device is None else device
        return self.specialization(arguments, where, lacking)

    def specialization(
        self, arguments: tuple[Argument, ...], where: Device | Target, lacking: type[Exception] = RuntimeError
    ) -> Specialization:
        """The same for types of arguments, on a device or on one that need not be there."""
        check_dtypes(self.name, self.names, arguments, where)
        captures = capture(self.function, self.source, lambda source: paths_of(source, self.name))
        if captures.workgroup and not where.supports_workgroups:
            raise lacking(self._workgroup_message(captures, where))
        debug = _runtime.debugging()
        return Specialization(arguments, where, captures, debug, self._key(arguments, where, captures, debug))

    def kernel_of(self, special: Specialization) -> Kernel:
        """The kernel of a specialization: known here, stored on disk, or compiled now. Several threads that ask get the same one."""
        device = special.device
        assert isinstance(device, _runtime.Device)
        known = self.kernels.get((device, special.key))
        if known is None:
            with self.lock:
                known = self.kernels.get((device, special.key))
                if known is None:
                    known = device.load(special.key)
                    if known is None:
                        from .compiler import compile_source  # ast, the front end and the code generator load here

                        known = device.build(compile_source(self, special), special.key)
                    self.kernels[device, special.key] = known
                    if len(self.kernels) > _MOST_KERNELS:  # the oldest goes: it is on disk, or compiled again
                        self.kernels.pop(next(iter(self.kernels)))
        return known

    def _key(self, arguments: tuple[Argument, ...], device: Device | Target, captures: Captures, debug: bool) -> bytes:
        options = ";".join(f"{name}={value}" for name, value in self.options)
        types = ";".join(argument.token() for argument in arguments)
        target = f"{device.type};{device.arch};simd={_runtime.config_get('TACK_CPU_SIMD')};debug={debug}"
        # Checked kernels name lines: those of a file that has changed elsewhere are others.
        places = [f"{f.source.file}:{f.source.line}" for f in captures.functions] if debug else []
        parts = ("kernel", self.source.qualname, options, types, target, *captures.tokens, *places)
        return _runtime.digest(compiler_version(), *(part.encode("utf-8", "surrogatepass") for part in parts))

    def _workgroup_message(self, captures: Captures, device: Device | Target) -> str:
        name, where = next(iter(captures.workgroup.items()))
        inside = "" if where == self.name else f" (in '{where}')"
        return (
            f"Kernel '{self.name}' uses tack.{name}{inside}, which is not supported on {title_of(device.type)}: it has no workgroups "
            "(shared memory, barriers, thread_id, block reductions). For scratch memory of one iteration use tack.local_array or "
            "tack.local_array_like, which work on every backend."
        )


def paths_of(source: SourceText, kernel: str) -> Paths:
    """The dotted paths that a function's text takes from outside, from memory, from the disk cache or by parsing it.

    Raises CompileError where there is no text, or no kernel code in it.
    """
    found = _paths.get(source.text)
    if found is None:
        if not source.text:
            raise CompileError(
                f"Kernel '{kernel}': {_which(source, kernel)}{source.problem}", file=source.file, line=source.line, kernel=kernel
            )
        key = _runtime.digest(b"names", compiler_version(), source.text.encode("utf-8", "surrogatepass"))
        stored = _runtime.cache_get(key)
        if stored is not None:
            lines = stored.decode("utf-8").split("\n")
            found = tuple(tuple(line.split(".")) for line in lines if line)
        else:
            from .compiler import captured_paths

            found = captured_paths(source, kernel)
            _runtime.cache_put(key, "\n".join(".".join(path) for path in found).encode("utf-8"))
        _paths[source.text] = found
    return found


_paths: dict[str, Paths] = {}


def _which(source: SourceText, kernel: str) -> str:
    return "" if source.name == kernel else f"the function '{source.name}' that it calls: "


_compiler_version = b""


def compiler_version() -> bytes:
    """Names the compiler for keys: version, ABI, and the state of its own files, so that an edited or updated compiler compiles anew."""
    global _compiler_version
    if not _compiler_version:
        import os

        parts = [_runtime.VERSION, str(_runtime.ABI_VERSION)]
        root = os.path.dirname(__file__)
        for folder in ("", "frontend", "ir", "codegen", os.path.join("codegen", "dialects"), os.path.join("codegen", "mathlib")):
            try:
                with os.scandir(os.path.join(root, folder)) as entries:
                    files = sorted((e.name, e.stat()) for e in entries if e.name.endswith(".py"))
            except FileNotFoundError:
                continue
            parts += [f"{folder}/{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in files]
        _compiler_version = "\n".join(parts).encode()
    return _compiler_version


def kernel_function(kernel: Any) -> KernelFunction:
    """What stands behind a decorated kernel. Raises TypeError for anything else."""
    found = getattr(kernel, "_kernel", None)
    if not isinstance(found, KernelFunction):
        raise TypeError(f"expected a function decorated with @tack.kernel, got {type(kernel).__name__}")
    return found


if TYPE_CHECKING:

    @overload
    def kernel(function: Callable[..., Any], /) -> Dispatcher: ...

    @overload
    def kernel(
        *, block: int | None = None, fast_math: bool = False, exact: bool = False, simd: int | None = None
    ) -> Callable[[Callable[..., Any]], Dispatcher]: ...


def kernel(function: Any = None, /, **options: Any) -> Any:
    """Decorator: compiles a function for the device that it is called on, at the first call with arguments of new types.

    Its top-level ``for`` loops over ``range`` or ``tack.ndrange`` run in parallel. Use it bare, or with options:

    - ``block``: threads of a group on GPUs (1 to 1024); without effect on the CPU.
    - ``fast_math``: lets the compiler reassociate and approximate floats.
    - ``exact``: the same bits on every device: no fused multiply-add, and all math from tack's own library.
    - ``simd``: CPU lanes per vector, a power of two; 1 is plain scalar code. By default the compiler chooses.

    Raises CompileError for what is no plain function; all else that is wrong with the code is raised by the first call.
    """
    checked = _checked_options(options)
    if function is None:
        return lambda f: _decorate(f, checked)
    return _decorate(function, checked)


def _decorate(function: Any, options: tuple[tuple[str, object], ...]) -> Dispatcher:
    check_decorated("@tack.kernel", function)
    name = function.__name__
    if name == "<lambda>":
        raise CompileTypeError("@tack.kernel does not take a lambda: write 'def name(...):' with the loops as statements", kernel=name)
    flags = function.__code__.co_flags
    if flags & (_VARARGS | _VARKEYWORDS):
        raise CompileNotImplementedError(f"Kernel '{name}': *args and **kwargs have no types: write the parameters one by one", kernel=name)
    if flags & (_GENERATOR | _COROUTINE):
        raise CompileNotImplementedError(
            f"Kernel '{name}': generators and async functions cannot be kernels: write a plain 'def'", kernel=name
        )
    return KernelFunction(function, options).dispatcher


def _defaults(function: FunctionType, names: tuple[str, ...], positional: int) -> tuple[Any, ...]:
    """The defaults from the first parameter on that has one; ABSENT for those after it that have none."""
    own = function.__defaults__ or ()
    by_name = {**dict(zip(names[positional - len(own) : positional], own, strict=True)), **(function.__kwdefaults__ or {})}
    first = next((k for k, name in enumerate(names) if name in by_name), len(names))
    return tuple(by_name.get(name, ABSENT) for name in names[first:])


def _reduce(dispatcher: Dispatcher) -> str | tuple[Any, ...]:
    """How kernels are pickled: by name as functions are, or by value for cloudpickle."""
    if pickled_by_value(dispatcher):
        made = kernel_function(dispatcher)
        return _rebuild, (made.function, made.options, made.source)
    return dispatcher.__qualname__


def _rebuild(function: FunctionType, options: tuple[tuple[str, object], ...], source: SourceText) -> Dispatcher:
    return KernelFunction(function, options, source).dispatcher


copyreg.pickle(_runtime.Dispatcher, _reduce)


def _checked_options(options: dict[str, Any]) -> tuple[tuple[str, object], ...]:
    """The options that are not at their default, checked and in a fixed order."""
    checked: dict[str, object] = {}
    for name, value in options.items():
        if name in ("fast_math", "exact"):
            if not isinstance(value, bool):
                raise TypeError(f"@tack.kernel({name}=): expected a bool, got {value!r}")
            if value:
                checked[name] = value
        elif name in ("block", "simd"):
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"@tack.kernel({name}=): expected an int, got {value!r}")
            if name == "block" and not 1 <= value <= 1024:
                raise ValueError(f"@tack.kernel(block={value}): a group has 1 to 1024 threads")
            if name == "simd" and (value < 1 or value > 64 or value & (value - 1)):
                raise ValueError(f"@tack.kernel(simd={value}): lanes are a power of two from 1 to 64")
            checked[name] = value
        else:
            raise ValueError(f"@tack.kernel has no option {name!r}; there are {_OPTIONS}")
    if "fast_math" in checked and "exact" in checked:
        raise ValueError("@tack.kernel(fast_math=True, exact=True): the two contradict each other, choose one")
    return tuple(sorted(checked.items()))


def compile_for_cpu(name: str, text: str, arch: str, optimize: int, output: str) -> bytes:
    """What the runtime calls to have LLVM IR compiled. llvmlite is imported here, when the first kernel is compiled, and nowhere else."""
    from .runtime.llvm_compiler import compile_ir

    return compile_ir(name, text, arch, optimize, output)


def link_for_cpu(name: str, code: bytes, functions: list[str], imports: dict[str, int]) -> tuple[list[int], object]:
    """What the runtime calls to have machine code linked that is not ELF: on macOS and Windows, for kernels from the disk cache too."""
    from .runtime.llvm_compiler import link_object

    return link_object(name, code, functions, imports)

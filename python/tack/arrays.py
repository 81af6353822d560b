"""tack.Array: a typed, strided view of a device's memory. The storage and the copies are C++; here is what makes it pleasant in Python."""

from __future__ import annotations

import sys

from . import _runtime
from ._runtime import Device
from .devices import as_device, unsupported_dtype
from .layouts import Flags, reshaped_strides
from .types import ARRAY_DTYPES, DType, by_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

    from numpy.typing import NDArray

    from .devices import DeviceLike

__all__ = ["Array", "as_dtype", "numpy_dtype", "wrap_numpy"]

# NumPy's one-letter codes, which are also struct's and the buffer protocol's, in the order of ARRAY_DTYPES.
_FORMATS = dict(zip(ARRAY_DTYPES, "bBhHiIqQfd", strict=True))
_NUMPY_NAMES = dict(
    zip(ARRAY_DTYPES, ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"), strict=True)
)
_BY_NUMPY_NAME = {name: dtype for dtype, name in _NUMPY_NAMES.items()}
_BY_NUMPY_NAME["bool"] = by_name("u8")  # NumPy's bool arrays are taken as u8


def as_dtype(dtype: Any) -> DType:
    """The tack dtype that ``dtype``, a tack or a NumPy dtype, means. Raises TypeError for types that arrays cannot have."""
    if isinstance(dtype, DType):
        if dtype in _FORMATS:
            return dtype
    elif not isinstance(dtype, (str, bytes)):  # "i8" is one byte to tack and eight to NumPy
        numpy = sys.modules.get("numpy")  # a NumPy dtype exists only where NumPy has been imported
        if numpy is not None and (isinstance(dtype, numpy.dtype) or (isinstance(dtype, type) and issubclass(dtype, numpy.generic))):
            found = _BY_NUMPY_NAME.get(numpy.dtype(dtype).name)
            if found is not None:
                return found
            dtype = numpy.dtype(dtype)
    known = ", ".join(str(t) for t in ARRAY_DTYPES)
    raise TypeError(f"{dtype!r} is not a dtype of tack arrays. There are {known}, and NumPy's dtypes of the same types")


_supported: dict[Device, frozenset[str]] = {}  # what each device's arrays may have, so that an allocation need not ask


def check_supported(dtype: DType, device: Device, what: str) -> None:
    """Raises TypeError, naming ``what``, for a dtype that arrays of the device cannot have."""
    supported = _supported.get(device)
    if supported is None:
        supported = _supported[device] = frozenset(device.array_dtypes)
    if dtype.name not in supported:
        raise TypeError(f"{what}: dtype {unsupported_dtype(dtype, device)}")


def numpy_dtype(dtype: DType) -> Any:
    """The NumPy dtype of a tack dtype."""
    import numpy

    return numpy.dtype(_NUMPY_NAMES[dtype])


def as_shape(shape: Any, what: str) -> tuple[int, ...]:
    """A shape given as an int or a sequence of ints, checked."""
    if type(shape) is int and shape >= 0:
        return (shape,)
    dims = (
        tuple(shape) if isinstance(shape, (tuple, list)) or (hasattr(shape, "__iter__") and not hasattr(shape, "__index__")) else (shape,)
    )
    result = []
    for dim in dims:
        if not hasattr(dim, "__index__"):
            raise TypeError(f"{what}: a shape is an int or a tuple of ints, got {shape!r}")
        if dim.__index__() < 0:
            raise ValueError(f"{what}: negative dimension in shape {shape!r}")
        result.append(dim.__index__())
    if len(result) > 8:
        raise ValueError(f"{what}: arrays have at most 8 dimensions, got {len(result)}")
    return tuple(result)


def element_bytes(value: Any, dtype: DType, what: str) -> bytes:
    """The bytes of one element with the value of a Python number or NumPy scalar. Refuses what would not keep its value.

    Raises OverflowError for an integer outside the type's range, TypeError for a float in an integer array or something else than a number.
    """
    import struct

    if not isinstance(value, (bool, int, float)):
        if getattr(value, "shape", None) != () or not hasattr(value, "item"):
            raise TypeError(f"{what}: an element is a number, not {type(value).__name__}")
        value = value.item()
        if not isinstance(value, (bool, int, float)):
            raise TypeError(f"{what}: an element is a real number, not {type(value).__name__}")
    if dtype.is_int:
        if isinstance(value, float):
            raise TypeError(f"{what}: the float {value!r} does not go into an array of {dtype}: write int(value)")
        if not dtype.min <= value <= dtype.max:
            raise OverflowError(f"{what}: {value} does not fit {dtype}, which holds {dtype.min} to {dtype.max}")
        return struct.pack(_FORMATS[dtype], value)
    try:
        return struct.pack(_FORMATS[dtype], value)
    except OverflowError:  # a finite number past the largest f32, or an int past the largest f64
        return struct.pack(_FORMATS[dtype], float("inf") if value > 0 else float("-inf"))


def _refuse(symbol: str) -> Callable[..., NoReturn]:
    def refuse(self: Array, *_: object) -> NoReturn:
        raise TypeError(
            f"tack.Array has no operator '{symbol}': write a kernel that computes it, or use NumPy on a copy (a.numpy()), "
            "or on the memory itself (numpy.asarray(a), on the CPU)"
        )

    return refuse


class Array(_runtime.Array):
    """A typed, strided view of a device's memory. Made by ``tack.empty``, ``tack.array`` and their like; slices are views.

    Attributes: ``dtype`` (a tack dtype), ``shape`` (elements), ``strides`` (bytes), ``ndim``, ``size`` (elements), ``nbytes``,
    ``itemsize``, ``device``, ``T`` (a view with the axes reversed). Reading elements waits for the device's queued work.
    """

    __slots__ = ()
    __array_priority__ = 1000.0  # NumPy's operators leave theirs to an array's, which refuse
    if TYPE_CHECKING:

        def __buffer__(self, flags: int, /) -> memoryview: ...

    @property
    def dtype(self) -> DType:
        return by_name(self.dtype_name)

    @property
    def T(self) -> Array:  # noqa: N802  # as NumPy calls it
        """A view with the axes reversed."""
        return self.transpose()

    @property
    def flags(self) -> Flags:
        """How the array lies in memory and whether it may be written, under NumPy's names."""
        return Flags(self)

    def numpy(self) -> NDArray[Any]:
        """A new NumPy array with the elements. Waits for the device."""
        import numpy

        out = numpy.empty(self.shape, numpy_dtype(self.dtype))
        (self._packed() if self.layout else self).read_into(out)
        return out

    def _packed(self) -> Array:
        from .copies import packed

        return packed(self)

    async def numpy_async(self) -> NDArray[Any]:
        """``await a.numpy_async()``: as numpy(), in a worker thread, while the event loop keeps running.

        The elements are those after all work that was queued before; later work on the array should wait until they are there.
        """
        from .waiting import in_worker

        return await in_worker(self.device, self.numpy)

    def _host(self) -> NDArray[Any]:
        """A NumPy array with the elements, to be read at once: of the memory itself where that is the host's, else a copy."""
        import numpy

        if self.device.host_addressable and not self.device.queued:
            return numpy.asarray(memoryview(self)) if self.ndim else numpy.asarray(memoryview(self)).reshape(())
        return self.numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """As NumPy 2 asks for it: ``copy=None`` copies where it must, True always, False never (ValueError where it would have to).

        Without a copy the NumPy array has the very memory, which later kernels and it then share.
        """
        import numpy

        own = numpy_dtype(self.dtype)
        wanted = own if dtype is None else numpy.dtype(dtype)
        in_place = self.device.host_addressable and wanted == own
        if copy is False and not in_place:
            raise ValueError(f"an array of {self.dtype} on {self.device} cannot become a NumPy array of {wanted} without a copy")
        if in_place and not copy:
            return numpy.asarray(memoryview(self)).reshape(self.shape)
        return self.numpy().astype(wanted, copy=False)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """A DLPack capsule with the array's memory, for another library's ``from_dlpack``. Waits for the device, unless ``stream`` is -1.

        From then on kernels that use the memory are done when their call returns. ``max_version``: the newest DLPack that the other library
        reads, None for those before 1.0. ``dl_device``: the array's own device or the host's (1, 0). ``copy``: True exports a copy, False
        refuses one. Raises BufferError where that cannot be had, and for a read-only array without a version.
        """
        from .sharing import export_dlpack

        return export_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's number of the kind of device, and which one of them."""
        from .sharing import dlpack_device

        return dlpack_device(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Version 3 of the interface; on CUDA devices only. Waits for the device. Shares the memory as ``__dlpack__`` does."""
        from .sharing import cuda_array_interface

        return cuda_array_interface(self)

    def fill(self, value: Any) -> None:
        """Sets every element to ``value``, in the order of the device's queue."""
        self.fill_bytes(element_bytes(value, self.dtype, "fill()"))

    def fill_bytes(self, element: bytes) -> None:
        """Sets every element to the value whose bytes are given."""
        if self.read_only:
            raise ValueError("the array is read-only")
        if self.layout and self.device.queued:
            from .copies import spread

            spread(self, element)
        else:
            _runtime.Array.fill(self, element)

    def copy(self) -> Array:
        """A new contiguous array with the same elements, on the same device."""
        return self._copied_to(self.device, self.dtype_name)

    def _copied_to(self, device: Device, dtype: str) -> Array:
        out = Array(device, dtype, self.shape)
        if dtype == self.dtype_name and not self.layout:
            out.copy_from(self)
        else:
            from .copies import assign

            assign(out, self)
        return out

    def astype(self, dtype: Any) -> Array:
        """A new array of another dtype, converted as a kernel's cast: ints wrap; floats truncate and saturate, NaN gives 0."""
        target = as_dtype(dtype)
        check_supported(target, self.device, "astype()")
        return self._copied_to(self.device, target.name)

    def to_device(self, where: DeviceLike) -> Array:
        """The array itself if ``where`` (a device or its name) can address its memory, else a copy there."""
        target = as_device(where)
        if target.can_address(self.device):
            return self
        check_supported(self.dtype, target, "to_device()")
        return self._copied_to(target, self.dtype_name)

    def item(self) -> int | float:
        """The only element, as a Python number. Raises ValueError unless size is 1."""
        if self.size != 1:
            raise ValueError(f"item() reads the only element of an array; this one has shape {self.shape}")
        return self[(0,) * self.ndim]  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a Python number for 0 dimensions."""
        return self._host().tolist()

    def sum(self, axis: None = None, dtype: None = None, out: None = None) -> int | float:
        """The sum of all elements: exact for integers; for floats NumPy's pairwise sum, for f32 on a GPU its own, in an order that the size
        alone decides. Waits for the device.

        The parameters are those that ``numpy.sum(a)`` passes, here and below; TypeError for anything but None.
        """
        self._whole("sum", axis, dtype, out)
        if self._reduces_itself():
            from .reductions import total

            return total(self)
        from .runtime.host_reduce import exact_sum

        return exact_sum(self._host())

    def min(self, axis: None = None, out: None = None) -> int | float:
        """The smallest element; NaN if there is one. Raises ValueError for an empty array."""
        self._whole("min", axis, out)
        self._not_empty("min()")
        if self._reduces_itself():
            from .reductions import smallest

            return smallest(self)
        return self._host().min().item()  # type: ignore[no-any-return]

    def max(self, axis: None = None, out: None = None) -> int | float:
        """The largest element; NaN if there is one. Raises ValueError for an empty array."""
        self._whole("max", axis, out)
        self._not_empty("max()")
        if self._reduces_itself():
            from .reductions import greatest

            return greatest(self)
        return self._host().max().item()  # type: ignore[no-any-return]

    def mean(self, axis: None = None, dtype: None = None, out: None = None) -> float:
        """The arithmetic mean. Raises ValueError for an empty array."""
        self._whole("mean", axis, dtype, out)
        self._not_empty("mean()")
        return self.sum() / self.size

    def _whole(self, what: str, *given: None) -> None:
        if any(value is not None for value in given):
            raise TypeError(f"Array.{what}() reduces the whole array and takes no axis, dtype or out: write a.numpy().{what}(...)")

    def _reduces_itself(self) -> bool:
        """Whether the device reduces the array; otherwise NumPy does."""
        return self.device.queued and self.dtype_name == "f32"

    def _not_empty(self, what: str) -> None:
        if self.size == 0:
            raise ValueError(f"{what} of an empty array: its shape is {self.shape}")

    # -- views and elements

    def __getitem__(self, key: Any) -> Any:
        view = self._view(key)
        if isinstance(view, tuple):
            if self.device.host_addressable and not self.device.queued:
                return memoryview(self)[view]
            element = memoryview(bytearray(self.itemsize)).cast(_FORMATS[self.dtype], ())  # type: ignore[call-overload]
            self._at(view).read_into(element)
            return element[()]
        return view

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.read_only:
            raise ValueError("the array is read-only")
        view = self._view(key)
        if isinstance(view, tuple):
            view = self._at(view)
            view.fill_bytes(element_bytes(value, self.dtype, f"a[{_key_text(key)}] = ..."))
        elif isinstance(value, (bool, int, float)) or getattr(value, "shape", None) == ():
            view.fill_bytes(element_bytes(value, self.dtype, f"a[{_key_text(key)}] = ..."))
        else:
            from .creation import copyto

            copyto(view, value)

    def _at(self, index: tuple[int, ...]) -> Array:
        """The 0-d view of one element."""
        offset = sum(i * stride for i, stride in zip(index, self.strides, strict=True))
        return Array(self, self.dtype_name, (), (), offset, self.read_only)

    def _view(self, key: Any) -> Array | tuple[int, ...]:
        """What a subscript means: a view, or the non-negative indices of one element."""
        items = key if isinstance(key, tuple) else (key,)
        named = sum(1 for item in items if item is not None and item is not Ellipsis)
        if named > self.ndim:
            raise IndexError(f"{named} indices for an array of {self.ndim} dimension{'s' if self.ndim != 1 else ''}")
        dots = sum(1 for item in items if item is Ellipsis)
        if dots > 1:
            raise IndexError("an index can have only one '...'")
        if not dots:
            items = (*items, Ellipsis)
        shape: list[int] = []
        strides: list[int] = []
        index: list[int] = []
        offset = axis = 0
        for item in items:
            if item is Ellipsis:
                for _ in range(self.ndim - named):
                    shape.append(self.shape[axis])
                    strides.append(self.strides[axis])
                    axis += 1
            elif item is None:
                shape.append(1)
                strides.append(0)
            elif isinstance(item, slice):
                start, stop, step = item.indices(self.shape[axis])
                count = len(range(start, stop, step))
                offset += start * self.strides[axis] if count else 0
                shape.append(count)
                strides.append(step * self.strides[axis])
                axis += 1
            elif hasattr(item, "__index__") and not isinstance(item, bool) and getattr(item, "ndim", 0) == 0:
                at = item.__index__()
                length = self.shape[axis]
                if not -length <= at < length:
                    raise IndexError(f"index {at} is out of range for axis {axis} of length {length}")
                index.append(at % length)
                offset += index[-1] * self.strides[axis]
                axis += 1
            else:
                raise TypeError(
                    f"arrays are indexed by ints, slices, '...' and None, not by {type(item).__name__}: "
                    "for a gather or a mask write a kernel, or use NumPy on a.numpy()"
                )
        if len(index) == self.ndim and not shape and not dots:
            return tuple(index)
        if 0 in shape:
            offset = 0  # nothing is addressed, wherever it would lie
        return Array(self, self.dtype_name, tuple(shape), tuple(strides), offset, self.read_only)

    def reshape(self, *shape: Any) -> Array:
        """A view with another shape of the same size; one dimension may be -1. Raises ValueError where only a copy could have it."""
        dims = list(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else list(shape)
        unknown = [i for i, dim in enumerate(dims) if dim == -1]
        known = 1
        for i, dim in enumerate(dims):
            known *= 1 if i in unknown else dim
        if len(unknown) == 1 and known > 0 and self.size % known == 0:
            dims[unknown[0]] = self.size // known
            unknown, known = [], self.size
        new = as_shape(tuple(dims), "reshape()") if not unknown else ()
        if unknown or known != self.size:
            raise ValueError(f"an array of shape {self.shape} ({self.size} elements) cannot become shape {tuple(shape)}")
        strides = reshaped_strides(self.shape, self.strides, new, self.itemsize)
        if strides is None:
            raise ValueError(
                f"reshape() makes views, and this array of strides {self.strides} has none of shape {new}: write a.copy().reshape(...)"
            )
        return Array(self, self.dtype_name, new, strides, 0, self.read_only)

    def ravel(self) -> Array:
        """The elements in row-major order, in one dimension: a view where the array's layout allows one, else a copy."""
        if reshaped_strides(self.shape, self.strides, (self.size,), self.itemsize) is None:
            return self.copy().reshape(self.size)
        return self.reshape(self.size)

    def transpose(self, *axes: Any) -> Array:
        """A view with the axes in another order: ``a.transpose(1, 0)``, ``a.transpose((1, 0))``; reversed where none are given."""
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = () if axes[0] is None else tuple(axes[0])
        order = [axis.__index__() for axis in axes] if axes else list(range(self.ndim))[::-1]
        places = [axis + self.ndim if axis < 0 else axis for axis in order]
        if sorted(places) != list(range(self.ndim)):
            raise ValueError(f"transpose({', '.join(map(str, order))}): an array of {self.ndim} dimensions takes each axis once")
        shape, strides = tuple(self.shape[p] for p in places), tuple(self.strides[p] for p in places)
        return Array(self, self.dtype_name, shape, strides, 0, self.read_only)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d array")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"the truth of an array of {self.size} elements is ambiguous: use a.size, or NumPy's any() or all() on a.numpy()"
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if self.ndim or not self.dtype.is_int:
            raise TypeError(f"an array of shape {self.shape} and dtype {self.dtype} is not an index: write int(a[i])")
        return int(self.item())

    def __copy__(self) -> Array:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Array:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.numpy(),)

    def __repr__(self) -> str:
        about = f"shape={self.shape}, dtype={self.dtype}, device='{self.device}'"
        if self.size == 0 or self.ndim == 0 or (not self.device.host_addressable and self.size > 1000):
            return f"tack.Array({about})" if self.ndim else f"tack.Array({self.tolist()}, {about})"
        import numpy

        text = numpy.array2string(self._host(), threshold=40, edgeitems=3, separator=", ", prefix="tack.Array(")
        return f"tack.Array({text}, {about})"

    __hash__ = object.__hash__  # arrays are mutable: equal only to themselves in sets and dicts

    def __eq__(self, other: object) -> Any:
        if other is None or isinstance(other, (str, bytes, type)):
            return False
        return _refuse("==")(self)

    def __ne__(self, other: object) -> Any:
        if other is None or isinstance(other, (str, bytes, type)):
            return True
        return _refuse("!=")(self)


def _key_text(key: Any) -> str:
    return ", ".join(map(repr, key)) if isinstance(key, tuple) else repr(key)


def _unpickle(values: NDArray[Any]) -> Array:
    from .creation import array

    return array(values)


def wrap_numpy(values: NDArray[Any], device: Device) -> Array:
    """An array on the memory of a NumPy array, which it keeps alive. ``device`` must address host memory.

    Raises TypeError for an unsupported dtype, ValueError for misaligned or byte-swapped memory and odd strides.
    """
    dtype = as_dtype(values.dtype)
    check_numpy(values, "the NumPy array")
    pointer = values.__array_interface__["data"][0]
    return Array(device, pointer, dtype.name, values.shape, values.strides, not values.flags.writeable, values, True)


def check_numpy(values: NDArray[Any], what: str) -> None:
    """Refuses NumPy arrays that kernels cannot use in place."""
    if not values.dtype.isnative:
        raise ValueError(f"{what} is byte-swapped: pass np.ascontiguousarray(a, a.dtype.newbyteorder('='))")
    if any(stride % values.itemsize for stride in values.strides):
        raise ValueError(
            f"{what} has strides {values.strides}, which are no multiples of its item size {values.itemsize}: pass np.ascontiguousarray(a)"
        )
    if not values.flags.aligned:  # np.ascontiguousarray would leave contiguous memory where it is
        raise ValueError(f"{what} is not aligned to its item size: pass a.copy() (np.ascontiguousarray(a) may leave it as it is)")


_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow", "@": "matmul", "&": "and", "|": "or",
    "^": "xor", "<<": "lshift", ">>": "rshift", "divmod()": "divmod",
}  # fmt: skip
for _symbol, _name in _OPERATORS.items():
    for _form in (f"__{_name}__", f"__r{_name}__", f"__i{_name}__"):
        setattr(Array, _form, _refuse(_symbol))
for _symbol, _name in {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "-a": "neg", "+a": "pos", "~a": "invert", "abs()": "abs"}.items():
    setattr(Array, f"__{_name}__", _refuse(_symbol))
_runtime.set_array_type(Array, ARRAY_DTYPES)

// array.cpp -- Array: new ones, views, wraps of other objects' memory; copies from and to buffers.
#include "tack/array.hpp"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "buffers.h"
#include "state.h"

namespace tack::python {

namespace {

using Dims = std::vector<std::int64_t>;

void make_empty(Array* self, Device& device, const std::string& dtype, const Dims& shape) {
  const std::shared_ptr<Device> shared = device.shared_from_this();
  std::construct_at(self, Array::empty(shared, dtype_from_name(dtype), shape));
}

/// The lengths of an ordinary shape, an int or a tuple of ints that are not negative; nothing for any other.
std::optional<std::span<const std::int64_t>> plain_shape(nb::handle shape, std::array<std::int64_t, max_rank>& lengths) {
  const bool one = PyLong_CheckExact(shape.ptr()) != 0;
  if (!one && PyTuple_CheckExact(shape.ptr()) == 0) return std::nullopt;
  const std::size_t rank = one ? 1 : static_cast<std::size_t>(PyTuple_Size(shape.ptr()));
  if (rank > max_rank) return std::nullopt;
  for (std::size_t d = 0; d < rank; ++d) {
    PyObject* const item = one ? shape.ptr() : PyTuple_GetItem(shape.ptr(), static_cast<Py_ssize_t>(d));
    if (PyLong_CheckExact(item) == 0) return std::nullopt;
    int overflow = 0;
    lengths[d] = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (overflow != 0 || lengths[d] < 0) return std::nullopt;
  }
  return std::span<const std::int64_t>(lengths.data(), rank);
}

/// A new array without Python's detours, where all that is given is as it mostly is; else None, and Python looks at it more closely.
nb::object new_array(nb::handle shape, nb::handle dtype, nb::handle device) {
  State& s = state();
  const auto known = std::find(s.dtypes.begin(), s.dtypes.end(), dtype.ptr());
  Device* where = device.is_none() ? &default_device() : nullptr;
  std::array<std::int64_t, max_rank> lengths;  // filled as far as it is read
  const auto plain = plain_shape(shape, lengths);
  if (known == s.dtypes.end() || !plain || (where == nullptr && !nb::try_cast(device, where))) return nb::none();
  const auto index = static_cast<std::size_t>(known - s.dtypes.begin());
  if ((where->capabilities().array_dtypes >> index & 1u) == 0) return nb::none();
  nb::object made = nb::inst_alloc(reinterpret_cast<PyObject*>(s.array_type));
  std::construct_at(nb::inst_ptr<Array>(made), Array::empty(where->shared_from_this(), array_dtypes[index], *plain));
  nb::inst_mark_ready(made);
  return made;
}

void make_view(Array* self, const Array& base, const std::string& dtype, const Dims& shape, const Dims& strides, std::int64_t offset,
               bool read_only) {
  const std::int64_t origin = base.data() - static_cast<const std::byte*>(base.buffer()->pointer());
  std::construct_at(self, Array::view(base.buffer(), dtype_from_name(dtype), shape, strides, origin + offset, read_only));
}

void make_wrap(Array* self, Device& device, std::uintptr_t pointer, const std::string& dtype, const Dims& shape, const Dims& strides,
               bool read_only, nb::object owner, bool shared) {
  const DType type = dtype_from_name(dtype);
  if (strides.size() != shape.size()) throw Error(ErrorCode::invalid_argument, "An array needs as many strides as dimensions");
  const ByteRange range = byte_range(shape, strides, type.size());
  const auto first = static_cast<std::int64_t>(pointer);
  if (const std::size_t scalar = type.size() / type.lanes; pointer % scalar != 0) {
    throw Error(ErrorCode::invalid_argument, "The address " + std::to_string(pointer) + " is no multiple of the " + std::to_string(scalar) +
                                                 " bytes of " + dtype + "; copy misaligned memory with np.ascontiguousarray first");
  }
  auto keep = std::make_shared<Shared>(std::move(owner));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what Python hands over
  auto* low = reinterpret_cast<void*>(static_cast<std::uintptr_t>(first + range.low));
  auto buffer = Buffer::wrap(
      device.shared_from_this(), low, static_cast<std::size_t>(range.high - range.low),
      [keep = std::move(keep)]() mutable { keep.reset(); }, shared);
  std::construct_at(self, Array::view(std::move(buffer), type, shape, strides, -range.low, read_only));
}

/// Checks that a buffer has the array's dtype and shape; what it lacks is a ValueError or TypeError.
void match(const Array& a, BufferView& view, const char* what) {
  const auto dtype = view.dtype();
  if (dtype != a.dtype()) {
    throw Error(ErrorCode::type_mismatch, std::string(what) + " has dtype " + (dtype ? name_of(*dtype) : std::string(view->format)) +
                                              ", the array " + name_of(a.dtype()) + "; convert it with astype() first");
  }
  const auto shape = view->ndim <= max_rank ? view.shape() : std::span<const std::int64_t>{};
  if (view->ndim != a.rank() || !std::equal(shape.begin(), shape.end(), a.shape().begin())) {
    const std::string theirs = nb::repr(int_tuple(shape)).c_str();
    throw Error(ErrorCode::invalid_argument,
                std::string(what) + " has shape " + theirs + ", the array " + nb::repr(int_tuple(a.shape())).c_str());
  }
}

void read_into(const Array& a, nb::handle destination) {
  BufferView view;
  if (!view.acquire(destination.ptr(), PyBUF_RECORDS)) throw nb::python_error();
  match(a, view, "The destination");
  const auto strides = view.strides();
  const MaybeRelease release(a.bytes() > release_above_bytes || queued(a));
  a.read(view->buf, strides);
}

void write_from(const Array& a, nb::handle source) {
  BufferView view;
  if (!view.acquire(source.ptr(), PyBUF_RECORDS_RO)) throw nb::python_error();
  match(a, view, "The source");
  const auto strides = view.strides();
  const MaybeRelease release(a.bytes() > release_above_bytes || queued(a));
  a.write(view->buf, strides);
  finish_shared(a);
}

void copy_from(const Array& a, const Array& source) {
  const MaybeRelease release(a.bytes() > release_above_bytes || queued(a) || queued(source));
  a.copy_from(source);
  finish_shared(a);
  finish_shared(source);
}

void fill(const Array& a, const nb::bytes& element) {
  if (element.size() != a.dtype().size()) {
    throw Error(ErrorCode::invalid_argument, "fill() was given " + std::to_string(element.size()) + " bytes; an element of the array has " +
                                                 std::to_string(a.dtype().size()));
  }
  const MaybeRelease release(a.bytes() > release_above_bytes || (queued(a) && a.buffer()->shared()));
  a.fill(element.data());
  finish_shared(a);
}

PyType_Slot array_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(&array_getbuffer)},
                             {Py_bf_releasebuffer, reinterpret_cast<void*>(&array_releasebuffer)},
                             {0, nullptr}};

}  // namespace

void bind_array(nb::module_& m) {
  nb::class_<Array> cls(
      m, "Array", nb::is_weak_referenceable(), nb::type_slots(array_slots),
      "A typed, strided view of a device's memory; views share it. Strides are in bytes. Arrays that the host can address "
      "have the buffer protocol.");
  cls.def("__init__", &make_empty, nb::arg("device"), nb::arg("dtype"), nb::arg("shape"),
          nb::sig("def __init__(self, device: Device, dtype: str, shape: collections.abc.Sequence[int]) -> None"),
          "A new contiguous array, uninitialised.")
      .def("__init__", &make_view, nb::arg("base"), nb::arg("dtype"), nb::arg("shape"), nb::arg("strides"), nb::arg("offset"),
           nb::arg("read_only"),
           nb::sig(
               "def __init__(self, base: Array, dtype: str, shape: collections.abc.Sequence[int], strides: collections.abc.Sequence[int], "
               "offset: int, read_only: bool) -> None"),
           "A view of the base's memory; ``offset`` is in bytes from the base's element 0. ValueError when it would leave that memory.")
      .def("__init__", &make_wrap, nb::arg("device"), nb::arg("pointer"), nb::arg("dtype"), nb::arg("shape"), nb::arg("strides"),
           nb::arg("read_only"), nb::arg("owner").none(), nb::arg("shared"),
           nb::sig("def __init__(self, device: Device, pointer: int, dtype: str, shape: collections.abc.Sequence[int], strides: "
                   "collections.abc.Sequence[int], read_only: bool, owner: object, shared: bool) -> None"),
           "Memory of ``owner``, which is kept alive, by the address of element 0.")
      .def_prop_ro("dtype_name", [](const Array& a) { return name_of(a.dtype()); })
      .def_prop_ro(
          "shape", [](const Array& a) { return int_tuple(a.shape()); }, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "strides", [](const Array& a) { return int_tuple(a.strides()); }, nb::sig("def strides(self) -> tuple[int, ...]"))
      .def_prop_ro("ndim", &Array::rank)
      .def_prop_ro("size", &Array::size)
      .def_prop_ro("nbytes", &Array::bytes)
      .def_prop_ro("itemsize", [](const Array& a) { return a.dtype().size(); })
      .def_prop_ro(
          "device", [](const Array& a) { return device_object(a.device()); }, nb::sig("def device(self) -> Device"))
      .def_prop_ro(
          "pointer", [](const Array& a) { return reinterpret_cast<std::uintptr_t>(a.data()); }, "Device address of element 0.")
      .def_prop_ro(
          "layout", [](const Array& a) { return static_cast<int>(a.layout()); }, "A tack.types.Layout.")
      .def_prop_ro("read_only", &Array::read_only)
      .def_prop_ro(
          "shared", [](const Array& a) { return a.buffer()->shared(); }, "Shared with another library: launches complete at once.")
      .def(
          "mark_shared", [](const Array& a) { a.buffer()->mark_shared(); }, "Says that another library sees this memory from now on.")
      .def("read_into", &read_into, nb::arg("destination"), nb::sig("def read_into(self, destination: object) -> None"),
           "Copies the elements to any writable buffer of the same dtype and shape; waits until they are there.")
      .def("write_from", &write_from, nb::arg("source"), nb::sig("def write_from(self, source: object) -> None"),
           "Copies the elements from any buffer of the same dtype and shape.")
      .def("copy_from", &copy_from, nb::arg("source"), "Copies from an array of the same dtype and shape on any device.")
      .def("fill", &fill, nb::arg("element"), "Sets every element to the value whose ``itemsize`` bytes are given.");

  State& s = state();
  s.array_base = reinterpret_cast<PyTypeObject*>(cls.ptr());
  s.array_type = s.array_base;
  Py_INCREF(reinterpret_cast<PyObject*>(s.array_base));
  Py_INCREF(reinterpret_cast<PyObject*>(s.array_type));
  m.def(
      "set_array_type",
      [](nb::type_object type, const nb::tuple& dtypes) {
        State& st = state();
        if (dtypes.size() != st.dtypes.size()) throw nb::value_error("set_array_type(): as many dtypes as arrays can have are needed");
        if (PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(type.ptr()), st.array_base) == 0)
          throw nb::type_error("set_array_type(): the class must derive from tack._runtime.Array");
        Py_DECREF(reinterpret_cast<PyObject*>(st.array_type));
        st.array_type = reinterpret_cast<PyTypeObject*>(type.release().ptr());
        for (std::size_t i = 0; i < st.dtypes.size(); ++i) st.dtypes[i] = nb::object(dtypes[i]).release().ptr();
      },
      nb::arg("cls"), nb::arg("dtypes"), nb::sig("def set_array_type(cls: type[Array], dtypes: tuple[object, ...]) -> None"),
      "The class that kernel arguments are expected to have, so that it is tested first, and that new_array() makes; and the package's "
      "dtypes "
      "of arrays, in the documented order.");
  m.def("new_array", &new_array, nb::arg("shape"), nb::arg("dtype"), nb::arg("device").none(),
        nb::sig("def new_array(shape: object, dtype: object, device: object) -> typing.Any"),
        "A new contiguous array, uninitialised, of the class and the dtypes that were set: for an int or a tuple of ints, a dtype that the "
        "device has, and a device or None, the default one. None for anything else, which Python checks and converts first.");
}

}  // namespace tack::python

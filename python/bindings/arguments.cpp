// arguments.cpp -- takes Python objects as kernel arguments, own arrays and Python's numbers first.
#include "arguments.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>

#include "exchange.h"
#include "texture.h"

namespace tack::python {

namespace {

/// numpy's types, found once numpy is loaded by somebody. Guarded by the GIL (or State::mutex); the types live as long as numpy.
struct NumpyTypes {
  PyTypeObject* ndarray = nullptr;
  std::vector<std::pair<PyTypeObject*, DType>> scalars;
};

void find_numpy_types(NumpyTypes& types, nb::handle numpy) {
  // Several names may be one type, and which C type np.int64 is depends on the platform: the dtype tells.
  static constexpr const char* names[] = {"bool_",  "int8", "uint8", "int16",    "uint16",    "int32",   "uint32", "int64",
                                          "uint64", "intc", "uintc", "longlong", "ulonglong", "float32", "float64"};
  const nb::object ndarray = attribute(numpy, "ndarray"), dtype = attribute(numpy, "dtype");
  if (!ndarray.is_valid() || !dtype.is_valid()) return;  // numpy is being imported right now
  for (const char* name : names) {
    nb::object type = attribute(numpy, name);
    if (!type.is_valid()) continue;
    const nb::object described = dtype(type);
    const std::string kind = nb::cast<std::string>(described.attr("kind"));
    const int bits = nb::cast<int>(described.attr("itemsize")) * 8;
    const TypeCode code = kind == "b" ? TypeCode::bool_ : kind == "i" ? TypeCode::int_ : kind == "u" ? TypeCode::uint : TypeCode::float_;
    types.scalars.emplace_back(reinterpret_cast<PyTypeObject*>(type.release().ptr()), DType{code, static_cast<std::uint8_t>(bits)});
  }
  types.ndarray = reinterpret_cast<PyTypeObject*>(nb::object(ndarray).release().ptr());
}

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): where there is no memory for it, nothing can be loaded
NumpyTypes* const found_types = std::make_unique<NumpyTypes>().release();  // never destroyed: it holds Python references

const NumpyTypes& numpy_types() {
  NumpyTypes& types = *found_types;
  if (types.ndarray == nullptr) [[unlikely]] {
    PyObject* modules = PyImport_GetModuleDict();  // borrowed
    PyObject* numpy = modules != nullptr ? PyDict_GetItemString(modules, "numpy") : nullptr;
    if (numpy != nullptr) {
      const nb::ft_lock_guard lock(state().mutex);
      if (types.ndarray == nullptr) find_numpy_types(types, numpy);
    }
  }
  return types;
}

/// Whether a NumPy array's memory was allocated by NumPy for it, or for an array that it is a view of: no file, no other process's, none of
/// another library.
bool owns_memory(nb::handle array) {
  const NumpyTypes& numpy = numpy_types();
  nb::object owner = nb::borrow(array);
  while (PyType_IsSubtype(Py_TYPE(owner.ptr()), numpy.ndarray) != 0) {
    nb::object base = attribute(owner, "base");
    if (!base.is_valid()) return false;
    if (base.is_none()) {
      const nb::object flags = attribute(owner, "flags");
      const nb::object owns = flags.is_valid() ? attribute(flags, "owndata") : nb::object();
      return owns.ptr() == Py_True;
    }
    owner = std::move(base);
  }
  return false;
}

KnownDevice& known_device(Device& device) {
  State& s = state();
  const auto known = std::find_if(s.devices.begin(), s.devices.end(), [&](const KnownDevice& k) { return k.device.get() == &device; });
  if (known == s.devices.end()) throw Error(ErrorCode::internal, "the device '" + device.name() + "' is not known");
  return *known;
}

std::shared_ptr<Buffer> wrap_all(const std::shared_ptr<Device>& device, bool shared) {
  // From address 1: a null pointer is no memory. Half of the addresses: no system gives a process the other half.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  auto* const first = reinterpret_cast<void*>(std::uintptr_t{1});
  return Buffer::wrap(device, first, std::numeric_limits<std::size_t>::max() / 2, {}, shared);
}

}  // namespace

void Arguments::find_unshared() {
  for (std::size_t k = 0; k < foreign_.size(); ++k) {
    ForeignArray& foreign = foreign_[k];
    if (!foreign.numpy || !owns_memory(foreign.view->obj)) continue;
    const Array& array = foreign.array;
    const nb::ft_lock_guard lock(state().mutex);
    KnownDevice& known = known_device(array.device());
    if (!known.own_memory) known.own_memory = wrap_all(known.device, false);
    const std::int64_t offset = array.data() - static_cast<std::byte*>(known.own_memory->pointer());
    // Not counted, as all_memory_of() says.
    foreign.array = Array::view({std::shared_ptr<Buffer>(), known.own_memory.get()}, array.dtype(), array.shape(), array.strides(), offset,
                                array.read_only());
  }
}

std::shared_ptr<Buffer> all_memory_of(Device& device) {
  State& s = state();
  const nb::ft_lock_guard lock(s.mutex);
  if (s.all_memory == nullptr || s.all_memory->device().get() != &device) {
    KnownDevice& known = known_device(device);
    if (!known.all_memory) known.all_memory = wrap_all(known.device, true);
    s.all_memory = known.all_memory.get();
  }
  // Not counted: two atomic operations for every argument would be.
  return {std::shared_ptr<Buffer>(), s.all_memory};
}

Device& host_device() {
  Device& current = default_device();
  return &current == state().cpu || current.type() == "cpu" ? current : cpu_device();
}

std::optional<DType> numpy_scalar_dtype(PyTypeObject* type) {
  for (const auto& [known, dtype] : numpy_types().scalars)
    if (known == type) return dtype;
  return std::nullopt;
}

ForeignArray& ForeignArrays::add() {
  if (size_ < usual) {
    auto* made = std::construct_at(reinterpret_cast<ForeignArray*>(small_) + size_);
    ++size_;
    return *made;
  }
  more_.push_back(std::make_unique<ForeignArray>());
  ++size_;
  return *more_.back();
}

const ForeignArray& ForeignArrays::at(std::size_t k) const noexcept {
  return k < usual ? reinterpret_cast<const ForeignArray*>(small_)[k] : *more_[k - usual];
}

const ForeignArray* ForeignArrays::find(std::size_t position) const noexcept {
  for (std::size_t k = 0; k < size_; ++k)
    if (at(k).position == position) return &at(k);
  return nullptr;
}

void ForeignArrays::clear() noexcept { std::destroy_n(reinterpret_cast<ForeignArray*>(small_), std::min(size_, usual)); }

void Arguments::add_device(std::size_t i, Device& device) {
  if (device_ == nullptr) {
    device_ = &device;
    first_ = i;
  } else if (joined_ && !device_->can_address(device)) {
    joined_ = false;
    other_ = i;
  }
}

Taken Arguments::take_rarer(std::size_t i, PyObject* object) {
  using Kind = ArgumentSpec::Kind;
  PyTypeObject* type = Py_TYPE(object);
  if (type == &PyLong_Type) return take_int(i, object);
  if (const NumpyTypes& numpy = numpy_types(); type == numpy.ndarray) return take_numpy_array(i, object) ? Taken::yes : Taken::no;
  if (type == &PyBool_Type) {
    scalar(i, key_word(Kind::boolean), Argument(object == Py_True));
    return Taken::yes;
  }
  if (object == Py_None) {
    scalar(i, key_word(Kind::none), Argument());
    return Taken::yes;
  }
  if (has_exchange_api(type)) return take_tensor(i, object) ? Taken::yes : Taken::no;
  return take_other(i, object);
}

Taken Arguments::take_int(std::size_t i, PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) {
    scalar(i, key_word(ArgumentSpec::Kind::integer), Argument(static_cast<std::int64_t>(value)));
    return Taken::yes;
  }
  if (overflow < 0) return Taken::too_large;
  const unsigned long long big = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    return Taken::too_large;
  }
  scalar(i, key_word(ArgumentSpec::Kind::unsigned_), Argument(big));
  return Taken::yes;
}

Taken Arguments::take_other(std::size_t i, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (PyType_IsSubtype(type, state().array_base) != 0) {
    if (!nb::inst_ready(object)) return Taken::no;
    add_array(i, *nb::inst_ptr<Array>(object));
    return Taken::yes;
  }
  if (PyType_IsSubtype(type, state().texture_base) != 0) {
    if (!nb::inst_ready(object)) return Taken::no;
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it is empty only while it is made or freed
    const Texture& texture = *nb::inst_ptr<HeldTexture>(object)->texture;
    add_array(i, texture.texels());
    key_[i + 1] |= static_cast<KeyWord>(texture.reading()) << 40;
    values_[i] = Argument(texture);
    return Taken::yes;
  }
  if (const NumpyTypes& numpy = numpy_types(); numpy.ndarray != nullptr) {
    if (PyType_IsSubtype(type, numpy.ndarray) != 0) return take_numpy_array(i, object) ? Taken::yes : Taken::no;
    if (const auto dtype = numpy_scalar_dtype(type)) {
      take_numpy_scalar(i, object, *dtype);
      return Taken::yes;
    }
  }
  // Subclasses of Python's numbers (enum.IntEnum) are their values. np.float64 is one too, but was found above.
  if (PyLong_Check(object)) return take_int(i, object);
  if (PyFloat_Check(object)) {
    scalar(i, key_word(ArgumentSpec::Kind::floating), Argument(PyFloat_AsDouble(object)));
    return Taken::yes;
  }
  return (find_exchange_api(type) ? take_tensor(i, object) : take_described(i, object)) ? Taken::yes : Taken::no;
}

bool Arguments::take_tensor(std::size_t i, PyObject* object) {
  ForeignArray& foreign = foreign_.add();
  foreign.position = i;
  try {
    borrow(object, foreign.array);
  } catch (nb::python_error&) {
    return false;  // whoever words the refusal asks again
  } catch (const Error&) {
    return false;
  }
  add_array(i, foreign.array);
  return true;
}

/// A tensor whose library has no functions for C: Python asks it.
bool Arguments::take_described(std::size_t i, PyObject* object) {
  if (!attribute(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__dlpack__").is_valid() &&
      !attribute(object, "__cuda_array_interface__").is_valid())
    return false;
  nb::object held;
  try {
    held = nb::module_::import_("tack.sharing").attr("borrowed")(nb::handle(object));
  } catch (nb::python_error&) {
    return false;
  }
  if (PyType_IsSubtype(Py_TYPE(held.ptr()), state().array_base) == 0) return false;
  ForeignArray& foreign = foreign_.add();
  foreign.position = i;
  foreign.array = *nb::inst_ptr<Array>(held);
  foreign.held = std::move(held);
  add_array(i, foreign.array);
  return true;
}

void Arguments::take_numpy_scalar(std::size_t i, PyObject* object, DType type) {
  Argument value;
  KeyWord word = key_word(ArgumentSpec::Kind::strong, detail_of(type));
  if (type.code == TypeCode::bool_) {
    value = Argument(PyObject_IsTrue(object) == 1);
    word = key_word(ArgumentSpec::Kind::boolean);  // bools are weak, NumPy's too
  } else if (type.is_float()) {
    value = Argument(PyFloat_AsDouble(object));
  } else {
    const nb::object index = nb::steal(PyNumber_Index(object));
    if (!index.is_valid()) throw nb::python_error();
    value = type.code == TypeCode::uint ? Argument(PyLong_AsUnsignedLongLong(index.ptr())) : Argument(PyLong_AsLongLong(index.ptr()));
  }
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  scalar(i, word, value);
}

bool Arguments::take_numpy_array(std::size_t i, PyObject* object) {
  ForeignArray& foreign = foreign_.add();
  foreign.position = i;
  BufferView& view = foreign.view;
  if (!view.acquire(object, PyBUF_RECORDS_RO)) {
    PyErr_Clear();  // a dtype that the buffer protocol cannot say, such as datetime64
    return false;
  }
  const auto dtype = view.dtype();
  if (!dtype || view->ndim > max_rank) return false;
  const std::size_t item = dtype->size();
  const auto shape = view.shape(), strides = view.strides();
  const auto address = reinterpret_cast<std::uintptr_t>(view->buf);
  if (address % item != 0 && view->len != 0) return false;
  for (const std::int64_t stride : strides)
    if ((static_cast<std::size_t>(stride) & (item - 1)) != 0) return false;  // items of 1, 2, 4 or 8 bytes
  foreign.numpy = true;
  std::shared_ptr<Buffer> memory = all_memory_of(host_device());
  const auto offset = static_cast<std::int64_t>(address - reinterpret_cast<std::uintptr_t>(memory->pointer()));
  foreign.array = Array::view(std::move(memory), *dtype, shape, strides, offset, view->readonly != 0);
  add_array(i, foreign.array);
  return true;
}

PyObject* to_python(const Result& result) noexcept {
  if (!result.present) return Py_NewRef(Py_None);
  switch (result.type.code) {
    case TypeCode::bool_:
      return PyBool_FromLong(result.i & 1);
    case TypeCode::uint:
      return PyLong_FromUnsignedLongLong(result.u);
    case TypeCode::int_:
      return PyLong_FromLongLong(result.i);
    case TypeCode::float_:
      break;
  }
  return PyFloat_FromDouble(result.f);
}

}  // namespace tack::python

// dlpack.cpp -- arrays handed to other libraries and taken from them, as DLPack capsules.
#include "dlpack/dlpack.h"

#include <array>
#include <memory>
#include <type_traits>

#include "arguments.h"
#include "exchange.h"
#include "state.h"

namespace tack::python {

namespace {

/// What an exported structure needs for as long as somebody uses it. It holds the memory and no Python object, so that any thread may end
/// it, with or without the GIL.
template <class Managed>
struct Export {
  Managed managed{};
  Array array;
  std::array<std::int64_t, max_rank> shape{}, strides{};

  static void end(Managed* self) noexcept { std::unique_ptr<Export>(static_cast<Export*>(self->context)).reset(); }
};

template <class Managed>
constexpr const char* name_of_capsule =
    std::is_same_v<Managed, dlpack::ManagedTensor> ? dlpack::capsule_name : dlpack::versioned_capsule_name;
template <class Managed>
constexpr const char* used_name =
    std::is_same_v<Managed, dlpack::ManagedTensor> ? dlpack::used_capsule_name : dlpack::used_versioned_capsule_name;

/// Ends a structure that nobody has taken out of its capsule.
template <class Managed>
void end_capsule(PyObject* capsule) noexcept {
  if (PyCapsule_IsValid(capsule, name_of_capsule<Managed>) == 0) return;
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name_of_capsule<Managed>));
  if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
}

template <class Managed>
nb::object export_as(const Array& a, dlpack::Device device, std::uint64_t flags) {
  auto made = std::make_unique<Export<Managed>>();
  made->array = a;
  dlpack::Tensor& tensor = made->managed.tensor;
  const auto item = static_cast<std::int64_t>(a.dtype().size());
  for (std::size_t d = 0; d < a.shape().size(); ++d) {
    made->shape[d] = a.shape()[d];
    made->strides[d] = a.strides()[d] / item;
  }
  const MemoryHandle memory = a.device().handle_of(a.data());
  tensor.data = memory.object;
  tensor.byte_offset = memory.offset;
  tensor.device = device;
  tensor.ndim = a.rank();
  tensor.dtype = {static_cast<dlpack::TypeCode>(a.dtype().code), a.dtype().bits, a.dtype().lanes};  // the same numbers
  tensor.shape = made->shape.data();
  tensor.strides = made->strides.data();
  made->managed.deleter = &Export<Managed>::end;
  if constexpr (std::is_same_v<Managed, dlpack::VersionedTensor>) {
    made->managed.version = {dlpack::major_version, dlpack::minor_version};
    made->managed.flags = flags;
  }
  nb::object capsule = nb::steal(PyCapsule_New(&made->managed, name_of_capsule<Managed>, &end_capsule<Managed>));
  if (!capsule.is_valid()) throw nb::python_error();
  made->managed.context = made.get();
  static_cast<void>(made.release());  // the capsule's from here on
  return capsule;
}

nb::object to_capsule(const Array& a, std::int32_t device_type, std::int32_t device_id, bool versioned, bool copied) {
  const dlpack::Device device{static_cast<dlpack::DeviceType>(device_type), device_id};
  if (!versioned) return export_as<dlpack::ManagedTensor>(a, device, 0);
  const std::uint64_t flags = (a.read_only() ? dlpack::flag_read_only : 0) | (copied ? dlpack::flag_is_copied : 0);
  return export_as<dlpack::VersionedTensor>(a, device, flags);
}

/// A structure that was taken out of its capsule, and its memory where that has no address by itself. Ended when Python lets go of it.
template <class Managed>
struct Taken {
  std::shared_ptr<void> memory;
  Managed* managed = nullptr;
  Taken() = default;
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    memory.reset();
    if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
  }
};

/// Metal names memory by an object: the memory then, and its address in `layout`.
std::shared_ptr<void> adopt_object(const dlpack::Tensor& tensor, TensorLayout& layout) {
  if (tensor.device.type != dlpack::DeviceType::metal || tensor.data == nullptr) return nullptr;
  std::shared_ptr<void> memory = state().runtime->device("metal")->adopt(tensor.data);
  layout.address = reinterpret_cast<std::uintptr_t>(memory.get()) + static_cast<std::uintptr_t>(tensor.byte_offset);
  return memory;
}

/// tack's element type, or a TypeError.
DType dtype_of(const dlpack::DataType& type) {
  DType found{static_cast<TypeCode>(type.code), type.bits, type.lanes};
  if (found == bool8) found = u8;
  if (dtype_index(found) >= 0) return found;
  throw Error(ErrorCode::type_mismatch, "from_dlpack(): elements of DLPack type code " + std::to_string(static_cast<int>(type.code)) +
                                            " with " + std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) +
                                            " lanes have no tack dtype; convert the array where it comes from");
}

/// (device type, device id, address, dtype, shape, strides in bytes, read-only, owner): all that an array on the memory needs.
template <class Managed>
nb::tuple taken(nb::handle capsule, Managed* managed, bool read_only) {
  const dlpack::Tensor& tensor = managed->tensor;
  TensorLayout layout = layout_of(tensor);
  auto held = std::make_unique<Taken<Managed>>();
  held->memory = adopt_object(tensor, layout);
  nb::capsule owner(held.get(), [](void* p) noexcept { std::unique_ptr<Taken<Managed>>(static_cast<Taken<Managed>*>(p)).reset(); });
  Taken<Managed>* const ours = held.release();
  if (PyCapsule_SetName(capsule.ptr(), used_name<Managed>) != 0) throw nb::python_error();
  ours->managed = managed;
  return nb::make_tuple(static_cast<std::int32_t>(tensor.device.type), tensor.device.id, layout.address, name_of(layout.dtype),
                        int_tuple(std::span(layout.shape).first(layout.rank)), int_tuple(std::span(layout.strides).first(layout.rank)),
                        read_only, owner);
}

nb::tuple from_capsule(nb::handle capsule) {
  if (PyCapsule_CheckExact(capsule.ptr()) == 0)
    throw Error(ErrorCode::type_mismatch,
                std::string("from_dlpack(): __dlpack__() answered a ") + nb::type_name(capsule.type()).c_str() + ", not a DLPack capsule");
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::versioned_capsule_name) != 0) {
    auto* managed = static_cast<dlpack::VersionedTensor*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::versioned_capsule_name));
    if (managed->version.major != dlpack::major_version)
      throw nb::buffer_error(("from_dlpack(): the array comes in DLPack " + std::to_string(managed->version.major) + "." +
                              std::to_string(managed->version.minor) + "; tack reads versions 1.x and those before 1")
                                 .c_str());
    return taken(capsule, managed, (managed->flags & dlpack::flag_read_only) != 0);
  }
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::capsule_name) != 0)
    return taken(capsule, static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::capsule_name)), false);
  const char* name = PyCapsule_GetName(capsule.ptr());
  if (name == nullptr) PyErr_Clear();
  const std::string_view called = name != nullptr ? name : "";
  if (called == dlpack::used_capsule_name || called == dlpack::used_versioned_capsule_name)
    throw Error(ErrorCode::invalid_argument, "from_dlpack(): this DLPack capsule was used before; ask the array for a new one");
  throw Error(ErrorCode::type_mismatch, "from_dlpack(): a capsule called '" + std::string(called) + "' holds no DLPack array");
}

/// The functions of a type's library, or null.
const dlpack::ExchangeApi* api_of(PyTypeObject* type) {
  const nb::object capsule = attribute(reinterpret_cast<PyObject*>(type), dlpack::exchange_attribute);
  if (!capsule.is_valid()) return nullptr;
  auto* header = static_cast<const dlpack::ExchangeHeader*>(PyCapsule_GetPointer(capsule.ptr(), dlpack::exchange_capsule_name));
  if (header == nullptr) PyErr_Clear();
  while (header != nullptr && header->version.major != dlpack::major_version) header = header->previous;
  const auto* const api = reinterpret_cast<const dlpack::ExchangeApi*>(header);
  return api != nullptr && api->tensor_of_object != nullptr && api->current_stream != nullptr ? api : nullptr;
}

/// The type of tensors that was met last, and its library's functions: calls mostly pass those of one library. Guarded by the GIL, or by
/// State::mutex; the type is kept.
struct LastApi {
  PyTypeObject* type = nullptr;
  const dlpack::ExchangeApi* api = nullptr;
} last_api;

/// Whether the tensor's library records what is done to it, to differentiate it: a kernel would not be seen.
bool records_gradient(nb::handle tensor) {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  const nb::object flag = nb::steal(PyObject_GetAttr(tensor.ptr(), name));
  if (!flag.is_valid()) PyErr_Clear();
  return flag.ptr() == Py_True;
}

/// Whether the library shows the tensor's elements with the other sign than they have in memory (PyTorch's views of conjugates).
bool is_negated(nb::handle tensor) {
  static PyObject* const name = PyUnicode_InternFromString("is_neg");
  const nb::object flag = nb::steal(PyObject_CallMethodObjArgs(tensor.ptr(), name, nullptr));
  if (!flag.is_valid()) PyErr_Clear();
  return flag.ptr() == Py_True;
}

/// A function of another library's has failed, and should have said why.
[[noreturn]] void throw_refusal() {
  if (PyErr_Occurred() == nullptr) throw Error(ErrorCode::invalid_argument, "its library does not give it out, and does not say why");
  throw nb::python_error();
}

nb::object borrowed_object(nb::handle object) {
  if (!find_exchange_api(Py_TYPE(object.ptr()))) return nb::none();
  Array array;
  borrow(object.ptr(), array);
  return nb::cast(array);
}

constexpr std::pair<dlpack::DeviceType, const char*> device_types[] = {
    {dlpack::DeviceType::cpu, "cpu"},           {dlpack::DeviceType::cuda, "cuda"},         {dlpack::DeviceType::cuda_host, "cpu"},
    {dlpack::DeviceType::metal, "metal"},       {dlpack::DeviceType::rocm, "hip"},          {dlpack::DeviceType::rocm_host, "cpu"},
    {dlpack::DeviceType::cuda_managed, "cuda"}, {dlpack::DeviceType::one_api, "level_zero"}};

}  // namespace

const char* device_type_of(dlpack::DeviceType type) noexcept {
  for (const auto& [known, name] : device_types)
    if (known == type) return name;
  return nullptr;
}

TensorLayout layout_of(const dlpack::Tensor& tensor) {
  if (tensor.ndim < 0 || tensor.ndim > max_rank)
    throw Error(ErrorCode::invalid_argument, "from_dlpack(): the array has " + std::to_string(tensor.ndim) +
                                                 " dimensions; tack's have at most " + std::to_string(max_rank));
  TensorLayout layout;
  layout.dtype = dtype_of(tensor.dtype);
  const auto item = static_cast<std::int64_t>(layout.dtype.size());
  layout.rank = static_cast<std::size_t>(tensor.ndim);
  std::int64_t dense = item;
  for (std::size_t d = layout.rank; d-- > 0;) {
    const std::int64_t length = layout.shape[d] = tensor.shape[d];
    if (length < 0) throw Error(ErrorCode::invalid_argument, "from_dlpack(): the shape has the negative length " + std::to_string(length));
    layout.strides[d] = dense;
    if ((tensor.strides != nullptr && __builtin_mul_overflow(tensor.strides[d], item, &layout.strides[d])) ||
        __builtin_mul_overflow(dense, length > 1 ? length : 1, &dense))
      throw Error(ErrorCode::invalid_argument, "from_dlpack(): the shape and strides reach further than 64-bit addresses");
  }
  layout.address = reinterpret_cast<std::uintptr_t>(tensor.data) + static_cast<std::uintptr_t>(tensor.byte_offset);
  return layout;
}

bool has_exchange_api(PyTypeObject* type) noexcept { return type == last_api.type; }

bool find_exchange_api(PyTypeObject* type) {
  if (has_exchange_api(type)) return true;
  const dlpack::ExchangeApi* const api = api_of(type);
  if (api == nullptr) return false;
  const nb::ft_lock_guard lock(state().mutex);
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  Py_XDECREF(reinterpret_cast<PyObject*>(last_api.type));
  last_api = {type, api};
  return true;
}

void borrow(PyObject* object, Array& array) {
  const dlpack::ExchangeApi& api = *last_api.api;
  if (records_gradient(object))
    throw Error(ErrorCode::type_mismatch, "it requires a gradient, which its library could not follow through a kernel: pass x.detach()");
  if (is_negated(object)) throw Error(ErrorCode::type_mismatch, "its elements have the other sign in memory: pass x.resolve_neg()");
  dlpack::Tensor tensor{};
  if (api.tensor_of_object(object, &tensor) != 0) throw_refusal();
  TensorLayout layout = layout_of(tensor);
  const char* const type = device_type_of(tensor.device.type);
  if (type == nullptr)
    throw Error(ErrorCode::invalid_argument, "its memory is of DLPack's device type " +
                                                 std::to_string(static_cast<int>(tensor.device.type)) +
                                                 ", which kernels cannot use in place: copy it to the CPU first");
  Device* device = &host_device();
  std::shared_ptr<void> adopted;
  if (tensor.device.type == dlpack::DeviceType::metal) {
    device = state().runtime->device(type).get();
    device_object(*device);
    // DLPack names no streams there.
    nb::module_::import_("tack.sharing").attr("settle")(nb::handle(object));
    adopted = adopt_object(tensor, layout);
  } else if (std::string_view(type) != "cpu") {
    device = state().runtime->device(std::string(type) + ":" + std::to_string(tensor.device.id)).get();
    device_object(*device);  // from here on it is known, and kept
    void* stream = nullptr;
    if (api.current_stream(tensor.device.type, tensor.device.id, &stream) != 0) throw_refusal();
    const ReleaseGil release;
    device->wait_for_stream(reinterpret_cast<std::uintptr_t>(stream));
  }
  std::shared_ptr<Buffer> memory = all_memory_of(*device);
  if (adopted)  // until the call has returned
    memory = Buffer::wrap(memory->device(), memory->pointer(), memory->bytes(), [adopted = std::move(adopted)] {}, true);
  const std::int64_t offset =  // a tensor without elements may have no address
      layout.address == 0 ? 0 : static_cast<std::int64_t>(layout.address - reinterpret_cast<std::uintptr_t>(memory->pointer()));
  array = Array::view(std::move(memory), layout.dtype, std::span(layout.shape).first(layout.rank),
                      std::span(layout.strides).first(layout.rank), offset, false);
}

void bind_dlpack(nb::module_& m) {
  m.def("dlpack_export", &to_capsule, nb::arg("array"), nb::arg("device_type"), nb::arg("device_id"), nb::arg("versioned"),
        nb::arg("copied"),
        nb::sig("def dlpack_export(array: Array, device_type: int, device_id: int, versioned: bool, copied: bool) -> object"),
        "A DLPack capsule with the array's memory, which lives until the capsule's taker ends it. Waits for nothing.");
  m.def("dlpack_import", &from_capsule, nb::arg("capsule"),
        nb::sig("def dlpack_import(capsule: object) -> tuple[int, int, int, str, tuple[int, ...], tuple[int, ...], bool, object]"),
        "Takes the array out of a capsule: (device type, device id, address, dtype, shape, strides in bytes, read-only, owner).\n\n"
        "ValueError for a capsule that was used before, TypeError for element types that tack has not, BufferError for another major "
        "version; the capsule then stays as it was.");
  m.def("borrowed", &borrowed_object, nb::arg("tensor"), nb::sig("def borrowed(tensor: object) -> Array | None"),
        "An array on the memory of a tensor whose library has DLPack's functions for C, valid while the tensor stays as it is; None for "
        "other objects. Waits for the stream that its library works in. Raises what keeps a tensor from being used.");
  m.def(
      "dlpack_device_type", [](std::int32_t kind) { return device_type_of(static_cast<dlpack::DeviceType>(kind)); }, nb::arg("kind"),
      nb::sig("def dlpack_device_type(kind: int) -> str | None"),
      "The type of the devices that can address memory of one of DLPack's kinds: \"cpu\", \"cuda\", ...; None where tack has none.");
}

}  // namespace tack::python

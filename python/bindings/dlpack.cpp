// dlpack.cpp -- arrays handed to other libraries and taken from them, as DLPack capsules.
#include "dlpack/dlpack.h"

#include <array>
#include <memory>
#include <type_traits>

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
  tensor.data = a.data();
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

/// Ends a structure that was taken out of its capsule when Python lets go of it.
template <class Managed>
nb::object owner_of(Managed* managed) {
  return nb::capsule(managed, [](void* p) noexcept {
    auto* owned = static_cast<Managed*>(p);
    if (owned->deleter != nullptr) owned->deleter(owned);
  });
}

/// tack's name of an element type, or a TypeError.
std::string dtype_of(const dlpack::DataType& type) {
  DType found{static_cast<TypeCode>(type.code), type.bits, type.lanes};
  if (found == bool8) found = u8;
  if (dtype_index(found) >= 0) return name_of(found);
  throw Error(ErrorCode::type_mismatch, "from_dlpack(): elements of DLPack type code " + std::to_string(static_cast<int>(type.code)) +
                                            " with " + std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) +
                                            " lanes have no tack dtype; convert the array where it comes from");
}

/// (device type, device id, address, dtype, shape, strides in bytes, read-only, owner): all that an array on the memory needs.
template <class Managed>
nb::tuple taken(nb::handle capsule, Managed* managed, bool read_only) {
  const dlpack::Tensor& tensor = managed->tensor;
  if (tensor.ndim < 0 || tensor.ndim > max_rank)
    throw Error(ErrorCode::invalid_argument, "from_dlpack(): the array has " + std::to_string(tensor.ndim) +
                                                 " dimensions; tack's have at most " + std::to_string(max_rank));
  const std::string dtype = dtype_of(tensor.dtype);
  const auto item = static_cast<std::int64_t>(dtype_from_name(dtype).size());
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  std::array<std::int64_t, max_rank> shape{}, strides{};
  std::int64_t dense = item;
  for (std::size_t d = rank; d-- > 0;) {
    shape[d] = tensor.shape[d];
    if (shape[d] < 0)
      throw Error(ErrorCode::invalid_argument, "from_dlpack(): the shape has the negative length " + std::to_string(shape[d]));
    strides[d] = dense;
    const std::int64_t steps = tensor.strides != nullptr ? tensor.strides[d] : 0;
    if ((tensor.strides != nullptr && __builtin_mul_overflow(steps, item, &strides[d])) ||
        __builtin_mul_overflow(dense, shape[d] > 1 ? shape[d] : 1, &dense))
      throw Error(ErrorCode::invalid_argument, "from_dlpack(): the shape and strides reach further than 64-bit addresses");
  }
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.data) + static_cast<std::uintptr_t>(tensor.byte_offset);
  if (PyCapsule_SetName(capsule.ptr(), used_name<Managed>) != 0) throw nb::python_error();
  return nb::make_tuple(static_cast<std::int32_t>(tensor.device.type), tensor.device.id, address, dtype,
                        int_tuple(std::span(shape).first(rank)), int_tuple(std::span(strides).first(rank)), read_only, owner_of(managed));
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

}  // namespace

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
}

}  // namespace tack::python

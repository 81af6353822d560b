// dlpack.h -- DLPack 1.x, the memory layout of arrays that libraries hand to each other, declared in our own words.
//
// Source of the facts (layouts, numbers, names of capsules): the DLPack specification, https://dmlc.github.io/dlpack/latest/. A producer
// gives a structure and a function that ends it; whoever takes the structure calls that function once, from any thread.
#pragma once

#include <cstdint>

namespace dlpack {

/// Consumers must not look into a structure of another major version, but to call its deleter.
inline constexpr std::uint32_t major_version = 1;
inline constexpr std::uint32_t minor_version = 1;

enum class DeviceType : std::int32_t {
  cpu = 1,
  cuda = 2,
  cuda_host = 3,  ///< pinned host memory: the CPU's
  metal = 8,
  rocm = 10,
  rocm_host = 11,
  cuda_managed = 13,
  one_api = 14,
};

enum class TypeCode : std::uint8_t {
  int_ = 0,
  uint = 1,
  float_ = 2,
  bfloat = 4,
  complex = 5,
  bool_ = 6,
};

struct Device {
  DeviceType type = DeviceType::cpu;
  std::int32_t id;  ///< 0 where the type has one device only
};

struct DataType {
  TypeCode code;
  std::uint8_t bits;
  std::uint16_t lanes;  ///< 1 but for vectors
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;        ///< ndim lengths
  std::int64_t* strides;      ///< ndim steps in elements; null (before 1.2): row-major without gaps
  std::uint64_t byte_offset;  ///< of element (0, 0, ...) from `data`
};

/// What a capsule called "dltensor" points at. It cannot say that memory is read-only.
struct ManagedTensor {
  Tensor tensor;
  void* context;  ///< the producer's own
  void (*deleter)(ManagedTensor* self);
};

struct Version {
  std::uint32_t major, minor;
};

inline constexpr std::uint64_t flag_read_only = 1, flag_is_copied = 2;

/// What a capsule called "dltensor_versioned" points at. The first three members stay where they are in all versions.
struct VersionedTensor {
  Version version;
  void* context;
  void (*deleter)(VersionedTensor* self);
  std::uint64_t flags;
  Tensor tensor;
};

inline constexpr const char* capsule_name = "dltensor";
inline constexpr const char* versioned_capsule_name = "dltensor_versioned";
/// DLPack 1.3: the functions by which a library's tensors are looked at without Python. The attribute `__dlpack_c_exchange_api__` of their
/// type is a capsule called "dlpack_exchange_api" that holds one; it lives as long as the process. All answer 0, or -1 with Python's error
/// set, and need the GIL.
struct ExchangeHeader {
  Version version;
  ExchangeHeader* previous;  ///< the same for an older major version, or null
};
struct ExchangeApi {
  ExchangeHeader header;
  int (*allocate)(Tensor* prototype, VersionedTensor** out, void* error_context,
                  void (*set_error)(void* error_context, const char* kind, const char* message));
  int (*managed_of_object)(void* object, VersionedTensor** out);
  int (*object_of_managed)(VersionedTensor* tensor, void** out_object);
  int (*tensor_of_object)(void* object, Tensor* out);  ///< may be null; what it fills lasts as long as the object stays as it is
  int (*current_stream)(DeviceType type, std::int32_t id, void** out_stream);
};
inline constexpr const char* exchange_attribute = "__dlpack_c_exchange_api__";
inline constexpr const char* exchange_capsule_name = "dlpack_exchange_api";

/// The names after the structure was taken out, which a capsule lets happen once.
inline constexpr const char* used_capsule_name = "used_dltensor";
inline constexpr const char* used_versioned_capsule_name = "used_dltensor_versioned";

static_assert(sizeof(void*) != 8 || (sizeof(Tensor) == 48 && sizeof(ManagedTensor) == 64 && sizeof(VersionedTensor) == 80 &&
                                     sizeof(DataType) == 4 && sizeof(ExchangeApi) == 56));

}  // namespace dlpack

// exchange.h -- other libraries' tensors as arrays for the length of a call, through DLPack's functions for C.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>

#include "dlpack/dlpack.h"
#include "tack/array.hpp"

namespace tack::python {

/// What a DLPack tensor says, in libtack's words: strides in bytes.
struct TensorLayout {
  DType dtype{};
  std::size_t rank = 0;
  std::array<std::int64_t, max_rank> shape{}, strides{};
  std::uintptr_t address = 0;
};
/// Throws Error for element types, shapes and strides that arrays cannot have.
TensorLayout layout_of(const dlpack::Tensor& tensor);
/// "cpu", "cuda", ...: the type of the devices that have memory of this kind; null where tack has none.
const char* device_type_of(dlpack::DeviceType type) noexcept;

/// Whether objects of the type are tensors whose library has functions for C. `has` knows the type that was found last and costs nothing;
/// `find` looks. Neither leaves a Python error.
bool has_exchange_api(PyTypeObject* type) noexcept;
bool find_exchange_api(PyTypeObject* type);
/// Makes `array` one on the memory of such a tensor, right after one of these two has said that it is one; valid for as long as the tensor
/// stays as it is. Waits for the stream that its library works in. Throws what keeps a tensor from being used.
void borrow(PyObject* object, Array& array);

}  // namespace tack::python

// backends/cuda/cuda_device.h -- an NVIDIA GPU as a device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "backend.h"
#include "backends/cuda/cuda_context.h"
#include "backends/cuda/cuda_staging.h"

namespace tack::cuda {

/// What a GPU of compute capability `major`.`minor` can do, as far as that alone decides it.
Capabilities capabilities_of(int major, int minor);

/// Thread-safe. All work goes to the context's default stream (the legacy one): PyTorch, CuPy and Warp use the same one unless told
/// otherwise, so that on one thread their work and tack's is done in the order in which it was given, and streams that were created without
/// CU_STREAM_NON_BLOCKING wait for it and are waited for.
class CudaDevice final : public DeviceImpl {
 public:
  CudaDevice(const Driver& driver, Log& log, int index);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  void* allocate(std::size_t bytes) override;
  void free(void* pointer, std::size_t bytes) noexcept override;
  void upload(void* destination, const void* source, std::size_t bytes) override;
  void download(void* destination, const void* source, std::size_t bytes) override;
  void copy(void* destination, const void* source, std::size_t bytes) override;
  void fill(void* destination, const void* element, std::size_t size, std::size_t count) override;
  std::unique_ptr<ModuleImpl> load(std::span<const std::byte> binary, const KernelSource& source) override;
  void launch(const LaunchCommand& command) override;
  void synchronize() override;
  void make_current() override { context_.make_current(); }
  bool addresses(const void* pointer, std::size_t bytes) const noexcept override;

 private:
  const Driver& driver() const noexcept { return context_.driver(); }
  void fill_64(abi::DevicePointer destination, const void* element, std::size_t count) const;

  const Context context_;
  Staging uploads_, downloads_;  // two, so that a thread that waits for the device does not keep others from giving it work
};

}  // namespace tack::cuda

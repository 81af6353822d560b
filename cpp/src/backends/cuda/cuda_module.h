// backends/cuda/cuda_module.h -- a loaded cubin or PTX text, and its kernels as the driver launches them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend.h"
#include "backends/cuda/cuda_context.h"

namespace tack::cuda {

/// Lives no longer than its device.
class CudaModule final : public ModuleImpl {
 public:
  struct Entry {
    abi::Function function = nullptr;
    std::uint32_t group = 0;    // threads
    bool whole_groups = false;  // as EntryPoint::whole_groups
  };
  /// Throws Error(corrupt) for bytes that the driver does not take, Error(driver) for an entry whose groups are too large for it.
  /// `block`: threads of a group where an entry does not say.
  CudaModule(const Context& context, std::span<const std::byte> binary, const KernelSource& source, std::uint32_t block);
  ~CudaModule() override;
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;

  const Entry& entry(std::uint32_t index) const noexcept { return entries_[index]; }
  std::vector<EntryStatistics> statistics() const override;

 private:
  void load(std::span<const std::byte> binary);
  void find(const EntryPoint& point, std::uint32_t block);
  void unload() noexcept;

  const Context& context_;
  abi::Module module_ = nullptr;
  std::vector<Entry> entries_;
  std::vector<std::string> symbols_;
};

}  // namespace tack::cuda

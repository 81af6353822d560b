// backends/level_zero/ze_module.h -- loaded SPIR-V, and its kernels as the driver launches them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend.h"
#include "backends/gpu/groups.h"
#include "backends/level_zero/ze_stream.h"

namespace tack::level_zero {

/// What the driver is asked for when it compiles SPIR-V: `/` and sqrt of f32 that are correctly rounded, arrays of any size.
inline constexpr std::string_view build_flags = "-cl-fp32-correctly-rounded-divide-sqrt -ze-opt-greater-than-4GB-buffer-required";

/// Lives no longer than its device.
class Module final : public gpu::GroupedModule {
 public:
  static constexpr std::uint8_t texture = 0;
  struct Entry {
    abi::Kernel kernel = nullptr;
    gpu::Groups groups;
    std::vector<std::uint8_t> sizes;  // of the arguments in bytes, one for each word; `texture` for one that is an image and its sampler
  };
  /// Throws Error(corrupt) for bytes that the driver does not take, with its log; Error(driver) for an entry whose groups are too large.
  Module(const Context& context, std::span<const std::byte> binary, const KernelSource& source, const Capabilities& can);
  ~Module() override;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const Entry& entry(std::uint32_t index) const noexcept { return entries_[index]; }

 private:
  void load(std::span<const std::byte> binary);
  void find(const EntryPoint& point, const Capabilities& can);
  void unload() noexcept;

  const Context& context_;
  abi::Module module_ = nullptr;
  std::vector<Entry> entries_;
};

}  // namespace tack::level_zero

// backends/cpu/cpu_device.h -- the CPU as a device: host memory, machine code from the object loader, launches that return when they are
// done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "backends/cpu/cpu_memory.h"
#include "backends/cpu/cpu_schedule.h"
#include "backends/cpu/object_loader.h"

namespace tack {

/// The CPU backend, for core/registry.cpp.
std::unique_ptr<Backend> make_cpu_backend();

namespace cpu {

/// Functions in memory and what is known of their speed. Lives no longer than its device.
class CpuModule final : public ModuleImpl {
 public:
  struct Function {
    std::string symbol;
    EntryCode code;
    double cost_hint = -1.0;  ///< as EntryPoint::cost_hint
    double locked_cost = 1.0;
  };
  /// `code` owns the functions' code; null when something else does.
  CpuModule(Schedule& schedule, std::string kernel, std::shared_ptr<const void> code, const std::vector<Function>& functions);

  std::vector<EntryStatistics> statistics() const override;
  double predict(std::uint32_t entry, std::int64_t iterations) const noexcept override;
  DirectLaunch direct(std::uint32_t entry) noexcept override;
  void launch(const LaunchCommand& command);

 private:
  struct Entry {
    Entry(const Function& f, int threads)
        : function(f), cost(f.cost_hint, f.code.alone == nullptr ? 0.0 : f.locked_cost / static_cast<double>(threads)) {}
    const Function function;
    EntryCost cost;
  };
  Schedule& schedule_;
  const std::shared_ptr<const void> code_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

/// Thread-safe. Memory is the process's own; allocations of 4 MiB and more come in huge pages where the system has them.
class CpuDevice final : public DeviceImpl {
 public:
  CpuDevice(RuntimeImpl& runtime, int threads);

  void* allocate(std::size_t bytes) override;
  void free(void* pointer, std::size_t bytes) noexcept override;
  void upload(void* destination, const void* source, std::size_t bytes) override;
  void download(void* destination, const void* source, std::size_t bytes) override;
  void copy(void* destination, const void* source, std::size_t bytes) override;
  void fill(void* destination, const void* element, std::size_t size, std::size_t count) override;
  std::unique_ptr<ModuleImpl> load(std::span<const std::byte> binary, const KernelSource& source) override;
  void launch(const LaunchCommand& command) override;
  void synchronize() override {}
  bool addresses(const void* pointer, std::size_t bytes) const noexcept override { return is_memory(pointer, bytes); }

  Schedule& schedule() noexcept { return schedule_; }

 private:
  RuntimeImpl& runtime_;
  Schedule schedule_;
};

}  // namespace cpu
}  // namespace tack

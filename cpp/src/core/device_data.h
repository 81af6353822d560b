// core/device_data.h -- what a Device knows beside its backend's DeviceImpl.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "backend.h"
#include "core/allocator.h"
#include "core/runtime_impl.h"
#include "tack/device.hpp"
#include "tack/kernel.hpp"

namespace tack {

/// A compilation that others wait for.
struct Build {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::shared_ptr<Kernel> kernel;
  std::exception_ptr error;
};

struct Device::Data {
  Data(Runtime& owner, Backend& kind, DeviceImpl& impl, std::string full_name)
      : runtime(owner), backend(kind), name(std::move(full_name)), allocator(impl, name) {}

  /// Finds the binary on disk or compiles it. `once` is the key under which the kernel is known in this process.
  std::shared_ptr<Kernel> build_now(Device& device, const KernelSource& source, const KernelKey& key, const std::string& once,
                                    const std::string& content, const std::string& compiler);
  /// Makes the Kernel and remembers it under `once`; answers the one that is there already when another thread was faster.
  std::shared_ptr<Kernel> adopt(Device& device, const std::string& once, KernelSource source, std::unique_ptr<ModuleImpl> module,
                                bool from_cache);

  Runtime& runtime;  // outlives the device
  Backend& backend;
  std::string type;
  int index = 0;
  std::string name;
  DeviceOptions options;
  std::uint32_t memory_id = 0;
  Allocator allocator;

  std::atomic<std::uint64_t> compiled{0};
  std::atomic<std::uint64_t> loaded{0};

  std::mutex mutex;                                        // guards what follows; never held while something is compiled, read or launched
  std::map<std::string, std::weak_ptr<Kernel>> kernels;    // by key; alive as long as somebody uses them
  std::map<std::string, std::shared_ptr<Build>> building;  // by key
};

}  // namespace tack

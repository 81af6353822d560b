// core/runtime_impl.h -- what a Runtime owns; seen by core and backends, never by hosts.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backend.h"
#include "core/disk_cache.h"
#include "core/log.h"
#include "core/updates.h"
#include "tack/runtime.hpp"

namespace tack {

class RuntimeImpl {
 public:
  RuntimeImpl(Runtime& owner, Config config);
  ~RuntimeImpl();

  Runtime& owner;
  const Config config;
  Log log;
  DiskCache cache;  // disabled when TACK_CACHE=0
  Updates updates;  // by launches on the CPU

  /// The installed compiler; throws Error(unavailable) that says how to get one when there is none.
  std::vector<std::byte> compile_cpu(const CompileRequest& request);
  /// The installed linker's answer, an address or null for each function; throws Error(unavailable) that says how to get a linker when
  /// there is none. `format` is the object's, for that message.
  LinkedObject link_object(const LinkRequest& request, std::string_view format);
  /// A host's parallel_for, or empty.
  ParallelFor parallel_for() const;
  /// The same for where the pool cannot start, or empty.
  ParallelFor parallel_for_fallback() const;
  /// The host's package folders; empty where it has none.
  std::vector<std::string> package_folders() const;
  /// Hands on what a kernel printed.
  void print(std::string_view text);
  /// Adds a kind of device to those of make_backends(), before the first device is asked for. Tests bring their stand-ins this way.
  void add_backend(std::unique_ptr<Backend> backend);

 private:
  friend class Runtime;
  Backend& backend(std::string_view type);
  Device& device(std::string_view spec, const DeviceOptions& options);
  std::vector<Device*> started() const;

  mutable std::mutex mutex_;   // guards everything below; never held while a backend works
  std::mutex start_mutex_;     // held while a device starts, so that it starts once
  std::uint32_t adopted_ = 0;  // devices in an application's context so far; guarded by start_mutex_
  std::vector<std::unique_ptr<Backend>> backends_;
  std::map<std::string, std::unique_ptr<Device>> devices_;  // by full name; handles share the ownership of the Runtime, see device.hpp
  CpuCompiler cpu_compiler_;
  ObjectLinker object_linker_;
  ParallelFor parallel_for_, parallel_for_fallback_;
  PrintSink print_sink_;
  PackageFolders package_folders_;
};

}  // namespace tack

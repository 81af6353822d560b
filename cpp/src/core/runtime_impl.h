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

  /// The installed compiler; throws Error(unavailable) that says how to get one when there is none.
  std::vector<std::byte> compile_cpu(const CompileRequest& request);
  /// A host's parallel_for, or empty.
  ParallelFor parallel_for() const;

 private:
  friend class Runtime;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::map<std::string, std::weak_ptr<Device>> devices_;  // by full name; strong references are the callers'
  CpuCompiler cpu_compiler_;
  ParallelFor parallel_for_;
};

}  // namespace tack

// tack/queue.hpp -- Queue: the order in which a device does its work, and the place where its errors come out.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "tack/error.hpp"
#include "tack/export.hpp"

namespace tack {

class DeviceImpl;
class Log;
class ModuleImpl;
class Records;
struct LaunchCommand;

/// The one in-order queue of a device: launches, copies and fills are done in the order in which they were given, whichever thread gave
/// them. On the CPU each is done when the call that gave it returns. Thread-safe. Lives as long as its device.
class TACK_API Queue {
 public:
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Waits until all work given so far is done. Throws the first error of that work, once; later ones are logged. The error of a queued
  /// launch names its kernel, or those that were queued since the last wait. Blocking.
  void synchronize();

  // ---- for libtack's own files. What they throw for the failure of earlier work names the kernels that it may have been. ----

  /// Runs or queues one launch behind all others.
  void launch(const LaunchCommand& command);
  /// Contiguous copies and fills behind all launches, as DeviceImpl describes them. Whoever reads what `download` brought settles first.
  void upload(void* destination, const void* source, std::size_t bytes);
  void download(void* destination, const void* source, std::size_t bytes);
  void copy(void* destination, const void* source, std::size_t bytes);
  void fill(void* destination, const void* element, std::size_t size, std::size_t count);
  /// Does something of the device's that is not the queue's, such as allocating, where the failure of earlier work may come out as well.
  template <class Work>
  decltype(auto) attributed(Work work) {
    try {
      return work();
    } catch (const Error& error) {
      if (!error.fields().queued) throw;
      throw attribute(error);
    }
  }
  /// Takes what a launched kernel reports: delivers it now, or on a queued device at the wait.
  void reported(Records records);
  /// Delivers what the launches before a wait that has just ended reported: prints it, and throws the first failure.
  void settle();
  /// Destroys the code of a kernel once no queued launch can be using it.
  void retire(std::unique_ptr<ModuleImpl> module) noexcept;

 private:
  friend class Device;
  struct Data;
  Queue(DeviceImpl& impl, Log& log, const std::string& device);
  /// The device ends: waits, logs what nobody has waited for, and lets go of code and buffers.
  void close() noexcept;
  /// The failure of queued work, with the kernels that it may be of.
  Error attribute(const Error& error);
  std::unique_ptr<Data> data_;
};

}  // namespace tack

// core/queue.cpp -- Queue: launches in order, kernels whose code is no longer wanted, and reports that wait to be read.
#include "tack/queue.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

#include "backend.h"
#include "core/log.h"
#include "core/records.h"
#include "core/text.h"

namespace tack {

namespace {

constexpr std::size_t max_pending_records = 64;  // launches whose reports wait to be read

/// The kernels launched since the last wait, for the message of a failure that comes out at the wait: the last few, each once in a row.
class Suspects {
 public:
  /// Called by any thread, without a lock.
  void launched(const ModuleImpl* module) noexcept {
    const std::uint64_t count = count_.load(std::memory_order_relaxed);
    if (count != settled_.load(std::memory_order_relaxed) && slots_[(count - 1) % kept].load(std::memory_order_relaxed) == module) return;
    slots_[count_.fetch_add(1, std::memory_order_relaxed) % kept].store(module, std::memory_order_release);
  }
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  // What follows needs the queue's mutex.

  /// A wait has ended that began when `count` were counted.
  void settle(std::uint64_t count) noexcept {
    settled_.store(std::max(count, settled_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  }
  /// The module is about to be destroyed; nobody launches it any more.
  void forget(const ModuleImpl* module) noexcept {
    for (std::atomic<const ModuleImpl*>& slot : slots_) {
      const ModuleImpl* expected = module;
      slot.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed);
    }
  }
  /// Without repetition, in the order of their launches.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    const std::uint64_t end = count();
    for (std::uint64_t at = std::max(settled_.load(std::memory_order_relaxed), end - std::min<std::uint64_t>(end, kept)); at < end; ++at) {
      const ModuleImpl* const module = slots_[at % kept].load(std::memory_order_acquire);
      if (module != nullptr && std::find(found.begin(), found.end(), module->kernel()) == found.end()) found.push_back(module->kernel());
    }
    return found;
  }

 private:
  static constexpr std::size_t kept = 8;
  std::array<std::atomic<const ModuleImpl*>, kept> slots_{};
  std::atomic<std::uint64_t> count_{0}, settled_{0};
};

}  // namespace

struct Queue::Data {
  Data(DeviceImpl& device_impl, Log& runtime_log, std::string name)
      : impl(device_impl), log(runtime_log), device(std::move(name)), queued(impl.capabilities().queued) {}

  DeviceImpl& impl;
  Log& log;
  std::string device;                                // its name, for messages
  bool queued;                                       // launches return before they are done
  std::mutex mutex;                                  // guards what follows; never held while anything is launched or waited for
  std::vector<std::unique_ptr<ModuleImpl>> retired;  // code that queued launches may still be using
  std::vector<Records> pending;                      // what queued launches report, in order
  Suspects suspects;
  std::atomic<bool> told{false};  // a failure of queued work has been thrown; a device that fails for good repeats it at every call

  /// Does something that waits for all that was queued before; then code that nobody can be using any more goes.
  template <class Work>
  void wait(Queue& queue, Work work) {
    if (!queued) return work();
    std::vector<std::unique_ptr<ModuleImpl>> unused;  // destroyed at the end, without the lock
    std::uint64_t launched = 0;
    {
      const std::lock_guard lock(mutex);
      unused.swap(retired);
      launched = suspects.count();
    }
    try {
      queue.attributed(work);
    } catch (...) {
      // The queue may not be empty: keep the code.
      const std::lock_guard lock(mutex);
      std::move(unused.begin(), unused.end(), std::back_inserter(retired));
      throw;
    }
    const std::lock_guard lock(mutex);
    suspects.settle(launched);
    for (const std::unique_ptr<ModuleImpl>& module : unused) suspects.forget(module.get());
  }
  void log_unawaited(const std::exception& error) {
    log.write(LogLevel::error, text("'", device, "' ended with an error that nobody has waited for: ", error.what()));
  }
  /// "Kernel 'k'", or whatever else is known.
  std::string culprits() {
    std::vector<std::string> names;
    {
      const std::lock_guard lock(mutex);
      names = suspects.names();
    }
    if (names.empty()) return text("Work queued on '", device, '\'');
    if (names.size() == 1) return text("Kernel '", names.front(), '\'');
    std::string list;
    for (std::size_t i = 0; i < names.size(); ++i) list += text(i == 0 ? "'" : i + 1 == names.size() ? " or '" : ", '", names[i], '\'');
    return text("Kernel ", list, " (queued since the last wait)");
  }
};

Queue::Queue(DeviceImpl& impl, Log& log, const std::string& device) : data_(std::make_unique<Data>(impl, log, device)) {}

Queue::~Queue() = default;

Error Queue::attribute(const Error& error) {
  data_->told = true;
  return error.with_context(data_->culprits());
}

void Queue::launch(const LaunchCommand& command) {
  if (!data_->queued) {
    data_->impl.launch(command);
    return;
  }
  attributed([&] { data_->impl.launch(command); });
  data_->suspects.launched(command.module);
}

void Queue::upload(void* destination, const void* source, std::size_t bytes) {
  attributed([&] { data_->impl.upload(destination, source, bytes); });
}

void Queue::download(void* destination, const void* source, std::size_t bytes) {
  data_->wait(*this, [&] { data_->impl.download(destination, source, bytes); });
}

void Queue::copy(void* destination, const void* source, std::size_t bytes) {
  attributed([&] { data_->impl.copy(destination, source, bytes); });
}

void Queue::fill(void* destination, const void* element, std::size_t size, std::size_t count) {
  attributed([&] { data_->impl.fill(destination, element, size, count); });
}

void Queue::synchronize() {
  data_->wait(*this, [&] { data_->impl.synchronize(); });
  settle();
}

void Queue::reported(Records records) {
  if (!data_->queued) {
    records.deliver();
    return;
  }
  bool full = false;
  {
    const std::lock_guard lock(data_->mutex);
    data_->pending.push_back(std::move(records));
    full = data_->pending.size() >= max_pending_records;
  }
  if (full) settle();  // reading them waits
}

void Queue::settle() {
  if (!data_->queued) return;
  std::vector<Records> done;
  {
    const std::lock_guard lock(data_->mutex);
    done.swap(data_->pending);
  }
  std::exception_ptr first;
  for (Records& records : done) {
    try {
      records.deliver();
    } catch (const std::exception& error) {
      if (first)
        data_->log.write(LogLevel::error, text("'", data_->device, "' reports a failure after the first: ", error.what()));
      else
        first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

void Queue::retire(std::unique_ptr<ModuleImpl> module) noexcept {
  if (!data_->queued) return;  // launches are done when they return: the module dies here
  try {
    const std::lock_guard lock(data_->mutex);
    data_->retired.push_back(std::move(module));
  } catch (...) {
    // No memory to remember it: wait instead.
    try {
      data_->impl.synchronize();
    } catch (const std::exception& error) {
      data_->log.write(LogLevel::error, error.what());
    }
    const std::lock_guard lock(data_->mutex);
    data_->suspects.forget(module.get());
  }
}

void Queue::close() noexcept {
  const bool told = data_->told;
  try {
    synchronize();
  } catch (const Error& error) {
    if (!told || !error.fields().queued) data_->log_unawaited(error);
  } catch (const std::exception& error) {
    data_->log_unawaited(error);
  }
  data_->retired.clear();
  data_->pending.clear();
}

}  // namespace tack

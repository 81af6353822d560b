// core/queue.cpp -- Queue: launches in order, kernels whose code is no longer wanted, and reports that wait to be read.
#include "tack/queue.hpp"

#include <algorithm>
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
};

Queue::Queue(DeviceImpl& impl, Log& log, const std::string& device) : data_(std::make_unique<Data>(impl, log, device)) {}

Queue::~Queue() = default;

void Queue::launch(const LaunchCommand& command) { data_->impl.launch(command); }

void Queue::synchronize() {
  std::vector<std::unique_ptr<ModuleImpl>> unused;  // destroyed at the end, without the lock
  {
    const std::lock_guard lock(data_->mutex);
    unused.swap(data_->retired);
  }
  try {
    data_->impl.synchronize();
  } catch (...) {
    // The queue may not be empty: keep the code.
    const std::lock_guard lock(data_->mutex);
    std::move(unused.begin(), unused.end(), std::back_inserter(data_->retired));
    throw;
  }
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
  }
}

void Queue::close() noexcept {
  try {
    data_->impl.synchronize();
    settle();
  } catch (const std::exception& error) {
    data_->log.write(LogLevel::error, text("'", data_->device, "' ended with an error that nobody has waited for: ", error.what()));
  }
  data_->retired.clear();
  data_->pending.clear();
}

}  // namespace tack

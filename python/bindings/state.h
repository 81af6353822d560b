// state.h -- what the module tack._runtime owns for as long as the process lives, and small helpers that all its files use.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gil.h"
#include "tack/array.hpp"
#include "tack/error.hpp"
#include "tack/runtime.hpp"

namespace tack::python {

namespace nb = nanobind;

/// A Python reference that any thread may drop, with or without the GIL; dropped silently once the interpreter is gone.
class Shared {
 public:
  explicit Shared(nb::object object) : object_(std::move(object)) {}
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  nb::handle get() const { return object_; }

 private:
  nb::object object_;
};

/// A device and its one Python object.
struct KnownDevice {
  std::shared_ptr<Device> device;
  nb::object object;
  std::shared_ptr<Buffer> all_memory;  // all that it can address, for arrays of other libraries; see arguments.cpp
  std::shared_ptr<Buffer> own_memory;  // the same, for arrays whose memory is nobody else's
};

/// Guarded by the GIL, or by `mutex` on an interpreter without one. Lives until the process ends: other threads may be launching while
/// the interpreter shuts down, and the destructors of static objects would run without it.
struct State {
  std::shared_ptr<Runtime> runtime;
  std::vector<KnownDevice> devices;                     // every device that was asked for: a device stays the same object
  Device* process_default = nullptr;                    // null: the CPU, started at its first use
  Device* cpu = nullptr;                                // plain "cpu", once started
  Buffer* all_memory = nullptr;                         // the last one that was used, see arguments.cpp
  nb::handle compile_error, unsupported_error;          // owned; null until set_errors
  PyTypeObject* array_base = nullptr;                   // tack._runtime.Array
  PyTypeObject* texture_base = nullptr;                 // tack._runtime.Texture
  PyTypeObject* array_type = nullptr;                   // tack.Array once registered, else array_base: the type tested first
  std::array<PyObject*, array_dtypes.size()> dtypes{};  // owned; the package's objects for array_dtypes, null until set_array_type
  bool python_pool = false;                             // launches may run Python, so they never keep the GIL as their guard
  std::atomic<bool> debugging{false};                   // calls take kernels that check every index and every assert
  std::atomic<int> device_blocks{0};                    // open `with` blocks of all threads: without any, no thread-local need be looked at
  nb::ft_mutex mutex;
};

namespace detail {
extern State* const process_state;
}
inline State& state() noexcept { return *detail::process_state; }

/// An attribute, or an invalid object where there is none. No Python error is set.
nb::object attribute(nb::handle object, const char* name);
/// The Python object of a device, the same one every time.
nb::object device_object(Device& device);
/// "cpu", started.
Device& cpu_device();
/// default_device() where it takes a look at this thread.
Device& default_device_of_thread();
/// Innermost `with` block of this thread, else the process default, else "cpu". Never null; may throw where a CPU cannot start.
inline Device& default_device() {
  State& s = state();
  Device* const d = s.process_default != nullptr ? s.process_default : s.cpu;
  if (s.device_blocks.load(std::memory_order_relaxed) == 0 && d != nullptr) [[likely]]
    return *d;
  return default_device_of_thread();
}

/// Whether kernels specialized on this thread are to check: what the call that is being specialized asked for, else the process's mode.
bool debugging() noexcept;
/// For the scope of a specialization: the mode that its key has, whatever other threads set meanwhile.
class SpecializingMode {
 public:
  explicit SpecializingMode(bool debug) noexcept;
  ~SpecializingMode();
  SpecializingMode(const SpecializingMode&) = delete;
  SpecializingMode& operator=(const SpecializingMode&) = delete;

 private:
  int before_;
};

/// Puts `error` into Python's error indicator as the exception that error.hpp names for its code.
void set_python_error(const Error& error) noexcept;
/// Runs `f`; a C++ exception becomes Python's, and `failed` is answered. For functions that Python calls without nanobind between.
template <class R, class F>
R guarded(R failed, F&& f) noexcept;
/// Turns the exception being handled into Python's. For `guarded`.
void translate_current_exception() noexcept;

template <class R, class F>
R guarded(R failed, F&& f) noexcept {
  try {
    return outliving(std::forward<F>(f));
  } catch (...) {
    translate_current_exception();
    return failed;
  }
}

/// A failure inside a Python callback, on its way through libtack: the very exception object, to be raised again on the other side.
class PythonFailure : public Error {
 public:
  explicit PythonFailure(nb::python_error& error);
  /// Puts the exception back into Python's error indicator. Needs the GIL; may be called by several threads.
  void restore() const noexcept;

 private:
  std::shared_ptr<Shared> exception_;
};

void bind_error(nb::module_& m);
void bind_config(nb::module_& m);
void bind_device(nb::module_& m);
void bind_array(nb::module_& m);
void bind_texture(nb::module_& m);
void bind_dlpack(nb::module_& m);
void bind_kernel(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_dispatcher(nb::module_& m);
void bind_cpu_compiler(nb::module_& m);
void bind_debug(nb::module_& m);
/// Installs the ThreadPoolExecutor as the CPU pool where the settings or the platform ask for it.
void install_python_pool(nb::module_& m);

inline nb::bytes to_bytes(std::span<const std::byte> data) { return nb::bytes(data.data(), data.size()); }
inline std::string_view view_of(const nb::bytes& data) { return {static_cast<const char*>(data.data()), data.size()}; }
/// A tuple of ints.
nb::object int_tuple(std::span<const std::int64_t> values);

/// Shorter runs and copies keep the GIL: giving it up costs more than it frees.
inline constexpr double release_above_ns = 20'000.0;
inline constexpr std::int64_t release_above_bytes = 64 * 1024;

}  // namespace tack::python

// gil.h -- the GIL given up and taken back, also by threads that outlive the interpreter.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#if defined(__GLIBCXX__)
#  include <cxxabi.h>

#  include <chrono>
#  include <thread>
#endif

namespace tack::python {

/// Runs `f`, which may wait for the GIL: takes it, or calls Python.
///
/// Until 3.14 Python ends a thread that wants the GIL while the interpreter finishes (a daemon thread) by pthread_exit. Where that unwinds
/// the stack, destructors would use Python without the GIL, or be left by the unwinding, and the process would crash at its end. Here
/// such a thread stays where it is until the process has ended, as from 3.14 on.
template <class F>
decltype(auto) outliving(F&& f) {
#if defined(__GLIBCXX__)
  try {
    return std::forward<F>(f)();
  } catch (abi::__forced_unwind&) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  return std::forward<F>(f)();
#endif
}

/// Gives the GIL up for a scope when `wanted`.
class MaybeRelease {
 public:
  explicit MaybeRelease(bool wanted) : saved_(wanted ? PyEval_SaveThread() : nullptr) {}
  ~MaybeRelease() {
    if (saved_ != nullptr) outliving([this] { PyEval_RestoreThread(saved_); });
  }
  MaybeRelease(const MaybeRelease&) = delete;
  MaybeRelease& operator=(const MaybeRelease&) = delete;

 private:
  PyThreadState* saved_;
};

/// Gives the GIL up for a scope; also a nanobind call guard.
class ReleaseGil : MaybeRelease {
 public:
  ReleaseGil() : MaybeRelease(true) {}
};

/// Holds the GIL for a scope, on any thread.
class AcquireGil {
 public:
  AcquireGil() : state_(outliving(PyGILState_Ensure)) {}
  ~AcquireGil() { PyGILState_Release(state_); }
  AcquireGil(const AcquireGil&) = delete;
  AcquireGil& operator=(const AcquireGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace tack::python

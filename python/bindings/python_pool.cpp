// python_pool.cpp -- libtack's parallel_for on the threads of a concurrent.futures.ThreadPoolExecutor: with TACK_CPU_POOL=python, and
// where libtack's own pool cannot start.
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <atomic>

#include "state.h"

namespace tack::python {

namespace {

/// One parallel_for, drained by the calling thread and by whichever Python threads come. Late ones find nothing left and touch nothing
/// of the caller's, so the caller waits for no thread that has not begun.
class Job {
 public:
  Job(std::int64_t n, std::int64_t grain, ParallelBody body, void* context)
      : n_(n), grain_(std::max<std::int64_t>(grain, 1)), body_(body), context_(context) {}

  void work() noexcept {
    active_.fetch_add(1);
    for (;;) {
      const std::int64_t begin = next_.fetch_add(grain_);
      if (begin >= n_) break;
      body_(context_, begin, n_ - begin > grain_ ? begin + grain_ : n_);
    }
    if (active_.fetch_sub(1) == 1) active_.notify_all();
  }
  /// Waits until nobody is inside work(). Call it after one's own work(): then nothing is left to begin.
  void wait() const noexcept {
    for (int running = active_.load(); running != 0; running = active_.load()) active_.wait(running);
  }

 private:
  const std::int64_t n_, grain_;
  const ParallelBody body_;
  void* const context_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<int> active_{0};
};

void run(std::int64_t n, std::int64_t grain, int threads, ParallelBody body, void* context) {
  const auto job = std::make_shared<Job>(n, grain, body, context);
  const std::int64_t pieces = grain > 0 ? (n + grain - 1) / grain : n;
  const auto helpers = static_cast<int>(std::min<std::int64_t>(threads - 1, pieces - 1));
  if (helpers > 0) {
    const AcquireGil gil;
    try {
      outliving([&] { nb::module_::import_("tack.runtime.python_pool").attr("run")(job, helpers); });
    } catch (nb::python_error& e) {
      // No exception crosses a launch. The work is done below all the same, and Ctrl-C comes again at Python's next instruction.
      if (e.matches(PyExc_KeyboardInterrupt)) {
        PyErr_SetInterrupt();
      } else {
        e.discard_as_unraisable("tack's Python thread pool");
      }
    }
  }
  job->work();
  job->wait();
}

}  // namespace

void install_python_pool(nb::module_& m) {
  nb::class_<Job>(m, "_PoolJob", "A parallel loop that any thread may help with by calling it.")
      .def("__call__", &Job::work, nb::call_guard<ReleaseGil>());
#if defined(_WIN32)
  const bool wanted = true;
#else
  const bool wanted = state().runtime->config().cpu_pool == "python";
#endif
  state().runtime->set_parallel_for_fallback(run);
  if (!wanted) return;
  state().python_pool = true;
  state().runtime->set_parallel_for(run);
}

}  // namespace tack::python

// test_thread_pool.cpp -- the pool covers every index once, whoever calls, and whatever its workers are doing; and it counts cores rightly.
#include "core/thread_pool.h"

#include <doctest/doctest.h>
#include <pthread.h>
#if defined(__linux__)
#  include <sched.h>
#  include <sys/syscall.h>
#  include <unistd.h>
#endif

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/cpu_topology.h"
#include "pool_support.h"
#include "tack/error.hpp"

using tack::ThreadPool;
using namespace tack::testing;

namespace {

/// Counts how often each index was covered.
struct Coverage {
  explicit Coverage(std::int64_t n) : counts(static_cast<std::size_t>(n)) {}
  static void body(void* context, std::int64_t begin, std::int64_t end) {
    auto& counts = static_cast<Coverage*>(context)->counts;
    for (std::int64_t i = begin; i < end; ++i) counts[static_cast<std::size_t>(i)].fetch_add(1, std::memory_order_relaxed);
  }
  bool once() const {
    for (const auto& count : counts)
      if (count.load() != 1) return false;
    return true;
  }
  std::vector<std::atomic<int>> counts;
};

/// A body made of anything that can be called with (begin, end).
template <class F>
bool run(ThreadPool& pool, std::int64_t n, std::int64_t grain, F f) {
  return pool.run(n, grain, [](void* context, std::int64_t begin, std::int64_t end) { (*static_cast<F*>(context))(begin, end); }, &f);
}

/// Two pieces, each of which waits until both have begun: only two threads at once can do that.
bool two_threads_meet(ThreadPool& pool) {
  std::atomic<int> begun{0};
  std::atomic<bool> met{true};
  // The submitter may have to hold its piece for the worker to get going, so both pieces are of one thread each.
  run(pool, 2, 1, [&](std::int64_t begin, std::int64_t end) {
    begun.fetch_add(static_cast<int>(end - begin));
    if (!eventually([&] { return begun.load() == 2; })) met = false;
  });
  return met && begun == 2;
}

}  // namespace

TEST_CASE("every index is covered once, for any size, grain and number of threads") {
  for (const int threads : {1, 2, 3, 4, 9}) {
    ThreadPool pool(threads);
    CHECK(pool.threads() == threads);
    for (const std::int64_t n : {1, 2, 3, 7, 64, 1000, 4097}) {
      for (const std::int64_t grain : {1, 2, 5, 64, 100000}) {
        CAPTURE(threads);
        CAPTURE(n);
        CAPTURE(grain);
        Coverage coverage(n);
        const bool called = pool.run(n, grain, Coverage::body, &coverage);
        CHECK(coverage.once());
        CHECK(called == (threads > 1 && n > grain));
      }
    }
  }
}

TEST_CASE("an empty range calls nothing") {
  ThreadPool pool(2);
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    CHECK_FALSE(run(pool, n, 1, [](std::int64_t, std::int64_t) { FAIL("called"); }));
  }
}

TEST_CASE("ranges up to the largest are divided without overflow, whatever the grain") {
  ThreadPool pool(3);
  for (const std::int64_t n : {std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
    for (const std::int64_t grain : {std::int64_t{0}, std::int64_t{1}, n / 5, n - 1, n}) {
      CAPTURE(n);
      CAPTURE(grain);
      std::atomic<std::int64_t> total{0}, most{0};
      std::atomic<bool> inside{true};
      run(pool, n, grain, [&](std::int64_t begin, std::int64_t end) {
        if (begin < 0 || begin >= end || end > n) inside = false;
        total.fetch_add(end - begin);
        if (end == n) most.fetch_add(1);
      });
      CHECK(inside);
      CHECK(total == n);
      CHECK(most == 1);
    }
  }
}

TEST_CASE("pieces begin at multiples of the grain") {
  ThreadPool pool(2);
  std::atomic<bool> aligned{true};
  for (int repeat = 0; repeat < 20; ++repeat) {
    run(pool, 100001, 64, [&](std::int64_t begin, std::int64_t end) {
      if (begin % 64 != 0 || (end % 64 != 0 && end != 100001)) aligned = false;
    });
  }
  CHECK(aligned);
}

TEST_CASE("each thread begins with its own part, launch after launch") {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::atomic<std::int64_t> first_of_caller{-1}, first_of_worker{-1}, covered{0};
    std::atomic<bool> met{true};
    run(pool, 1024, 1, [&](std::int64_t begin, std::int64_t end) {
      std::atomic<std::int64_t>& first = std::this_thread::get_id() == caller ? first_of_caller : first_of_worker;
      std::int64_t none = -1;
      // Neither goes on before the other has begun, so neither helps with a part that its thread has not touched.
      if (first.compare_exchange_strong(none, begin) && !eventually([&] { return first_of_caller >= 0 && first_of_worker >= 0; }))
        met = false;
      covered += end - begin;
    });
    REQUIRE(met);
    CHECK(first_of_caller == 0);
    CHECK(first_of_worker == 512);
    CHECK(covered == 1024);
  }
}

TEST_CASE("workers that are late for a job take nothing from the next one, whatever its size") {
  // More threads than most machines have, so that the system takes some off their processors between any two steps.
  for (const int threads : {3, 8}) {
    CAPTURE(threads);
    ThreadPool pool(threads);
    std::atomic<std::int64_t> covered{0};
    std::int64_t expected = 0;
    for (int repeat = 0; repeat < 30000; ++repeat) {
      constexpr std::int64_t sizes[] = {2, 51, 3, 200, 9};
      const std::int64_t n = sizes[repeat % 5];
      run(pool, n, 1, [&](std::int64_t begin, std::int64_t end) { covered.fetch_add(end - begin, std::memory_order_relaxed); });
      expected += n;
    }
    CHECK(covered == expected);
  }
}

TEST_CASE("what a held-up thread has not claimed of its part is done by the others") {
  ThreadPool pool(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int repeat = 0; repeat < 20; ++repeat) {
    constexpr std::int64_t n = 1024;
    std::atomic<std::int64_t> covered{0}, held{0};
    std::atomic<bool> helped{true};
    run(pool, n, 1, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t length = end - begin;
      if (std::this_thread::get_id() == caller) {  // comes to the worker's part when that has begun it
        if (!eventually([&] { return held.load() != 0; })) helped = false;
      } else if (std::int64_t none = 0; held.compare_exchange_strong(none, length)) {
        if (!eventually([&] { return covered.load() == n - length; })) helped = false;
      }
      covered += length;
    });
    REQUIRE(helped);
    CHECK(covered == n);
    CHECK(held == n / 4);  // the first half of a part
  }
}

TEST_CASE("more threads than processors, job after job") {
  ThreadPool pool(64);
  for (int repeat = 0; repeat < 200; ++repeat) {
    Coverage coverage(5000);
    pool.run(5000, 1, Coverage::body, &coverage);
    REQUIRE(coverage.once());
  }
}

TEST_CASE("workers run at the same time as the caller, also when parked before") {
  ThreadPool pool(2);
  CHECK(two_threads_meet(pool));
  CHECK(two_threads_meet(pool));
  REQUIRE(eventually([&] { return pool.idle(); }));
  CHECK(two_threads_meet(pool));
}

TEST_CASE("all workers of a pool of more threads than cores can work at once") {
  const int threads = 4 * static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  ThreadPool pool(threads);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::atomic<int> begun{0};
    std::atomic<bool> met{true};
    run(pool, threads, 1, [&](std::int64_t, std::int64_t) {
      begun.fetch_add(1);
      if (!eventually([&] { return begun.load() == threads; })) met = false;
    });
    CHECK(met);
    if (repeat == 1) CHECK(eventually([&] { return pool.idle(); }));
  }
}

TEST_CASE("idle: before the first use and after a while without work") {
  ThreadPool pool(2);
  CHECK(pool.idle());
  CHECK(two_threads_meet(pool));
  CHECK(eventually([&] { return pool.idle(); }));
  ThreadPool alone(1);
  CHECK(alone.idle());
}

TEST_CASE("the caller waits for a piece that a worker has begun, however long that takes") {
  ThreadPool pool(2);
  const auto caller = std::this_thread::get_id();
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::atomic<bool> worker_began{false}, worker_done{false};
    run(pool, 2, 1, [&](std::int64_t, std::int64_t) {
      if (std::this_thread::get_id() == caller) {
        CHECK(eventually([&] { return worker_began.load(); }));
      } else {
        worker_began = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        worker_done = true;
      }
    });
    CHECK(worker_done.load());
  }
}

#if defined(__linux__)

TEST_CASE("workers run elsewhere than their submitter, within what they are allowed") {
  const auto processors_of = [](int thread) {
    cpu_set_t set;
    std::vector<int> result;
    if (sched_getaffinity(thread, sizeof set, &set) != 0) return result;
    for (int p = 0; p < CPU_SETSIZE; ++p) {
      if (CPU_ISSET(static_cast<std::size_t>(p), &set)) result.push_back(p);
    }
    return result;
  };
  const auto restrict = [](int thread, const std::vector<int>& processors) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int p : processors) CPU_SET(static_cast<std::size_t>(p), &set);
    REQUIRE(sched_setaffinity(thread, sizeof set, &set) == 0);
  };
  const auto this_thread = [] { return static_cast<int>(syscall(SYS_gettid)); };
  const std::vector<int> all = processors_of(0);
  if (all.size() < 2) {
    MESSAGE("needs two processors");
    return;
  }
  ThreadPool pool(2);
  struct Worker {
    int thread = 0, processor = -1;
  };
  // Runs a job of two pieces on both threads at once; answers who the worker was, and where.
  const auto meet = [&] {
    Worker worker;
    std::atomic<int> begun{0};
    const int caller = this_thread();
    run(pool, 2, 1, [&](std::int64_t begin, std::int64_t end) {
      if (this_thread() != caller) worker = {.thread = this_thread(), .processor = sched_getcpu()};
      begun.fetch_add(static_cast<int>(end - begin));
      CHECK(eventually([&] { return begun.load() == 2; }));
    });
    return worker;
  };
  meet();  // a worker inherits what its first submitter was allowed
  for (const int mine : {all.front(), all.back(), all.front()}) {
    CAPTURE(mine);
    restrict(0, {mine});
    const int thread = meet().thread;  // the worker may have begun before it was sent off
    for (int i = 0; i < 10; ++i) {
      REQUIRE(eventually([&] { return pool.idle(); }));
      CHECK(meet().processor != mine);
    }
    // What somebody else allows the worker meanwhile is kept.
    restrict(thread, {mine});
    CHECK(meet().processor == mine);
    CHECK(processors_of(thread) == std::vector<int>{mine});
    restrict(thread, {all.front(), all.back()});
    REQUIRE(eventually([&] { return pool.idle(); }));
    CHECK(meet().processor == (mine == all.front() ? all.back() : all.front()));
    restrict(thread, all);
  }
  // A submitter that waits for a piece sleeps, and the worker may use its processor.
  restrict(0, {all.front()});
  const int thread = meet().thread;
  std::atomic<bool> begun{false};
  std::vector<int> meanwhile;
  run(pool, 2, 1, [&](std::int64_t, std::int64_t) {
    if (this_thread() != thread) {
      CHECK(eventually([&] { return begun.load(); }));
      return;
    }
    begun = true;
    eventually([&] { return processors_of(0) == all; });
    meanwhile = processors_of(0);
  });
  CHECK(meanwhile == all);
  restrict(0, all);
}

#endif

TEST_CASE("the workers have names and leave signals to the application") {
  ThreadPool pool(3);
  std::mutex mutex;
  std::set<std::string> names;
  std::atomic<int> begun{0};
  std::atomic<bool> blocked{true}, faults_open{true};
  const auto caller = std::this_thread::get_id();
  run(pool, 3, 1, [&](std::int64_t, std::int64_t) {
    begun.fetch_add(1);
    CHECK(eventually([&] { return begun.load() == 3; }));
    if (std::this_thread::get_id() == caller) return;
    char name[32] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    if (sigismember(&mask, SIGINT) == 0 || sigismember(&mask, SIGTERM) == 0) blocked = false;
    if (sigismember(&mask, SIGSEGV) != 0) faults_open = false;
    const std::lock_guard lock(mutex);
    names.insert(name);
  });
  CHECK(names == std::set<std::string>{"tack-cpu-1", "tack-cpu-2"});
  CHECK(blocked);
  CHECK(faults_open);
  sigset_t mine;
  pthread_sigmask(SIG_SETMASK, nullptr, &mine);
  CHECK(sigismember(&mine, SIGINT) == 0);
}

TEST_CASE("a nested call runs on its own thread") {
  ThreadPool pool(2);
  Coverage outer(64);
  std::vector<std::unique_ptr<Coverage>> inner;
  inner.reserve(64);
  for (int i = 0; i < 64; ++i) inner.push_back(std::make_unique<Coverage>(100));
  std::atomic<bool> own{true};
  run(pool, 64, 1, [&](std::int64_t begin, std::int64_t end) {
    Coverage::body(&outer, begin, end);
    for (std::int64_t i = begin; i < end; ++i) {
      const auto thread = std::this_thread::get_id();
      const bool called = run(pool, 100, 1, [&](std::int64_t b, std::int64_t e) {
        if (std::this_thread::get_id() != thread) own = false;
        Coverage::body(inner[static_cast<std::size_t>(i)].get(), b, e);
      });
      if (called) own = false;
    }
  });
  CHECK(outer.once());
  for (const auto& coverage : inner) CHECK(coverage->once());
  CHECK(own);
}

TEST_CASE("a caller that finds the pool busy does not wait for it") {
  ThreadPool pool(2);
  std::atomic<bool> holding{false}, let_go{false};
  std::thread holder([&] {
    run(pool, 2, 1, [&](std::int64_t, std::int64_t) {
      holding = true;
      CHECK(eventually([&] { return let_go.load(); }));
    });
  });
  REQUIRE(eventually([&] { return holding.load(); }));
  Coverage coverage(1000);
  CHECK_FALSE(pool.run(1000, 1, Coverage::body, &coverage));
  CHECK(coverage.once());
  let_go = true;
  holder.join();
  Coverage again(1000);
  CHECK(pool.run(1000, 1, Coverage::body, &again));
  CHECK(again.once());
}

TEST_CASE("many callers at once, jobs of all sizes, workers parking in between") {
  ThreadPool pool(3);
  std::atomic<bool> right{true};
  std::vector<std::thread> callers;
  callers.reserve(3);
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&, c] {
      for (int i = 0; i < 5000; ++i) {
        const std::int64_t n = 1 + (i * 37 + c * 11) % 300;
        Coverage coverage(n);
        pool.run(n, 1 + i % 5, Coverage::body, &coverage);
        if (!coverage.once()) right = false;
        if (i % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i % 60));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(right);
}

TEST_CASE("pools come and go: unused, just used, parked, several at once") {
  for (int i = 0; i < 50; ++i) {
    ThreadPool unused(4);
    ThreadPool a(2), b(3);
    Coverage in_a(100), in_b(100);
    a.run(100, 1, Coverage::body, &in_a);
    b.run(100, 1, Coverage::body, &in_b);
    CHECK(in_a.once());
    CHECK(in_b.once());
    if (i % 10 == 0) CHECK(eventually([&] { return a.idle() && b.idle(); }));
  }
}

TEST_CASE("a pool needs at least one thread") {
  for (const int threads : {0, -3}) {
    CHECK_THROWS_WITH_AS(ThreadPool{threads}, doctest::Contains(std::to_string(threads).c_str()), tack::Error);
  }
}

TEST_CASE("a child of fork has workers of its own") {
  if (thread_sanitizer) return;  // it refuses threads in a child of fork
  ThreadPool pool(2);
  CHECK(two_threads_meet(pool));
  CHECK(in_child([&] { return two_threads_meet(pool) && two_threads_meet(pool) ? 7 : 1; }) == 7);
  CHECK(two_threads_meet(pool));

  SUBCASE("and of a fork beside a busy pool") {
    std::atomic<bool> holding{false}, let_go{false};
    std::thread holder([&] {
      run(pool, 2, 1, [&](std::int64_t, std::int64_t) {
        holding = true;
        CHECK(eventually([&] { return let_go.load(); }));
      });
    });
    REQUIRE(eventually([&] { return holding.load(); }));
    CHECK(in_child([&] { return two_threads_meet(pool) ? 7 : 1; }) == 7);
    let_go = true;
    holder.join();
  }
  SUBCASE("of a pool never used before") {
    ThreadPool fresh(2);
    CHECK(in_child([&] { return two_threads_meet(fresh) ? 7 : 1; }) == 7);
    CHECK(two_threads_meet(fresh));
  }
  SUBCASE("of a child") {
    CHECK(in_child([&] {
            if (!two_threads_meet(pool)) return 1;
            const pid_t grandchild = fork();
            if (grandchild == 0) _exit(two_threads_meet(pool) ? 7 : 1);
            int status = 0;
            waitpid(grandchild, &status, 0);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
          }) == 7);
  }
  SUBCASE("and may destroy its pool") {
    auto mortal = std::make_unique<ThreadPool>(2);
    CHECK(two_threads_meet(*mortal));
    CHECK(in_child([&] {
            mortal.reset();
            return 7;
          }) == 7);
  }
}

TEST_CASE("where no thread can start, the error says so and nothing has run") {
  if (thread_sanitizer || address_sanitizer) return;  // they need room that the child forbids itself
  const auto outcome = [] {
    ThreadPool pool(2);
    forbid_new_threads();
    bool ran = false;
    try {
      run(pool, 100, 1, [&](std::int64_t, std::int64_t) { ran = true; });
    } catch (const tack::Error& error) {
      const std::string message = error.what();
      const bool says =
          message.find("could not start a thread") != std::string::npos && message.find("TACK_CPU_THREADS") != std::string::npos;
      return !ran && says && error.code() == tack::ErrorCode::unavailable ? 7 : 2;
    }
    return 1;
  };
  CHECK(in_child(outcome) == 7);
}

namespace {

/// A folder that stands for "/".
class FakeRoot {
 public:
  FakeRoot() : path_(std::filesystem::temp_directory_path() / ("tack-topology-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  std::string path() const { return path_.string(); }
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path full = path_ / file;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  void siblings(int cpu, const std::string& list) const {
    write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list", list + "\n");
  }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("cores: hardware threads of one core count once, and only where the process may run") {
  const FakeRoot root;
  for (const int cpu : {0, 1, 2, 3}) root.siblings(cpu, cpu % 2 == 0 ? "0,2" : "1,3");
  const auto cores = [&](std::vector<int> cpus) { return tack::topology::distinct_cores(cpus, root.path()); };
  CHECK(cores({0, 1, 2, 3}) == 2);
  CHECK(cores({0, 2}) == 1);
  CHECK(cores({3}) == 1);
  CHECK(cores({0, 1}) == 2);
  CHECK(cores({8, 9}) == 2);  // nothing is known of them
}

TEST_CASE("control groups limit the cores: version 2, version 1, parents, containers") {
  const FakeRoot root;
  const auto quota = [&] { return tack::topology::quota(root.path()); };
  CHECK(quota() == std::numeric_limits<double>::infinity());
  SUBCASE("version 2, the tightest of the ancestors") {
    root.write("proc/self/cgroup", "0::/a/b\n");
    root.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    CHECK(quota() == std::numeric_limits<double>::infinity());
    root.write("sys/fs/cgroup/a/cpu.max", "350000 100000\n");
    CHECK(quota() == doctest::Approx(3.5));
    root.write("sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    CHECK(quota() == doctest::Approx(1.5));
  }
  SUBCASE("version 2 in a container: the path names nothing here") {
    root.write("proc/self/cgroup", "0::/docker/0123\n");
    root.write("sys/fs/cgroup/cpu.max", "200000 100000\n");
    CHECK(quota() == doctest::Approx(2));
  }
  SUBCASE("version 1, beside other controllers") {
    root.write("proc/self/cgroup", "12:cpuset:/c\n4:cpu,cpuacct:/c\n1:name=systemd:/\n");
    root.write("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "50000\n");
    root.write("sys/fs/cgroup/cpu/c/cpu.cfs_period_us", "100000\n");
    CHECK(quota() == doctest::Approx(0.5));
    root.write("sys/fs/cgroup/cpu/c/cpu.cfs_quota_us", "-1\n");
    CHECK(quota() == std::numeric_limits<double>::infinity());
  }
  SUBCASE("nonsense is no limit") {
    root.write("proc/self/cgroup", "0::/a\nwhat\n");
    root.write("sys/fs/cgroup/a/cpu.max", "lots\n");
    CHECK(quota() == std::numeric_limits<double>::infinity());
  }
}

TEST_CASE("cores that may be used: whole ones of the quota, at least one") {
  using tack::topology::usable_cores;
  CHECK(usable_cores(8, std::numeric_limits<double>::infinity()) == 8);
  CHECK(usable_cores(8, 3.5) == 3);
  CHECK(usable_cores(8, 0.5) == 1);
  CHECK(usable_cores(2, 16) == 2);
  CHECK(usable_cores(0, 1) == 1);
}

TEST_CASE("this machine's cores: between one and its logical CPUs, and one where the affinity says so") {
  const int cores = tack::physical_cores();
  CHECK(cores >= 1);
  CHECK(cores <= static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
#if defined(__linux__)
  CHECK(in_child([] {
          cpu_set_t allowed, one;
          sched_getaffinity(0, sizeof allowed, &allowed);
          CPU_ZERO(&one);
          for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (!CPU_ISSET(cpu, &allowed)) continue;
            CPU_SET(cpu, &one);
            break;
          }
          sched_setaffinity(0, sizeof one, &one);
          return tack::physical_cores();
        }) == 1);
#endif
}

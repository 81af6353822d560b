// tests/bench/cpp/fanout.cpp -- what it costs to hand work to two threads: tack's pool beside libgomp and a serial run, in one process.
//
// usage: fanout [rounds] [neighbour]    prints a Markdown table: medians over the rounds, smallest and largest round in brackets.
// `neighbour` adds the last row: the mean time of 200 us of work while a child process runs a busy loop that is pinned nowhere.
// Build: g++ -O2 -fopenmp -std=c++20 -pthread -Icpp/include -Icpp/src tests/bench/cpp/fanout.cpp
//        cpp/src/core/{thread_pool,thread_host_posix,parking_linux,error,text}.cpp
#include <omp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "core/thread_pool.h"

namespace {

using Microseconds = double;
using Run = std::function<void()>;

Microseconds now() { return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void busy(Microseconds length) {
  const Microseconds end = now() + length;
  while (now() < end) {
  }
}

struct alignas(128) Padded {
  volatile int value = 0;
};
std::array<Padded, 64> touched;

Microseconds median(std::vector<Microseconds> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

// The four cases. Each answers one figure for one round.
Microseconds warm(const Run& run, const Run& work) {
  std::vector<Microseconds> samples;
  for (int k = 0; k < 40; ++k) {
    for (int i = 0; i < 20; ++i) work();  // long enough for the second thread to be awake, on a CPU of its own
    const Microseconds start = now();
    for (int i = 0; i < 200; ++i) run();
    samples.push_back((now() - start) / 200);
  }
  return median(samples);
}

Microseconds after_idleness(const Run& run, const Run&) {
  std::vector<Microseconds> samples;
  for (int k = 0; k < 15; ++k) {
    usleep(50000);
    const Microseconds start = now();
    run();
    samples.push_back(now() - start);
  }
  return median(samples);
}

Microseconds repeated(const Run& run, const Run&) {
  for (int i = 0; i < 20; ++i) run();
  std::vector<Microseconds> samples;
  for (int k = 0; k < 200; ++k) {
    const Microseconds start = now();
    run();
    samples.push_back(now() - start);
  }
  return median(samples);
}

Microseconds mean_time(const Run& run, const Run&) {
  for (int i = 0; i < 20; ++i) run();
  const Microseconds start = now();
  int count = 0;
  while (now() - start < 1e6) {
    run();
    ++count;
  }
  return (now() - start) / count;
}

class Neighbour {
 public:
  explicit Neighbour(bool wanted) : child_(wanted ? fork() : -1) {
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile unsigned long i = 0;;) i = i + 1;
    }
    if (child_ > 0) usleep(20000);
  }
  ~Neighbour() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  pid_t child_;
};

struct Peer {
  std::string name;
  Run empty, work200;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const bool with_neighbour = argc > 2 && std::string(argv[2]) == "neighbour";
  constexpr int threads = 2;
  omp_set_num_threads(threads);
  tack::ThreadPool pool(threads);

  // 200 us of work: 20000 iterations of 10 ns each, so that the pool divides it as it would a kernel.
  const auto ten_ns = [](void*, std::int64_t begin, std::int64_t end) { busy(static_cast<Microseconds>(end - begin) * 0.01); };
  const auto touch = [](void*, std::int64_t begin, std::int64_t) { touched[static_cast<std::size_t>(begin & 63)].value = 1; };
  const std::vector<Peer> peers{
      {"serial", [&] { touch(nullptr, 0, 1); }, [] { busy(200); }},
      {"libgomp",
       [] {
#pragma omp parallel
         touched[static_cast<std::size_t>(omp_get_thread_num())].value = 1;
       },
       [] {
#pragma omp parallel
         busy(100);
       }},
      {"tack", [&] { pool.run(threads, 1, touch, nullptr); }, [&] { pool.run(20000, 1000, ten_ns, nullptr); }},
  };
  struct Case {
    const char* title;
    Microseconds (*measure)(const Run&, const Run&);
    Run Peer::* what;
    bool neighbour;
  };
  std::vector<Case> cases{
      {"empty, warm", warm, &Peer::empty, false},
      {"empty, after 50 ms of idleness", after_idleness, &Peer::empty, false},
      {"200 us of work, warm", repeated, &Peer::work200, false},
      {"200 us of work, after 50 ms of idleness", after_idleness, &Peer::work200, false},
  };
  if (with_neighbour) cases.push_back({"200 us of work beside a busy neighbour, mean", mean_time, &Peer::work200, true});

  std::printf("| microseconds, %d threads |", threads);
  for (const Peer& peer : peers) std::printf(" %s |", peer.name.c_str());
  std::printf("\n|---|---:|---:|---:|\n");
  for (const Case& c : cases) {
    std::vector<std::vector<Microseconds>> figures(peers.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < peers.size(); ++i) {
        const Neighbour neighbour(c.neighbour);
        figures[i].push_back(c.measure(peers[i].*c.what, peers[i].work200));
      }
    }
    std::printf("| %s |", c.title);
    for (const auto& f : figures) {
      const auto [low, high] = std::minmax_element(f.begin(), f.end());
      std::printf(" %.3g (%.3g..%.3g) |", median(f), *low, *high);
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}

// engine/grid.cpp -- blocks one after another; the threads of a block one after another, each as far as its next barrier.
#include "grid.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "control.h"
#include "fiber.h"
#include "memory.h"
#include "shadow.h"
#include "signals.h"
#include "texture.h"
#include "warp.h"

namespace sim {
namespace {

constexpr std::size_t argument_alignment = 16;

class Grid;
thread_local Grid* current = nullptr;
void work_on_current();

// What a running grid needs, kept for the next one.
struct Workspace {
  Fibers fibers{work_on_current};
  Shadow shadow;
  std::uint32_t epoch = 1;  // counts blocks and barriers
  std::vector<char> signal_stack = std::vector<char>(65536);
};

// A workspace for as long as the lease lives. They belong to no thread, so that work may still run while threads and the process end.
class Lease {
 public:
  Lease() {
    const std::lock_guard lock(mutex());
    if (free().empty()) free().push_back(std::make_unique<Workspace>());
    workspace_ = std::move(free().back());
    free().pop_back();
  }
  ~Lease() {
    const std::lock_guard lock(mutex());
    free().push_back(std::move(workspace_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Workspace& operator*() const { return *workspace_; }

 private:
  static std::mutex& mutex() {
    static auto* const one = new std::mutex;
    return *one;
  }
  static std::vector<std::unique_ptr<Workspace>>& free() {
    static auto* const all = new std::vector<std::unique_ptr<Workspace>>;
    return *all;
  }
  std::unique_ptr<Workspace> workspace_;
};

class Grid {
 public:
  explicit Grid(const Launch& launch)
      : launch_(launch),
        abi_(launch.module->abi()),
        workspace_(*lease_),
        fibers_(workspace_.fibers),
        backwards_(settings().order == Order::delayed) {
    threads_ = launch.block.x * launch.block.y * launch.block.z;
    states_.resize(threads_);
  }

  std::optional<Fault> run() {
    static constexpr SimServices services{access, barrier, warp, texture, fail, clock};
    *abi_.services = services;
    *abi_.window = {};
    *abi_.block_size = launch_.block;
    *abi_.grid_size = launch_.grid;
    pointers();
    current = this;
    const std::uint64_t blocks = static_cast<std::uint64_t>(launch_.grid.x) * launch_.grid.y * launch_.grid.z;
    {
      const FaultGuard guard(on_signal, workspace_.signal_stack);
      for (std::uint64_t i = 0; i < blocks && !fault_; ++i) run_block(backwards_ ? blocks - 1 - i : i);
    }
    current = nullptr;
    if (fault_) fibers_.reset();
    return std::move(fault_);
  }

  // What every fiber does: threads that have not started yet.
  void work() {
    while (next_ < threads_) {
      running_ = backwards_ ? threads_ - 1 - next_ : next_;
      ++next_;
      states_[running_].wait = Wait::none;
      enter(running_);
      launch_.kernel->launch(arguments_.data());
      states_[running_].wait = Wait::done;
      ++done_;
    }
    idle_.push_back(fiber_);
  }

 private:
  enum class Wait { none, block, warp, done };
  struct State {
    Wait wait = Wait::none;
    std::size_t fiber = 0;
    unsigned site = 0, vote = 0;
    int value = 0;
    std::uint32_t warp_epoch = 0;
    WarpCall call{};
  };

  void pointers() {
    arguments_.resize(launch_.kernel->parameters);
    std::size_t offset = 0;
    for (unsigned i = 0; i < launch_.kernel->parameters; ++i) {
      arguments_[i] = const_cast<std::byte*>(launch_.arguments.data()) + offset;
      offset += (launch_.kernel->sizes[i] + argument_alignment - 1) / argument_alignment * argument_alignment;
    }
  }

  void enter(unsigned thread) {
    const unsigned plane = launch_.block.x * launch_.block.y;
    *abi_.thread = {thread % launch_.block.x, thread % plane / launch_.block.x, thread / plane};
  }

  void run_block(std::uint64_t index) {
    const std::uint64_t plane = static_cast<std::uint64_t>(launch_.grid.x) * launch_.grid.y;
    *abi_.block = {static_cast<unsigned>(index % launch_.grid.x), static_cast<unsigned>(index % plane / launch_.grid.x),
                   static_cast<unsigned>(index / plane)};
    const std::size_t own = launch_.module->shared_size();
    if (own + launch_.shared > 0) {
      std::memset(abi_.shared, 0xcd, own);
      std::memset(abi_.dynamic_shared, 0xcd, launch_.shared);
      workspace_.shadow.start(own + launch_.shared, ++workspace_.epoch);
    }
    next_ = 0;
    done_ = 0;
    fibers_used_ = 0;
    idle_.clear();
    while (!fault_) {
      if (next_ < threads_) {
        resume(free_fiber());
      } else if (done_ == threads_) {
        return;
      } else if (!release()) {
        stuck();
      }
    }
  }

  std::size_t free_fiber() {
    if (idle_.empty()) return fibers_used_++;
    const std::size_t fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }

  void resume(std::size_t fiber) {
    fiber_ = fiber;
    Fiber& to = fibers_.get(fiber);
    abi_.window->stack = {to.stack, to.stack_size};
    fibers_.resume(to);
  }

  void go_on(unsigned thread) {
    running_ = thread;
    states_[thread].wait = Wait::none;
    enter(thread);
    resume(states_[thread].fiber);
  }

  // Lets those go on whose barrier or collective is complete. False where there are none.
  bool release() {
    bool any = false;
    for (unsigned first = 0; first < threads_ && !fault_; first += 32) any = release_warp(first) || any;
    if (any || fault_) return true;
    int count = 0;
    for (const State& s : states_) {
      if (s.wait != Wait::block || s.site != states_[0].site) return false;
      count += s.value;
    }
    for (State& s : states_) {
      s.value = s.vote == SIM_VOTE_COUNT ? count : s.vote == SIM_VOTE_AND ? count == static_cast<int>(threads_) : count > 0;
    }
    ++workspace_.epoch;
    for (unsigned i = 0; i < threads_ && !fault_; ++i) go_on(backwards_ ? threads_ - 1 - i : i);
    return true;
  }

  bool release_warp(unsigned first) {
    const unsigned lanes = std::min(32u, threads_ - first);
    std::array<WarpCall*, 32> calls{};
    unsigned alive = 0;
    for (unsigned i = 0; i < lanes; ++i) {
      State& s = states_[first + i];
      if (s.wait != Wait::done) alive |= 1u << i;
      if (s.wait == Wait::warp) calls[i] = &s.call;
    }
    const unsigned ready = complete_warp(calls, alive);
    for (unsigned i = 0; i < lanes; ++i) {
      if ((ready >> i & 1u) != 0) ++states_[first + i].warp_epoch;
    }
    for (unsigned i = 0; i < lanes && !fault_; ++i) {
      if ((ready >> i & 1u) != 0) go_on(first + i);
    }
    return ready != 0;
  }

  void stuck() {
    unsigned at_barrier = 0, ended = 0, first = threads_;
    bool sites = false;
    for (unsigned i = 0; i < threads_; ++i) {
      if (states_[i].wait == Wait::done) ++ended;
      if (states_[i].wait != Wait::block) continue;
      ++at_barrier;
      if (first == threads_) first = i;
      sites = sites || states_[i].site != states_[first].site;
    }
    running_ = first == threads_ ? 0 : first;
    if (sites) return set_fault(Fault::Kind::failure, "divergent barriers: threads of one block wait at different __syncthreads()");
    const std::string counts =
        std::to_string(at_barrier) + " of " + std::to_string(threads_) + " threads wait at it, " + std::to_string(ended) + " have ended";
    set_fault(Fault::Kind::failure, "a barrier that not all threads of the block reach: " + counts);
  }

  void set_fault(Fault::Kind kind, const std::string& what) {
    const SimIndex& t = *abi_.thread;
    const SimIndex& b = *abi_.block;
    char where[160];
    std::snprintf(where, sizeof where, ", block (%u, %u, %u), thread (%u, %u, %u): ", b.x, b.y, b.z, t.x, t.y, t.z);
    fault_ = Fault{kind, "kernel " + std::string(launch_.kernel->name) + where + what};
  }

  // Ends the launch from inside a fiber, which is never resumed.
  [[noreturn]] void abandon(Fault::Kind kind, const std::string& what) {
    set_fault(kind, what);
    for (;;) fibers_.back();
  }

  static void hexadecimal(char (&out)[32], unsigned long value) { std::snprintf(out, sizeof out, "0x%lx", value); }

  void check(unsigned long address, unsigned long size, unsigned kind) {
    const unsigned what = kind & 3u;
    const bool power = (size & (size - 1)) == 0;
    if (size == 0) return;
    if ((kind & SIM_ALIGNED) != 0 && power && (address & (size - 1)) != 0) {
      refuse(Fault::Kind::misaligned, address, size, what, "which is not aligned to its size");
    }
    const std::size_t own = launch_.module->shared_size();
    const auto shared = reinterpret_cast<unsigned long>(abi_.shared), dynamic = reinterpret_cast<unsigned long>(abi_.dynamic_shared);
    if (address - shared < own) return check_shared(address - shared, size, what, own);
    if (address - dynamic < abi_.dynamic_shared_size) {
      if (address - dynamic + size > launch_.shared)
        refuse(Fault::Kind::address, address, size, what, "past the launch's dynamic shared memory");
      return check_shared(own + (address - dynamic), size, what, own + launch_.shared);
    }
    if (launch_.module->contains(address)) return;
    const std::optional<Allocation> found = Memory::instance().find(address);
    const bool mine = found && (found->kind == MemoryKind::pinned || found->device == launch_.device);
    if (mine && found->contains(address, size)) {
      abi_.window->recent[abi_.window->next++ % SIM_RECENT] = {found->start, found->size};
      return;
    }
    refuse(Fault::Kind::address, address, size, what, Memory::instance().describe(mine ? found->start + found->size : address));
  }

  void check_shared(std::size_t offset, std::size_t size, unsigned kind, std::size_t limit) {
    if (offset + size > limit) abandon(Fault::Kind::address, "an access runs past the end of shared memory");
    const Moment now{workspace_.epoch, states_[running_].warp_epoch, static_cast<std::uint16_t>(running_)};
    const std::string wrong = workspace_.shadow.access(offset, size, kind, now);
    if (!wrong.empty()) abandon(Fault::Kind::failure, wrong);
  }

  [[noreturn]] void refuse(Fault::Kind kind, unsigned long address, unsigned long size, unsigned what, const std::string& where) {
    static constexpr const char* verbs[] = {"reads ", "writes ", "updates ", "reads "};
    char hex[32];
    hexadecimal(hex, address);
    abandon(kind, verbs[what] + std::to_string(size) + " bytes at " + hex + ", " + where);
  }

  void suspend(Wait wait) {
    states_[running_].wait = wait;
    states_[running_].fiber = fiber_;
    const unsigned me = running_;
    fibers_.back();
    running_ = me;
  }

  // The services: called by kernels on their fibers.
  static void access(unsigned long address, unsigned long size, unsigned kind) { current->check(address, size, kind); }

  static int barrier(unsigned site, unsigned vote, int value) {
    Grid& grid = *current;
    State& state = grid.states_[grid.running_];
    state.site = site;
    state.vote = vote;
    state.value = value;
    grid.suspend(Wait::block);
    return state.value;
  }

  static unsigned long long warp(unsigned operation, unsigned mask, unsigned long long value, unsigned argument, unsigned width) {
    Grid& grid = *current;
    State& state = grid.states_[grid.running_];
    state.call = {operation, mask, value, argument, width};
    const unsigned lane = grid.running_ % 32;
    if ((mask >> lane & 1u) == 0) grid.abandon(Fault::Kind::failure, "a warp function is called by a lane that its mask leaves out");
    grid.suspend(Wait::warp);
    return state.call.value;
  }

  static void texture(unsigned long long object, unsigned dimensions, float x, float y, float z, float* texel) {
    const std::string wrong = sample(object, dimensions, x, y, z, texel);
    if (!wrong.empty()) current->abandon(Fault::Kind::address, wrong);
  }

  static void fail(const char* what, bool assertion) { current->abandon(assertion ? Fault::Kind::assertion : Fault::Kind::trap, what); }

  static long long clock() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

  static void on_signal(int signal, unsigned long address) {
    Grid& grid = *current;
    if (signal == FaultGuard::time) {
      // Only the kernel's own code can be left anywhere; the engine's may hold a lock.
      if (!grid.launch_.module->contains(address)) return;
      grid.abandon(Fault::Kind::timeout, "it takes more than " + std::to_string(settings().timeout) + " seconds (TACK_SIM_TIMEOUT)");
    }
    char hex[32];
    hexadecimal(hex, address);
    if (signal == FaultGuard::arithmetic)
      grid.abandon(Fault::Kind::failure, "an integer division by zero, or of the least number by -1, which C++ leaves undefined");
    if (signal == FaultGuard::instruction)
      grid.abandon(Fault::Kind::failure, "undefined behaviour of C++ (a trap of the compiler's checks)");
    const Fiber* fiber = grid.fibers_.running();
    if (fiber != nullptr && address < fiber->stack && address >= fiber->stack - 4096) {
      grid.abandon(Fault::Kind::address, "the thread's stack is exhausted (local memory beyond 512 KiB)");
    }
    grid.abandon(Fault::Kind::address, std::string("touches ") + hex + ", " + Memory::instance().describe(address));
  }

  const Launch& launch_;
  const SimModule& abi_;
  const Lease lease_;
  Workspace& workspace_;
  Fibers& fibers_;
  bool backwards_;
  unsigned threads_ = 1, next_ = 0, done_ = 0, running_ = 0;
  std::size_t fiber_ = 0, fibers_used_ = 0;
  std::vector<std::size_t> idle_;
  std::vector<State> states_;
  std::vector<void*> arguments_;
  std::optional<Fault> fault_;
};

void work_on_current() { current->work(); }

}  // namespace

void Launch::take(void* const* parameters) {
  std::size_t total = 0;
  for (unsigned i = 0; i < kernel->parameters; ++i)
    total += (kernel->sizes[i] + argument_alignment - 1) / argument_alignment * argument_alignment;
  arguments.resize(total);
  std::size_t offset = 0;
  for (unsigned i = 0; i < kernel->parameters; ++i) {
    std::memcpy(arguments.data() + offset, parameters[i], kernel->sizes[i]);
    offset += (kernel->sizes[i] + argument_alignment - 1) / argument_alignment * argument_alignment;
  }
}

std::optional<Fault> run(const Launch& launch) {
  const Memory::Opened opened(Memory::instance(), DeviceNumber{launch.device});
  return Grid(launch).run();
}

}  // namespace sim

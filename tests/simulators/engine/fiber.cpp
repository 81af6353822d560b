// engine/fiber.cpp -- the context switch, for x86-64 and aarch64, and the stacks.
#include "fiber.h"

#include <sys/mman.h>

#include <array>
#include <cstring>
#include <new>

#include "address.h"

namespace sim {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t stack_size = 655360;  // CUDA allows a thread 512 KiB of local memory
constexpr std::size_t most_fibers = 1024;   // the most threads of a block

thread_local Fibers* starting = nullptr;

void start() {
  for (Fibers* const mine = starting;;) mine->work();
}

}  // namespace

// Saves what the calling convention says a function keeps, puts the stack pointer in *save and goes on from load.
extern "C" void sim_switch(void** save, void* load);
#if defined(__x86_64__)
asm(R"(
  .text
  .hidden sim_switch
  .globl sim_switch
  .type sim_switch, @function
sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size sim_switch, .-sim_switch
)");
constexpr std::size_t saved_words = 6;
#elif defined(__aarch64__)
asm(R"(
  .text
  .hidden sim_switch
  .globl sim_switch
  .type sim_switch, %function
sim_switch:
  stp x29, x30, [sp, #-160]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x30, [sp], #160
  ret
  .size sim_switch, .-sim_switch
)");
#else
#  error "the simulator's fibers know x86-64 and aarch64"
#endif

Fibers::~Fibers() {
  for (const Fiber& fiber : fibers_) munmap(pointer_to(fiber.stack - page), stack_size + page);
}

Fiber& Fibers::get(std::size_t index) {
  fibers_.reserve(most_fibers);  // references stay valid
  while (fibers_.size() <= index) {
    void* mapped = mmap(nullptr, stack_size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mprotect(mapped, page, PROT_NONE);
    Fiber fiber;
    fiber.stack = address_of(mapped) + page;
    fiber.stack_size = stack_size;
    fibers_.push_back(fiber);
    prepare(fibers_.back());
  }
  return fibers_[index];
}

// A stack from which sim_switch returns into start.
void Fibers::prepare(Fiber& fiber) {
  void (*const entry)() = start;
  const std::uintptr_t top = fiber.stack + fiber.stack_size - 64;
#if defined(__x86_64__)
  std::array<std::uintptr_t, saved_words + 2> frame{};  // registers, the address that ret takes, and start's own return address (none)
  frame[saved_words] = reinterpret_cast<std::uintptr_t>(entry);
  const std::uintptr_t start = top - (saved_words + 2) * sizeof(std::uintptr_t);
#else
  std::array<std::uintptr_t, 20> frame{};
  frame[1] = reinterpret_cast<std::uintptr_t>(entry);
  const std::uintptr_t start = top - sizeof frame;
#endif
  std::memcpy(pointer_to(start), frame.data(), sizeof frame);
  fiber.stack_pointer = pointer_to(start);
}

void Fibers::resume(Fiber& fiber) {
  running_ = &fiber;
  starting = this;
  sim_switch(&main_, fiber.stack_pointer);
  running_ = nullptr;
}

void Fibers::back() { sim_switch(&running_->stack_pointer, main_); }

void Fibers::reset() {
  for (Fiber& fiber : fibers_) prepare(fiber);
}

}  // namespace sim

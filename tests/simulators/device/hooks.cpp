// device/hooks.cpp -- linked into every kernel module: its descriptor, and the checks that the compiler's thread-sanitizer calls lead to.
// Compiled without any sanitizer; hidden symbols, so that a sanitizer that the process itself runs under is not disturbed.
#include "abi.h"

extern "C" {
SimIndex threadIdx, blockIdx, blockDim, gridDim;  // constants to kernels
SimServices sim_services;
SimWindow sim_window;
alignas(1024) char sim_dynamic_shared[227 * 1024];

// The linker gives these names to the ends of the sections of the same name; absent sections leave them null.
extern const SimKernel kernels_start[] __asm__("__start_sim_kernels") __attribute__((weak));
extern const SimKernel kernels_stop[] __asm__("__stop_sim_kernels") __attribute__((weak));
extern char shared_start[] __asm__("__start_sim_shared") __attribute__((weak));
extern char shared_stop[] __asm__("__stop_sim_shared") __attribute__((weak));

extern __attribute__((visibility("default"))) SimModule sim_module;
SimModule sim_module = {SIM_ABI_VERSION,
                        &threadIdx,
                        &blockIdx,
                        &blockDim,
                        &gridDim,
                        &sim_services,
                        &sim_window,
                        kernels_start,
                        kernels_stop,
                        shared_start,
                        shared_stop,
                        sim_dynamic_shared,
                        sizeof(sim_dynamic_shared)};
}

namespace {

inline void check(const void* pointer, unsigned long size, unsigned kind, bool aligned = true) {
  const auto address = reinterpret_cast<unsigned long>(pointer);
  if (address - sim_window.stack.start < sim_window.stack.size) return;
  for (const SimRange& range : sim_window.recent) {
    const unsigned long offset = address - range.start;
    if (offset < range.size && size <= range.size - offset && (!aligned || (address & (size - 1)) == 0)) return;
  }
  sim_services.access(address, size, aligned ? kind | SIM_ALIGNED : kind);
}

}  // namespace

// The names and meanings are those of the interface between GCC or clang and a thread sanitizer's runtime library.
#define SIM_HOOK(name, ...)                               \
  void tsan_##name(__VA_ARGS__) __asm__("__tsan_" #name); \
  void tsan_##name(__VA_ARGS__)
extern "C" {
void sim_atomic_access(const void* p, unsigned long n) { check(p, n, SIM_ATOMIC); }
SIM_HOOK(init) {}
SIM_HOOK(func_entry, void*) {}
SIM_HOOK(func_exit) {}
SIM_HOOK(read1, void* p) { check(p, 1, SIM_READ); }
SIM_HOOK(read2, void* p) { check(p, 2, SIM_READ); }
SIM_HOOK(read4, void* p) { check(p, 4, SIM_READ); }
SIM_HOOK(read8, void* p) { check(p, 8, SIM_READ); }
SIM_HOOK(read16, void* p) { check(p, 16, SIM_READ); }
SIM_HOOK(write1, void* p) { check(p, 1, SIM_WRITE); }
SIM_HOOK(write2, void* p) { check(p, 2, SIM_WRITE); }
SIM_HOOK(write4, void* p) { check(p, 4, SIM_WRITE); }
SIM_HOOK(write8, void* p) { check(p, 8, SIM_WRITE); }
SIM_HOOK(write16, void* p) { check(p, 16, SIM_WRITE); }
// Volatile accesses are relaxed ones in PTX's memory model: they do not race with atomics, as in the loops that the programming guide has
// for atomics of other types.
SIM_HOOK(volatile_read1, void* p) { check(p, 1, SIM_ATOMIC_READ); }
SIM_HOOK(volatile_read2, void* p) { check(p, 2, SIM_ATOMIC_READ); }
SIM_HOOK(volatile_read4, void* p) { check(p, 4, SIM_ATOMIC_READ); }
SIM_HOOK(volatile_read8, void* p) { check(p, 8, SIM_ATOMIC_READ); }
SIM_HOOK(volatile_write1, void* p) { check(p, 1, SIM_ATOMIC); }
SIM_HOOK(volatile_write2, void* p) { check(p, 2, SIM_ATOMIC); }
SIM_HOOK(volatile_write4, void* p) { check(p, 4, SIM_ATOMIC); }
SIM_HOOK(volatile_write8, void* p) { check(p, 8, SIM_ATOMIC); }
// Accesses to types whose alignment is less than their size, such as copies of structs.
SIM_HOOK(unaligned_read2, void* p) { check(p, 2, SIM_READ, false); }
SIM_HOOK(unaligned_read4, void* p) { check(p, 4, SIM_READ, false); }
SIM_HOOK(unaligned_read8, void* p) { check(p, 8, SIM_READ, false); }
SIM_HOOK(unaligned_read16, void* p) { check(p, 16, SIM_READ, false); }
SIM_HOOK(unaligned_write2, void* p) { check(p, 2, SIM_WRITE, false); }
SIM_HOOK(unaligned_write4, void* p) { check(p, 4, SIM_WRITE, false); }
SIM_HOOK(unaligned_write8, void* p) { check(p, 8, SIM_WRITE, false); }
SIM_HOOK(unaligned_write16, void* p) { check(p, 16, SIM_WRITE, false); }
SIM_HOOK(read_range, void* p, unsigned long n) { sim_services.access(reinterpret_cast<unsigned long>(p), n, SIM_READ); }
SIM_HOOK(write_range, void* p, unsigned long n) { sim_services.access(reinterpret_cast<unsigned long>(p), n, SIM_WRITE); }
SIM_HOOK(vptr_update, void**, void*) {}
SIM_HOOK(vptr_read, void**) {}
}

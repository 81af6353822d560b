// device/hooks.cpp -- linked into every kernel module: its descriptor, and the checks that the compiler's thread-sanitizer calls lead to.
// Compiled without any sanitizer; hidden symbols, so that a sanitizer that the process itself runs under is not disturbed.
#include "abi.h"

extern "C" {
SimIndex threadIdx, blockIdx, blockDim, gridDim;  // constants to kernels
SimServices sim_services;
SimWindow sim_window;
alignas(1024) char sim_dynamic_shared[227 * 1024];

// The linker gives these names to the ends of the sections of the same name; absent sections leave them null.
extern const SimKernel __start_sim_kernels[] __attribute__((weak));
extern const SimKernel __stop_sim_kernels[] __attribute__((weak));
extern char __start_sim_shared[] __attribute__((weak));
extern char __stop_sim_shared[] __attribute__((weak));

extern __attribute__((visibility("default"))) SimModule sim_module;
SimModule sim_module = {SIM_ABI_VERSION,
                        &threadIdx,
                        &blockIdx,
                        &blockDim,
                        &gridDim,
                        &sim_services,
                        &sim_window,
                        __start_sim_kernels,
                        __stop_sim_kernels,
                        __start_sim_shared,
                        __stop_sim_shared,
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
extern "C" {
void sim_atomic_access(const void* p, unsigned long n) { check(p, n, SIM_ATOMIC); }
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_read1(void* p) { check(p, 1, SIM_READ); }
void __tsan_read2(void* p) { check(p, 2, SIM_READ); }
void __tsan_read4(void* p) { check(p, 4, SIM_READ); }
void __tsan_read8(void* p) { check(p, 8, SIM_READ); }
void __tsan_read16(void* p) { check(p, 16, SIM_READ); }
void __tsan_write1(void* p) { check(p, 1, SIM_WRITE); }
void __tsan_write2(void* p) { check(p, 2, SIM_WRITE); }
void __tsan_write4(void* p) { check(p, 4, SIM_WRITE); }
void __tsan_write8(void* p) { check(p, 8, SIM_WRITE); }
void __tsan_write16(void* p) { check(p, 16, SIM_WRITE); }
// Accesses to types whose alignment is less than their size, such as copies of structs.
void __tsan_unaligned_read2(void* p) { check(p, 2, SIM_READ, false); }
void __tsan_unaligned_read4(void* p) { check(p, 4, SIM_READ, false); }
void __tsan_unaligned_read8(void* p) { check(p, 8, SIM_READ, false); }
void __tsan_unaligned_read16(void* p) { check(p, 16, SIM_READ, false); }
void __tsan_unaligned_write2(void* p) { check(p, 2, SIM_WRITE, false); }
void __tsan_unaligned_write4(void* p) { check(p, 4, SIM_WRITE, false); }
void __tsan_unaligned_write8(void* p) { check(p, 8, SIM_WRITE, false); }
void __tsan_unaligned_write16(void* p) { check(p, 16, SIM_WRITE, false); }
void __tsan_read_range(void* p, unsigned long n) { sim_services.access(reinterpret_cast<unsigned long>(p), n, SIM_READ); }
void __tsan_write_range(void* p, unsigned long n) { sim_services.access(reinterpret_cast<unsigned long>(p), n, SIM_WRITE); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
}

// device/msl_builtins.h -- what Metal's shading language finds after `#include <metal_stdlib>`, as far as kernels use it, said in host
// C++: the simulator puts it before the text. Brings no other name. Names and meanings: Metal Shading Language Specification
// (address spaces, scalar types, attributes, math and integer functions, atomics, synchronization).
#pragma once
#pragma GCC system_header
#include "abi.h"

#define __METAL_VERSION__ 300
#define double __metal_has_no_double
#define kernel
#define device
#define constant const
#define thread
#define threadgroup
#define __shared__ static __attribute__((section("sim_shared")))
#define __sim_quiet __attribute__((no_sanitize_thread, no_sanitize_undefined, unused)) static inline
#define __sim_pure __attribute__((no_sanitize_undefined, unused)) static inline

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef unsigned long size_t;
typedef long ptrdiff_t;

extern "C" {
extern const __attribute__((visibility("hidden"))) SimIndex threadIdx, blockIdx, blockDim, gridDim;
extern __attribute__((visibility("hidden"))) const SimServices sim_services;
__attribute__((visibility("hidden"))) void sim_atomic_access(const void*, unsigned long);
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
}

namespace metal {

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b)); }
// A barrier. The site is where the text says it; threads that wait at two sites diverge. Shared memory is seen behind one that says so.
__sim_pure void __sim_barrier(mem_flags flags, unsigned site) {
  if ((static_cast<int>(flags) & static_cast<int>(mem_flags::mem_threadgroup)) == 0)
    sim_services.fail("threadgroup_barrier without mem_threadgroup, which leaves threadgroup memory out of order", false);
  sim_services.barrier(site, SIM_VOTE_NONE, 0);
}
#define threadgroup_barrier(flags) __sim_barrier(flags, __COUNTER__ + 1)

// Bits as they are.
template <class To, class From>
__sim_quiet To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To r;
  __builtin_memcpy(&r, &value, sizeof(To));
  return r;
}

// Of floats. Those that round are exact on every machine.
#define __SIM_MATH(name) \
  __sim_pure float name(float x) { return __builtin_##name##f(x); }
__SIM_MATH(sqrt)
__SIM_MATH(floor)
__SIM_MATH(ceil)
__SIM_MATH(trunc)
__SIM_MATH(rint)
__SIM_MATH(fabs)
#undef __SIM_MATH
__sim_pure float copysign(float x, float y) { return __builtin_copysignf(x, y); }
__sim_pure float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }

// Of integers.
__sim_pure uint popcount(uint x) { return static_cast<uint>(__builtin_popcount(x)); }
__sim_pure uint clz(uint x) { return x == 0 ? 32u : static_cast<uint>(__builtin_clz(x)); }
__sim_pure uint mulhi(uint a, uint b) { return static_cast<uint>((static_cast<ulong>(a) * b) >> 32); }

// Atomics of 32 bits. Groups run on one thread, so the operation itself needs no host atomic but towards the host.
enum memory_order { memory_order_relaxed };
template <class T>
struct __sim_atomic {
  T value;
};
typedef __sim_atomic<int> atomic_int;
typedef __sim_atomic<uint> atomic_uint;
typedef __sim_atomic<float> atomic_float;
template <class T>
struct __sim_same {
  typedef T type;
};
template <class T>
using __sim_value = typename __sim_same<T>::type;  // deduced from the atomic alone, as in MSL
template <class T, class F>
__sim_quiet T __sim_update(__sim_atomic<T>* at, F next) {
  sim_atomic_access(at, sizeof(T));
  T old = at->value;
  at->value = next(old);
  return old;
}
#define __SIM_ATOMIC(name, expression)                                                          \
  template <class T>                                                                            \
  __sim_quiet T atomic_##name##_explicit(__sim_atomic<T>* at, __sim_value<T> v, memory_order) { \
    return __sim_update(at, [v](T old) -> T { return static_cast<T>(expression); });            \
  }
// Integers wrap.
template <class T>
struct __sim_bits {
  typedef uint type;
};
template <>
struct __sim_bits<float> {
  typedef float type;
};
#define __SIM_WRAPPED(op) static_cast<typename __sim_bits<T>::type>(old) op static_cast<typename __sim_bits<T>::type>(v)
__SIM_ATOMIC(exchange, (static_cast<void>(old), v))
__SIM_ATOMIC(fetch_add, __SIM_WRAPPED(+))
__SIM_ATOMIC(fetch_sub, __SIM_WRAPPED(-))
__SIM_ATOMIC(fetch_and, old& v)
__SIM_ATOMIC(fetch_or, old | v)
__SIM_ATOMIC(fetch_xor, old ^ v)
__SIM_ATOMIC(fetch_min, v < old ? v : old)
__SIM_ATOMIC(fetch_max, v > old ? v : old)
#undef __SIM_WRAPPED
#undef __SIM_ATOMIC
template <class T>
__sim_quiet T atomic_load_explicit(__sim_atomic<T>* at, memory_order) {
  return __sim_update(at, [](T old) -> T { return old; });
}
template <class T>
__sim_quiet void atomic_store_explicit(__sim_atomic<T>* at, __sim_value<T> v, memory_order) {
  __sim_update(at, [v](T) -> T { return v; });
}
// Fails for no reason now and then, as the weak one may.
template <class T>
__sim_quiet bool atomic_compare_exchange_weak_explicit(__sim_atomic<T>* at, T* expected, __sim_value<T> v, memory_order, memory_order) {
  static unsigned asked = 0;
  sim_atomic_access(at, sizeof(T));
  if (at->value != *expected) {
    *expected = at->value;
    return false;
  }
  if (++asked % 7 == 0) return false;
  at->value = v;
  return true;
}

// Volumes of floats, and the three samplers that there are: the engine has an object for each, in this order.
enum class coord { normalized, pixel };
enum class address { clamp_to_edge, repeat };
enum class filter { nearest, linear };
enum class access { sample, read, write, read_write };
struct float3 {
  float x, y, z;
  constexpr float3(float a, float b, float c) : x(a), y(b), z(c) {}
};
struct float4 {
  float x, y, z, w;
};
struct sampler {
  unsigned way;
  constexpr sampler(coord c, address a, filter f)
      : way(c == coord::normalized && a == address::repeat && f == filter::linear ? 2u
            : c == coord::pixel && a == address::clamp_to_edge                    ? (f == filter::linear ? 1u : 0u)
                                                                                  : 9u) {}
};
template <class T, access how = access::sample>
struct texture3d {
  unsigned long long objects[3];
  __attribute__((no_sanitize_thread)) float4 sample(sampler s, float3 at) const {
    float texel[4];
    if (s.way > 2) sim_services.fail("a sampler that the stand-in does not have", false);
    sim_services.texture(objects[s.way], 3, at.x, at.y, at.z, texel);
    return {texel[0], texel[1], texel[2], texel[3]};
  }
};

}  // namespace metal

// What the compiler stand-in puts after the text for each kernel, and around variables in threadgroup memory.
template <class T>
__sim_pure void __sim_escape(T& variable) {  // makes accesses to the variable visible to the checks: its address is known elsewhere
  asm volatile("" : : "r"(&variable) : "memory");
}
enum { __sim_buffers = 31, __sim_textures = 8, __sim_first_texture = 40 };
template <unsigned place, class A>
struct __SimParameter {  // a buffer
  __attribute__((always_inline, no_sanitize_thread)) static A get(void** buffers) { return *static_cast<A*>(buffers[place]); }
};
template <unsigned place, class A>
struct __SimParameter<place, A&> {  // the one thing that lies in a buffer
  __attribute__((always_inline, no_sanitize_thread)) static A& get(void** buffers) { return **static_cast<A**>(buffers[place]); }
};
template <unsigned place, metal::access how>
struct __SimParameter<place, metal::texture3d<float, how>> {  // three words behind the buffers
  __attribute__((always_inline, no_sanitize_thread)) static metal::texture3d<float, how> get(void** buffers) {
    void** const words = buffers + __sim_buffers + 3 * (place - __sim_first_texture);
    typedef const unsigned long long* Word;
    return {{*static_cast<Word>(words[0]), *static_cast<Word>(words[1]), *static_cast<Word>(words[2])}};
  }
};
#define __SIM_PLACE(number, expression)                                                              \
  template <class A>                                                                                 \
  struct __SimParameter<number, A> {                                                                 \
    __attribute__((always_inline, no_sanitize_thread)) static A get(void**) { return (expression); } \
  };
__SIM_PLACE(100, threadIdx.x)
__SIM_PLACE(101, blockIdx.x)
__SIM_PLACE(102, blockDim.x)
__SIM_PLACE(103, blockIdx.x* blockDim.x + threadIdx.x)
__SIM_PLACE(104, gridDim.x)
#undef __SIM_PLACE
template <auto function, unsigned... places>
struct __SimEntry {
  template <class... A>
  __attribute__((always_inline, no_sanitize_thread)) static void call(void (*)(A...), [[maybe_unused]] void** buffers) {
    function(__SimParameter<places, A>::get(buffers)...);
  }
};
template <auto function, unsigned... places>
__attribute__((no_sanitize_thread)) void __sim_entry(void** buffers) {
  __SimEntry<function, places...>::call(function, buffers);
}
#define __SIM_8 8, 8, 8, 8, 8, 8, 8, 8
enum { __sim_words = __sim_buffers + 3 * __sim_textures };
static const unsigned __sim_pointers[__sim_words] = {__SIM_8, __SIM_8, __SIM_8, __SIM_8, __SIM_8, __SIM_8, 8, 8, 8, 8, 8, 8, 8};
#define SIM_KERNEL(index, name, function, bounds)                                                        \
  extern __attribute__((section("sim_kernels"), used, aligned(8))) const SimKernel __sim_kernel_##index; \
  const SimKernel __sim_kernel_##index = {name, function, __sim_pointers, __sim_pointers, __sim_words, bounds};

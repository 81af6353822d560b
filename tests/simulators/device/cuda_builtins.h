// device/cuda_builtins.h -- what CUDA C++ text finds without an include under NVRTC, said in host C++: the simulator puts it before the
// text. Includes nothing and brings no other name, so that what NVRTC does not know does not compile here either. Names and meanings: CUDA
// C++ Programming Guide (language extensions, math and integer intrinsics, atomics, warp functions, texture functions).
#pragma once
#pragma GCC system_header
#include "abi.h"

#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define NULL 0
#define __NVCC__ 1
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __global__
#define __shared__ static __attribute__((section("sim_shared")))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __sim_quiet __attribute__((no_sanitize_thread, no_sanitize_undefined, unused)) static inline
#define __sim_pure __attribute__((no_sanitize_undefined, unused)) static inline

typedef unsigned long size_t;
typedef long ptrdiff_t;
typedef unsigned long long cudaTextureObject_t;

#define __SIM_VECTOR(T, N)                                                                         \
  struct N##1 { T x; };                                                                            \
  struct __attribute__((aligned(2 * sizeof(T) > 16 ? 16 : 2 * sizeof(T)))) N##2 { T x, y; };       \
  struct N##3 { T x, y, z; };                                                                      \
  struct __attribute__((aligned(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)))) N##4 { T x, y, z, w; }; \
  __sim_pure N##1 make_##N##1(T x) { return {x}; }                                                 \
  __sim_pure N##2 make_##N##2(T x, T y) { return {x, y}; }                                         \
  __sim_pure N##3 make_##N##3(T x, T y, T z) { return {x, y, z}; }                                 \
  __sim_pure N##4 make_##N##4(T x, T y, T z, T w) { return {x, y, z, w}; }
__SIM_VECTOR(signed char, char)
__SIM_VECTOR(unsigned char, uchar)
__SIM_VECTOR(short, short)
__SIM_VECTOR(unsigned short, ushort)
__SIM_VECTOR(int, int)
__SIM_VECTOR(unsigned int, uint)
__SIM_VECTOR(long, long)
__SIM_VECTOR(unsigned long, ulong)
__SIM_VECTOR(long long, longlong)
__SIM_VECTOR(unsigned long long, ulonglong)
__SIM_VECTOR(float, float)
__SIM_VECTOR(double, double)
#undef __SIM_VECTOR

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

extern "C" {
extern const __attribute__((visibility("hidden"))) uint3 threadIdx, blockIdx;
extern const __attribute__((visibility("hidden"))) dim3 blockDim, gridDim;
extern __attribute__((visibility("hidden"))) const SimServices sim_services;
__attribute__((visibility("hidden"))) void sim_atomic_access(const void*, unsigned long);
void* memcpy(void*, const void*, size_t);
void* memset(void*, int, size_t);
}
constexpr int warpSize = 32;

// Barriers. The site is where the text says it; threads that wait at two sites diverge.
#define __syncthreads() ((void)sim_services.barrier(__COUNTER__ + 1, SIM_VOTE_NONE, 0))
#define __syncthreads_count(p) (sim_services.barrier(__COUNTER__ + 1, SIM_VOTE_COUNT, !!(p)))
#define __syncthreads_and(p) (sim_services.barrier(__COUNTER__ + 1, SIM_VOTE_AND, !!(p)))
#define __syncthreads_or(p) (sim_services.barrier(__COUNTER__ + 1, SIM_VOTE_OR, !!(p)))
__sim_pure void __threadfence() {}
__sim_pure void __threadfence_block() {}
__sim_pure void __threadfence_system() {}
__sim_pure void __nanosleep(unsigned) {}
__sim_pure void __trap() { sim_services.fail("the kernel called __trap()", false); }
#define assert(e) ((e) ? static_cast<void>(0) : sim_services.fail("assertion failed: " #e, true))
extern "C" int printf(const char*, ...);
__sim_quiet long long clock64() { return sim_services.clock(); }
__sim_quiet long clock() { return static_cast<long>(sim_services.clock()); }

__sim_pure void __syncwarp(unsigned mask = 0xffffffffu) { sim_services.warp(SIM_SYNC, mask, 0, 0, 32); }
__sim_pure unsigned __activemask() { return 0xffffffffu; }
__sim_pure unsigned __ballot_sync(unsigned mask, int p) {
  return static_cast<unsigned>(sim_services.warp(SIM_BALLOT, mask, p != 0, 0, 32));
}
__sim_pure int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
__sim_pure int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
template <class T>
__sim_quiet T __sim_shuffle(unsigned operation, unsigned mask, T value, unsigned argument, int width) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = sim_services.warp(operation, mask, bits, argument, static_cast<unsigned>(width));
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}
#define __SIM_SHUFFLES(T)                                                                                                        \
  __sim_pure T __shfl_sync(unsigned m, T v, int lane, int w = 32) {                                                              \
    return __sim_shuffle(SIM_SHUFFLE, m, v, static_cast<unsigned>(lane), w);                                                     \
  }                                                                                                                              \
  __sim_pure T __shfl_up_sync(unsigned m, T v, unsigned d, int w = 32) { return __sim_shuffle(SIM_SHUFFLE_UP, m, v, d, w); }     \
  __sim_pure T __shfl_down_sync(unsigned m, T v, unsigned d, int w = 32) { return __sim_shuffle(SIM_SHUFFLE_DOWN, m, v, d, w); } \
  __sim_pure T __shfl_xor_sync(unsigned m, T v, int x, int w = 32) {                                                             \
    return __sim_shuffle(SIM_SHUFFLE_XOR, m, v, static_cast<unsigned>(x), w);                                                    \
  }
__SIM_SHUFFLES(int)
__SIM_SHUFFLES(unsigned)
__SIM_SHUFFLES(long)
__SIM_SHUFFLES(unsigned long)
__SIM_SHUFFLES(long long)
__SIM_SHUFFLES(unsigned long long)
__SIM_SHUFFLES(float)
__SIM_SHUFFLES(double)
#undef __SIM_SHUFFLES

// Atomics, of exactly the types that CUDA has. Blocks run on one thread, so the operation itself needs no host atomic but towards the host.
template <class T, class F>
__sim_quiet T __sim_atomic(T* p, F next) {
  sim_atomic_access(p, sizeof(T));
  T old = *p;
  *p = next(old);
  return old;
}
#define __SIM_ATOMIC(name, T, expression)                                           \
  __sim_quiet T name(T* p, T v) {                                                   \
    return __sim_atomic(p, [v](T old) -> T { return static_cast<T>(expression); }); \
  }                                                                                 \
  __sim_quiet T name##_block(T* p, T v) { return name(p, v); }                      \
  __sim_quiet T name##_system(T* p, T v) { return name(p, v); }
#define __SIM_WRAPPING(name, expression)             \
  __SIM_ATOMIC(name, unsigned, expression)           \
  __SIM_ATOMIC(name, unsigned long long, expression) \
  __sim_quiet int name(int* p, int v) { return static_cast<int>(name(reinterpret_cast<unsigned*>(p), static_cast<unsigned>(v))); }
__SIM_WRAPPING(atomicAdd, old + v)
__SIM_ATOMIC(atomicAdd, float, old + v)
__SIM_ATOMIC(atomicAdd, double, old + v)
__SIM_ATOMIC(atomicSub, unsigned, old - v)
__sim_quiet int atomicSub(int* p, int v) { return static_cast<int>(atomicSub(reinterpret_cast<unsigned*>(p), static_cast<unsigned>(v))); }
#define __SIM_BITWISE(name, expression) \
  __SIM_WRAPPING(name, expression)      \
  __SIM_ATOMIC(name, long long, expression)
__SIM_BITWISE(atomicAnd, old& v)
__SIM_BITWISE(atomicOr, old | v)
__SIM_BITWISE(atomicXor, old ^ v)
__SIM_WRAPPING(atomicExch, (static_cast<void>(old), v))
__SIM_ATOMIC(atomicExch, float, (static_cast<void>(old), v))
#define __SIM_ORDERED(T)                        \
  __SIM_ATOMIC(atomicMin, T, v < old ? v : old) \
  __SIM_ATOMIC(atomicMax, T, v > old ? v : old)
__SIM_ORDERED(int)
__SIM_ORDERED(unsigned)
__SIM_ORDERED(long long)
__SIM_ORDERED(unsigned long long)
__SIM_ATOMIC(atomicInc, unsigned, old >= v ? 0u : old + 1u)
__SIM_ATOMIC(atomicDec, unsigned, old == 0u || old > v ? v : old - 1u)
#undef __SIM_ORDERED
#undef __SIM_BITWISE
#undef __SIM_WRAPPING
#undef __SIM_ATOMIC
#define __SIM_CAS(T)                                                                       \
  __sim_quiet T atomicCAS(T* p, T compare, T v) {                                          \
    return __sim_atomic(p, [compare, v](T old) -> T { return old == compare ? v : old; }); \
  }
__SIM_CAS(int)
__SIM_CAS(unsigned)
__SIM_CAS(unsigned short)
__SIM_CAS(unsigned long long)
#undef __SIM_CAS

// Integers.
__sim_pure int __popc(unsigned x) { return __builtin_popcount(x); }
__sim_pure int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__sim_pure int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
__sim_pure int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
__sim_pure int __ffs(int x) { return __builtin_ffs(x); }
__sim_pure int __ffsll(long long x) { return __builtin_ffsll(x); }
__sim_pure int __mulhi(int a, int b) { return static_cast<int>((static_cast<long long>(a) * b) >> 32); }
__sim_pure unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<unsigned long long>(a) * b) >> 32); }
__sim_pure long long __mul64hi(long long a, long long b) { return static_cast<long long>((static_cast<__int128>(a) * b) >> 64); }
__sim_pure unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}
__sim_pure int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
__sim_pure int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
__sim_pure unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; i++) r |= ((x >> i) & 1u) << (31 - i);
  return r;
}
__sim_pure unsigned long long __brevll(unsigned long long x) {
  return (static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32) | __brev(static_cast<unsigned>(x >> 32));
}
__sim_pure unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  const unsigned long long all = (static_cast<unsigned long long>(y) << 32) | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) r |= static_cast<unsigned>((all >> (((s >> (4 * i)) & 7u) * 8u)) & 255u) << (8 * i);
  return r;
}
__sim_pure unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return static_cast<unsigned>(((((static_cast<unsigned long long>(hi) << 32) | lo) << (s & 31u)) >> 32));
}
__sim_pure unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return static_cast<unsigned>(((static_cast<unsigned long long>(hi) << 32) | lo) >> (s & 31u));
}
__sim_pure unsigned __sad(int a, int b, unsigned c) {
  return (a > b ? static_cast<unsigned>(a) - static_cast<unsigned>(b) : static_cast<unsigned>(b) - static_cast<unsigned>(a)) + c;
}

#define __builtin_assume(condition) static_cast<void>(0)

// Bits as they are.
template <class To, class From>
__sim_quiet To __sim_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  To r;
  __builtin_memcpy(&r, &value, sizeof(To));
  return r;
}
__sim_pure int __float_as_int(float x) { return __sim_bits<int>(x); }
__sim_pure unsigned __float_as_uint(float x) { return __sim_bits<unsigned>(x); }
__sim_pure float __int_as_float(int x) { return __sim_bits<float>(x); }
__sim_pure float __uint_as_float(unsigned x) { return __sim_bits<float>(x); }
__sim_pure long long __double_as_longlong(double x) { return __sim_bits<long long>(x); }
__sim_pure double __longlong_as_double(long long x) { return __sim_bits<double>(x); }
__sim_pure int __double2hiint(double x) { return static_cast<int>(__sim_bits<unsigned long long>(x) >> 32); }
__sim_pure int __double2loint(double x) { return static_cast<int>(static_cast<unsigned>(__sim_bits<unsigned long long>(x))); }
__sim_pure double __hiloint2double(int hi, int lo) {
  return __sim_bits<double>((static_cast<unsigned long long>(static_cast<unsigned>(hi)) << 32) | static_cast<unsigned>(lo));
}

#include "cuda_math.h"

// Textures of floats: what the texture object says is applied by the engine.
template <class T>
T tex1D(cudaTextureObject_t object, float x);
template <class T>
T tex2D(cudaTextureObject_t object, float x, float y);
template <class T>
T tex3D(cudaTextureObject_t object, float x, float y, float z);
#define __SIM_FETCH(name, dimensions, ...)                                \
  template <>                                                             \
  __sim_fetch float name<float>(__VA_ARGS__) {                            \
    float texel[4];                                                       \
    sim_services.texture(object, dimensions, x, __SIM_Y, __SIM_Z, texel); \
    return texel[0];                                                      \
  }                                                                       \
  template <>                                                             \
  __sim_fetch float4 name<float4>(__VA_ARGS__) {                          \
    float texel[4];                                                       \
    sim_services.texture(object, dimensions, x, __SIM_Y, __SIM_Z, texel); \
    return {texel[0], texel[1], texel[2], texel[3]};                      \
  }
#define __sim_fetch __attribute__((no_sanitize_thread)) inline
#define __SIM_Y 0.0f
#define __SIM_Z 0.0f
__SIM_FETCH(tex1D, 1, cudaTextureObject_t object, float x)
#undef __SIM_Y
#define __SIM_Y y
__SIM_FETCH(tex2D, 2, cudaTextureObject_t object, float x, float y)
#undef __SIM_Z
#define __SIM_Z z
__SIM_FETCH(tex3D, 3, cudaTextureObject_t object, float x, float y, float z)
#undef __SIM_Y
#undef __SIM_Z
#undef __SIM_FETCH

// What the compiler stand-in puts after the text for each kernel, and around variables in shared memory.
template <class T>
__sim_pure void __sim_escape(T& variable) {  // makes accesses to the variable visible to the checks: its address is known elsewhere
  asm volatile("" : : "r"(&variable) : "memory");
}
struct __SimCall {
  template <class... A>
  __attribute__((always_inline, no_sanitize_thread)) __SimCall(void (*kernel)(A...), A... arguments) {
    kernel(arguments...);
  }
};
template <class... A>
struct __SimParameters {
  static constexpr unsigned count = sizeof...(A);
  static constexpr unsigned sizes[sizeof...(A) + 1] = {sizeof(A)..., 0};
  static constexpr unsigned alignments[sizeof...(A) + 1] = {alignof(A)..., 0};
};
template <class... A>
constexpr const unsigned* __sim_sizes(void (*)(A...)) {
  return __SimParameters<A...>::sizes;
}
template <class... A>
constexpr const unsigned* __sim_alignments(void (*)(A...)) {
  return __SimParameters<A...>::alignments;
}
template <class... A>
constexpr unsigned __sim_count(void (*)(A...)) {
  return sizeof...(A);
}
template <class... A>
__attribute__((always_inline, no_sanitize_thread)) inline void __sim_launch(void (*kernel)(A...), [[maybe_unused]] void** parameters) {
  __SimCall{kernel, *static_cast<A*>(*parameters++)...};
}
#define SIM_KERNEL(index, name, function, bounds)                                                                                 \
  __attribute__((no_sanitize_thread)) static void __sim_launch_##index(void** parameters) { __sim_launch(function, parameters); } \
  extern __attribute__((section("sim_kernels"), used, aligned(8))) const SimKernel __sim_kernel_##index;                          \
  const SimKernel __sim_kernel_##index = {                                                                                        \
      name, __sim_launch_##index, __sim_sizes(function), __sim_alignments(function), __sim_count(function), bounds};

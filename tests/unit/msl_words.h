// msl_words.h -- the words of Metal's shading language in C++ for OpenCL, for checks of syntax, types and address spaces alone: included
// before a text whose attributes have been taken out. Names and meanings: Metal Shading Language Specification.
#define __METAL_VERSION__ 300
#define device __global
#define threadgroup __local
#define thread __private

typedef __UINT8_TYPE__ uchar;
typedef __UINT16_TYPE__ ushort;
typedef __UINT32_TYPE__ uint;
typedef __UINT64_TYPE__ ulong;

// OpenCL has these too.
#define atomic_int metal_atomic_int
#define atomic_uint metal_atomic_uint
#define memory_order metal_memory_order

namespace metal {

template <class To, class From>
To as_type(From value) {
  static_assert(sizeof(To) == sizeof(From), "sizes differ");
  return __builtin_bit_cast(To, value);
}

#define ONE(name, type) type name(type x);
#define TWO(name, type) type name(type x, type y);
ONE(sqrt, float) ONE(floor, float) ONE(ceil, float) ONE(trunc, float) ONE(rint, float) ONE(fabs, float)
TWO(copysign, float)
float fma(float x, float y, float z);
ONE(popcount, uint) ONE(clz, uint)  // the specification has more; printed code asks for no more

typedef float float3 __attribute__((ext_vector_type(3)));
typedef float float4 __attribute__((ext_vector_type(4)));
enum class coord { normalized, pixel };
enum class address { clamp_to_edge, repeat };
enum class filter { nearest, linear };
enum class access { sample };
struct sampler {
  constexpr sampler(coord, address, filter) {}
};
template <class T, access>
struct texture3d {
  float4 sample(sampler way, float3 at) const;
};

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b)); }
void threadgroup_barrier(mem_flags flags);

enum memory_order { memory_order_relaxed };
struct atomic_int { int value; };
struct atomic_uint { uint value; };
#define ATOMIC(name, space, of, type) type atomic_##name##_explicit(volatile space of* at, type value, memory_order order);
#define ATOMICS(space, of, type)                                                                                              \
  ATOMIC(exchange, space, of, type)                                                                                           \
  ATOMIC(fetch_add, space, of, type) ATOMIC(fetch_sub, space, of, type) ATOMIC(fetch_min, space, of, type)                    \
  ATOMIC(fetch_max, space, of, type) ATOMIC(fetch_and, space, of, type) ATOMIC(fetch_or, space, of, type)                     \
  ATOMIC(fetch_xor, space, of, type)                                                                                          \
  bool atomic_compare_exchange_weak_explicit(volatile space of* at, thread type* expected, type desired, memory_order success, \
                                             memory_order failure);
ATOMICS(device, atomic_int, int)
ATOMICS(device, atomic_uint, uint)
ATOMICS(threadgroup, atomic_int, int)
ATOMICS(threadgroup, atomic_uint, uint)

}  // namespace metal

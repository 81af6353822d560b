// backends/cpu/runtime_symbols.cpp -- the functions of the C library that machine code of kernels may call: one table.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "backends/cpu/object_loader.h"

namespace tack::cpu {

namespace {

/// A row; the type picks one overload of a name that C++ gives several.
template <class Function>
ImportedSymbol row(std::string_view name, Function* function) noexcept {
  return {name, reinterpret_cast<void*>(function)};
}

using F32 = float(float);
using F32x2 = float(float, float);
using F64 = double(double);
using F64x2 = double(double, double);

template <class Float>
struct SineCosine {
  Float sine, cosine;
};

/// `bytes` of `to` become a 16-byte pattern, repeated; the last one is cut.
void fill_with_pattern(void* to, const void* pattern, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(to);
  for (; bytes > 16; bytes -= 16, at += 16) std::memcpy(at, pattern, 16);
  std::memcpy(at, pattern, bytes);
}

// What LLVM's optimiser makes of loops that copy, fill and compare, and what it may call for the math operations that a target has no
// instruction for. Both precisions of each.
const auto& table() {
  static const auto rows = [] {
    // clang-format off
    std::vector<ImportedSymbol> all{
        row<void*(void*, const void*, std::size_t)>("memcpy", std::memcpy),
        row<void*(void*, const void*, std::size_t)>("memmove", std::memmove),
        row<void*(void*, int, std::size_t)>("memset", std::memset),
        row<int(const void*, const void*, std::size_t)>("memcmp", std::memcmp),
        row<int(const void*, const void*, std::size_t)>("bcmp", std::memcmp),  // a weaker memcmp: only zero or not counts
        row<void(void*, std::size_t)>("bzero", [](void* to, std::size_t bytes) { std::memset(to, 0, bytes); }),

        row<F64>("sqrt", std::sqrt), row<F32>("sqrtf", std::sqrt),
        row<F64>("cbrt", std::cbrt), row<F32>("cbrtf", std::cbrt),
        row<F64x2>("hypot", std::hypot), row<F32x2>("hypotf", std::hypot),
        row<double(double, double, double)>("fma", std::fma), row<float(float, float, float)>("fmaf", std::fma),
        row<F64x2>("fmod", std::fmod), row<F32x2>("fmodf", std::fmod),
        row<F64x2>("remainder", std::remainder), row<F32x2>("remainderf", std::remainder),
        row<F64x2>("fmin", std::fmin), row<F32x2>("fminf", std::fmin),
        row<F64x2>("fmax", std::fmax), row<F32x2>("fmaxf", std::fmax),
        row<F64>("fabs", std::fabs), row<F32>("fabsf", std::fabs),
        row<F64x2>("copysign", std::copysign), row<F32x2>("copysignf", std::copysign),

        row<F64>("floor", std::floor), row<F32>("floorf", std::floor),
        row<F64>("ceil", std::ceil), row<F32>("ceilf", std::ceil),
        row<F64>("trunc", std::trunc), row<F32>("truncf", std::trunc),
        row<F64>("rint", std::rint), row<F32>("rintf", std::rint),
        row<F64>("nearbyint", std::nearbyint), row<F32>("nearbyintf", std::nearbyint),
        row<F64>("round", std::round), row<F32>("roundf", std::round),

        row<F64>("exp", std::exp), row<F32>("expf", std::exp),
        row<F64>("exp2", std::exp2), row<F32>("exp2f", std::exp2),
        row<F64>("expm1", std::expm1), row<F32>("expm1f", std::expm1),
        row<F64>("log", std::log), row<F32>("logf", std::log),
        row<F64>("log2", std::log2), row<F32>("log2f", std::log2),
        row<F64>("log10", std::log10), row<F32>("log10f", std::log10),
        row<F64>("log1p", std::log1p), row<F32>("log1pf", std::log1p),
        row<F64x2>("pow", std::pow), row<F32x2>("powf", std::pow),
        row<double(double, int)>("ldexp", std::ldexp), row<float(float, int)>("ldexpf", std::ldexp),
        row<double(double, int*)>("frexp", std::frexp), row<float(float, int*)>("frexpf", std::frexp),

        row<F64>("sin", std::sin), row<F32>("sinf", std::sin),
        row<F64>("cos", std::cos), row<F32>("cosf", std::cos),
        row<F64>("tan", std::tan), row<F32>("tanf", std::tan),
        row<F64>("asin", std::asin), row<F32>("asinf", std::asin),
        row<F64>("acos", std::acos), row<F32>("acosf", std::acos),
        row<F64>("atan", std::atan), row<F32>("atanf", std::atan),
        row<F64x2>("atan2", std::atan2), row<F32x2>("atan2f", std::atan2),
        row<F64>("sinh", std::sinh), row<F32>("sinhf", std::sinh),
        row<F64>("cosh", std::cosh), row<F32>("coshf", std::cosh),
        row<F64>("tanh", std::tanh), row<F32>("tanhf", std::tanh),
        row<F64>("asinh", std::asinh), row<F32>("asinhf", std::asinh),
        row<F64>("acosh", std::acosh), row<F32>("acoshf", std::acosh),
        row<F64>("atanh", std::atanh), row<F32>("atanhf", std::atanh),
        row<F64>("erf", std::erf), row<F32>("erff", std::erf),
        row<F64>("erfc", std::erfc), row<F32>("erfcf", std::erfc),
        // LLVM joins a sine and a cosine of one angle into one call, and turns pow(10, x) into exp10, where the C library is GNU's.
        row<void(double, double*, double*)>("sincos", [](double x, double* s, double* c) { *s = std::sin(x), *c = std::cos(x); }),
        row<void(float, float*, float*)>("sincosf", [](float x, float* s, float* c) { *s = std::sin(x), *c = std::cos(x); }),
        row<F64>("exp10", [](double x) { return std::pow(10.0, x); }),
        row<F32>("exp10f", [](float x) { return std::pow(10.0f, x); }),

        // The same by the names that macOS has for them, and its way of filling memory with a pattern of 16 bytes.
        row<void(void*, std::size_t)>("__bzero", [](void* to, std::size_t bytes) { std::memset(to, 0, bytes); }),
        row<F64>("__exp10", [](double x) { return std::pow(10.0, x); }),
        row<F32>("__exp10f", [](float x) { return std::pow(10.0f, x); }),
        row<SineCosine<double>(double)>("__sincos_stret", [](double x) { return SineCosine<double>{std::sin(x), std::cos(x)}; }),
        row<SineCosine<float>(float)>("__sincosf_stret", [](float x) { return SineCosine<float>{std::sin(x), std::cos(x)}; }),
        row<void(void*, const void*, std::size_t)>("memset_pattern16", fill_with_pattern),
    };
    // clang-format on
    for (const ImportedSymbol& symbol : system_symbols()) all.push_back(symbol);
    std::sort(all.begin(), all.end(), [](const ImportedSymbol& a, const ImportedSymbol& b) { return a.name < b.name; });
    return all;
  }();
  return rows;
}

}  // namespace

std::span<const ImportedSymbol> runtime_symbols() { return table(); }

void* runtime_symbol(std::string_view name) {
  const auto& rows = table();
  const auto at =
      std::lower_bound(rows.begin(), rows.end(), name, [](const ImportedSymbol& row, std::string_view key) { return row.name < key; });
  return at != rows.end() && at->name == name ? at->address : nullptr;
}

}  // namespace tack::cpu

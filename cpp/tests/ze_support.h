// ze_support.h -- what tests of the Level Zero backend share: its stand-in driver, and kernels printed by hand.
#pragma once

#include <level_zero/ze_abi.h>

#include <string>

#include "cuda_support.h"

namespace tack::test {

/// The stand-in driver, with the calls of an application that has a context of its own.
class StandInZe : public StandIn {
 public:
  using Result = level_zero::abi::Result;
  StandInZe() : StandIn("TACK_LIBZE") { CHECK(function<Result (*)(std::uint32_t)>("zeInit")(1) == Result::success); }

  level_zero::abi::Driver driver() const {
    std::uint32_t count = 1;
    level_zero::abi::Driver found = nullptr;
    CHECK(function<Result (*)(std::uint32_t*, level_zero::abi::Driver*)>("zeDriverGet")(&count, &found) == Result::success);
    return found;
  }
  level_zero::abi::Device device(std::uint32_t index) const {
    std::uint32_t count = index + 1;
    std::vector<level_zero::abi::Device> found(count);
    CHECK(function<Result (*)(level_zero::abi::Driver, std::uint32_t*, level_zero::abi::Device*)>("zeDeviceGet")(
              driver(), &count, found.data()) == Result::success);
    return found[index];
  }
  level_zero::abi::Context create() const {
    const level_zero::abi::ContextDesc desc;
    level_zero::abi::Context context = nullptr;
    CHECK(function<Result (*)(level_zero::abi::Driver, const level_zero::abi::ContextDesc*, level_zero::abi::Context*)>("zeContextCreate")(
              driver(), &desc, &context) == Result::success);
    return context;
  }
  void destroy(level_zero::abi::Context context) const {
    CHECK(function<Result (*)(level_zero::abi::Context)>("zeContextDestroy")(context) == Result::success);
  }
  /// Level Zero knows nothing of threads.
  void reset() const {}
  /// Live objects of all kinds.
  long alive() const {
    long all = 0;
    for (const char* kind : {"contexts", "command lists", "event pools", "events", "modules", "kernels", "build logs", "images", "samplers",
                             "device memory", "pinned memory"})
      all += count(kind);
    return all;
  }
};

/// Settings for the stand-ins, without a disk cache.
inline Config ze_config() {
  Config config;
  config.cache = false;
  config.log_level = "error";
  for (const char* name : {"TACK_LIBZE", "TACK_LIBOCLOC"})
    if (const char* value = std::getenv(name)) config.set(name, value);
  return config;
}

/// As cuda_source, of an entry in OpenCL C: `body` is that of `__kernel void NAME(__global float* a, ... , float s, long n)`.
inline KernelSource ze_source(const std::string& name, const std::string& body, std::size_t arrays) {
  std::string text = "#pragma OPENCL FP_CONTRACT OFF\n__kernel void " + name + "(";
  for (std::size_t i = 0; i < arrays; ++i) text += std::string("__global float* ") + static_cast<char>('a' + static_cast<int>(i)) + ", ";
  KernelSource source = cuda_source(name, text + "float s, long n) {\n" + body + "\n}\n", arrays);
  source.target = "level_zero";
  source.arch = "skl";
  return source;
}

/// a[i] = b[i] + s * c[i]
inline KernelSource ze_triad(const std::string& name = "triad") {
  return ze_source(
      name, "  const long i = (long)get_group_id(0) * get_local_size(0) + get_local_id(0);\n  if (i < n) a[i] = b[i] + s * c[i];", 3);
}

/// Samples a texture at (1.25, 0.5, 0.5) of whatever its coordinates count.
inline KernelSource ze_look(const Texture& texture) {
  KernelSource source = with_texture(texture, ze_source("look", "", 1));
  source.text =
      "__kernel void look(__global float* a, read_only image3d_t tex, sampler_t way, float s, long n) {\n"
      "  a[0] = read_imagef(tex, way, (float4)(1.25f, 0.5f, 0.5f, 0.0f)).x;\n"
      "}\n";
  return source;
}

}  // namespace tack::test

// texture_support.h -- what tests of texture units behind a driver share: a kernel that samples, and what must come of it.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "fault_support.h"

namespace tack::test {

/// Samples a texture at (1.25, 0.5, 0.5) of whatever its coordinates count.
inline KernelSource look_source(const Kind& kind, const Texture& texture) {
  return with_texture(texture, source_of(kind, "look",
                                         "extern \"C\" __global__ void look(float* a, " + std::string(kind.type) +
                                             "TextureObject_t tex, float s, long long n) {\n"
                                             "  a[0] = tex3D<float>(tex, 1.25f, 0.5f, 0.5f);\n"
                                             "}\n",
                                         1));
}

/// Makes a texture, samples it, updates it; `look` as in check_textures. Answers what went wrong with the values, if anything.
template <class Look>
std::string texture_program(const std::shared_ptr<Device>& device, Look look) {
  const std::int64_t volume[] = {2, 3, 4}, one[] = {4};
  const Array texels = Array::empty(device, f32, volume), out = vector_of(device, 1, 0.0f);
  float value = 32.0f;
  texels.fill(&value);
  Texture texture(device, texels, Interp::linear, Wrap::repeat);
  const auto kernel = device->build(look(texture), {});
  kernel->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
  texture.update(texels);
  out.read(&value, one);
  return value == 32.0f ? "" : "wrong texel";
}

/// Textures of every kind sample as they are made, those that are too wide are left to software, and all is given back. `look(texture)`: as
/// look_source. `held()`: how many of the driver's objects are textures', of which each has two.
template <class Driver, class Look, class Held>
void check_textures(const Config& config, const std::string& type, const Driver& driver, Look look, Held held) {
  const long before = driver.alive();
  {
    const auto runtime = Runtime::create(config);
    const auto device = runtime->device(type);
    const std::int64_t shape[] = {1, 1, 4}, strides[] = {16, 16, 4}, one[] = {4};
    const std::vector<float> given{1, 2, 3, 4};
    const Array texels = Array::empty(device, f32, shape), out = vector_of(device, 1, 0.0f);
    texels.write(given.data(), strides);
    // What the object has to do at 1.25: of texels that are counted, and of a volume that is counted.
    for (const auto& [interp, wrap, expected] : {std::tuple{Interp::nearest, Wrap::clamp, 2.0f},
                                                 {Interp::nearest, Wrap::repeat, 2.0f},
                                                 {Interp::linear, Wrap::clamp, 1.75f},
                                                 {Interp::linear, Wrap::mirror, 1.75f},
                                                 {Interp::linear, Wrap::repeat, 1.5f}}) {
      const Texture texture(device, texels, interp, wrap);
      CHECK(texture.hardware());
      const auto kernel = device->build(look(texture), {});
      kernel->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
      float found = 0.0f;
      out.read(&found, one);
      CHECK(found == expected);
    }
    {
      const Texture texture(device, texels, Interp::linear, Wrap::clamp);
      CHECK(held() == 2);
      const auto kernel = device->build(look(texture), {});
      kernel->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
    }  // while the launch may still be queued
    CHECK(held() == 0);
    const std::int64_t wide[] = {1, 1, device->capabilities().max_image[2] + std::int64_t{1}};
    const Array row = Array::empty(device, f32, wide);
    CHECK_FALSE(Texture(device, row, Interp::linear, Wrap::clamp).hardware());
    device->synchronize();
  }
  CHECK(driver.alive() == before);
  CHECK(driver.reports() == "");
}

template <class Driver>
void check_textures(const Kind& kind, const Driver& driver) {
  check_textures(
      config_of(kind), kind.type, driver, [&](const Texture& texture) { return look_source(kind, texture); },
      [&] { return driver.count("arrays") + driver.count("textures"); });
}

/// As fail_each_call, of a program with a texture. `check(error)` sees what was thrown.
template <class Driver, class Check>
long fail_each_texture_call(const Kind& kind, const Driver& driver, int code, bool lost, Check check) {
  const auto look = [&](const Texture& texture) { return look_source(kind, texture); };
  const auto program = [&](const std::shared_ptr<Runtime>& runtime) { return texture_program(runtime->device(kind.type), look); };
  return fail_each_call(config_of(kind), program, driver, driver, code, lost, [&](const std::optional<Error>& error, const std::string&) {
    if (!error) return;
    CAPTURE(std::string(error->what()));
    check(*error);
  });
}

}  // namespace tack::test

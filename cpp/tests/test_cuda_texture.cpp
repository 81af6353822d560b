// test_cuda_texture.cpp -- textures on the CUDA stand-ins: what is sampled, that all is given back, and every driver call failing in turn.
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cuda_support.h"

using namespace tack;
using namespace tack::test;

namespace {

/// Samples a texture at (1.25, 0.5, 0.5) of whatever its coordinates count.
KernelSource look_source(const Texture& texture) {
  return with_texture(texture, cuda_source("look",
                                           "extern \"C\" __global__ void look(float* a, cudaTextureObject_t tex, float s, long long n) {\n"
                                           "  a[0] = tex3D<float>(tex, 1.25f, 0.5f, 0.5f);\n"
                                           "}\n",
                                           1));
}

/// Makes a texture, samples it, updates it. Answers what went wrong with the values, if anything.
std::string program(const std::shared_ptr<Runtime>& runtime) {
  const auto device = runtime->device("cuda");
  const std::int64_t volume[] = {2, 3, 4}, one[] = {4};
  const Array texels = Array::empty(device, f32, volume), out = vector_of(device, 1, 0.0f);
  float value = 32.0f;
  texels.fill(&value);
  Texture texture(device, texels, Interp::linear, Wrap::repeat);
  const auto kernel = device->build(look_source(texture), {});
  kernel->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
  texture.update(texels);
  out.read(&value, one);
  return value == 32.0f ? "" : "wrong texel";
}

long alive(const StandInDriver& driver) { return driver.alive() + driver.count("arrays") + driver.count("textures"); }

}  // namespace

TEST_CASE("textures are sampled as they are made, and given back") {
  const StandInDriver driver;
  const long before = alive(driver);
  {
    const auto runtime = Runtime::create(cuda_config());
    const auto device = runtime->device("cuda");
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
      const auto kernel = device->build(look_source(texture), {});
      kernel->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
      float found = 0.0f;
      out.read(&found, one);
      CHECK(found == expected);
    }
    {
      const Texture texture(device, texels, Interp::linear, Wrap::clamp);
      CHECK(driver.count("textures") == 1);
      const auto kernel = device->build(look_source(texture), {});
      kernel->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
    }  // while the launch may still be queued
    CHECK(driver.count("textures") + driver.count("arrays") == 0);
    const std::int64_t wide[] = {1, 1, device->capabilities().max_image[2] + std::int64_t{1}};
    const Array row = Array::empty(device, f32, wide);
    CHECK_FALSE(Texture(device, row, Interp::linear, Wrap::clamp).hardware());
    device->synchronize();
  }
  CHECK(alive(driver) == before);
  CHECK(driver.reports() == "");
}

TEST_CASE("the n-th driver call of a program with a texture fails") {
  const StandInDriver driver;
  driver.set_current(nullptr);
  const long before = alive(driver);
  for (const int code : {1, 2, 719}) {  // invalid value, out of memory, a kernel that failed
    long n = 1, thrown = 0;
    for (bool reached = true; reached; ++n) {
      CAPTURE(code);
      CAPTURE(n);
      REQUIRE(n < 1000);
      Kept log;
      std::optional<Error> error;
      const long injected = driver.count("injected");
      {
        const auto runtime = Runtime::create(cuda_config());
        log.watch(*runtime);
        driver.fail_at(n, code);
        try {
          const std::string wrong = program(runtime);
          CHECK(wrong == "");
        } catch (const Error& e) {
          error = e;
          driver.fail_at(0, 0);
          if (code != 719) CHECK(program(runtime) == "");  // nothing stands in the way of the next calls
        }
      }
      reached = driver.count("injected") != injected;
      driver.fail_at(0, 0);
      if (error) {
        ++thrown;
        CAPTURE(std::string(error->what()));
        const ErrorCode expected = code == 2 ? ErrorCode::out_of_memory : ErrorCode::driver;
        CHECK((error->code() == expected || error->code() == ErrorCode::unavailable));
      }
      // Only what could not be given back, because giving it back failed, is left; the log says so.
      if (log.text() == "") CHECK(alive(driver) == before);
      CHECK(driver.reports() == "");
      driver.set_current(nullptr);
    }
    CHECK(n > 50);
    CHECK(thrown > 30);
  }
}

// test_ze_texture.cpp -- textures on the Level Zero stand-in: what its images and samplers answer, and that all is given back.
#include <tuple>
#include <vector>

#include "ze_support.h"

using namespace tack;
using namespace tack::test;

TEST_CASE("textures are sampled as they are made, and given back") {
  const StandInZe driver;
  const long before = driver.alive();
  {
    const auto runtime = Runtime::create(ze_config());
    const auto device = runtime->device("level_zero");
    const std::int64_t shape[] = {1, 1, 4}, strides[] = {16, 16, 4}, one[] = {4};
    const std::vector<float> given{1, 2, 3, 4};
    const Array texels = Array::empty(device, f32, shape), out = vector_of(device, 1, 0.0f);
    texels.write(given.data(), strides);
    // What the sampler has to do at 1.25: of texels that are counted, and of a volume that is counted.
    for (const auto& [interp, wrap, expected] : {std::tuple{Interp::nearest, Wrap::clamp, 2.0f},
                                                 {Interp::nearest, Wrap::repeat, 2.0f},
                                                 {Interp::linear, Wrap::clamp, 1.75f},
                                                 {Interp::linear, Wrap::mirror, 1.75f},
                                                 {Interp::linear, Wrap::repeat, 1.5f}}) {
      const Texture texture(device, texels, interp, wrap);
      CHECK(texture.hardware());
      const auto kernel = device->build(ze_look(texture), {});
      kernel->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
      float found = 0.0f;
      out.read(&found, one);
      CHECK(found == expected);
    }
    {
      const Texture texture(device, texels, Interp::linear, Wrap::clamp);
      CHECK(driver.count("images") == 1);
      CHECK(driver.count("samplers") == 1);
      const auto kernel = device->build(ze_look(texture), {});
      kernel->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
    }  // while the launch may still be queued
    CHECK(driver.count("images") + driver.count("samplers") == 0);
    const std::int64_t wide[] = {1, 1, device->capabilities().max_image[2] + std::int64_t{1}};
    const Array row = Array::empty(device, f32, wide);
    CHECK_FALSE(Texture(device, row, Interp::linear, Wrap::clamp).hardware());
    device->synchronize();
  }
  CHECK(driver.alive() == before);
  CHECK(driver.reports() == "");
}

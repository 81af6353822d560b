// test_ze_texture.cpp -- textures on the Level Zero stand-in: what its images and samplers answer, and that all is given back.
#include "texture_support.h"
#include "ze_support.h"

using namespace tack;
using namespace tack::test;

TEST_CASE("textures are sampled as they are made, and given back") {
  const StandInZe driver;
  check_textures(ze_config(), "level_zero", driver, ze_look, [&] { return driver.count("images") + driver.count("samplers"); });
}

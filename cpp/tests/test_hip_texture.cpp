// test_hip_texture.cpp -- textures on the HIP stand-ins: what is sampled, that all is given back, and every call of the runtime failing.
#include <optional>
#include <string>

#include "hip_support.h"
#include "texture_support.h"

using namespace tack;
using namespace tack::test;

TEST_CASE("textures are sampled as they are made, and given back") { check_textures(hip_kind, StandInRuntime()); }

TEST_CASE("the n-th call of the runtime by a program with a texture fails") {
  const StandInRuntime driver;
  long n = 1, thrown = 0;
  for (bool reached = true; reached; ++n) {
    CAPTURE(n);
    REQUIRE(n < 1000);
    Kept log;
    std::optional<Error> error;
    driver.reset();
    const long before = alive_with_textures(driver), injected = driver.count("injected");
    {
      const auto runtime = Runtime::create(config_of(hip_kind));
      log.watch(*runtime);
      driver.fail_at(n, 2);  // hipErrorOutOfMemory
      try {
        const std::string wrong = texture_program(hip_kind, runtime);
        CHECK(wrong == "");
      } catch (const Error& e) {
        error = e;
        driver.fail_at(0, 0);
        CHECK(texture_program(hip_kind, runtime) == "");  // nothing stands in the way of the next calls
      }
    }
    reached = driver.count("injected") != injected;
    driver.fail_at(0, 0);
    if (error) {
      ++thrown;
      CAPTURE(std::string(error->what()));
      CHECK((error->code() == ErrorCode::out_of_memory || error->code() == ErrorCode::unavailable));
    }
    if (log.text() == "") CHECK(alive_with_textures(driver) == before);
    CHECK(driver.reports() == "");
  }
  CHECK(n > 50);
  CHECK(thrown > 25);
}

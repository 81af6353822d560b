// test_cuda_texture.cpp -- textures on the CUDA stand-ins: what is sampled, that all is given back, and every driver call failing in turn.
#include <optional>
#include <string>

#include "cuda_support.h"
#include "texture_support.h"

using namespace tack;
using namespace tack::test;

TEST_CASE("textures are sampled as they are made, and given back") { check_textures(cuda_kind, StandInDriver()); }

TEST_CASE("the n-th driver call of a program with a texture fails") {
  const StandInDriver driver;
  driver.set_current(nullptr);
  const long before = alive_with_textures(driver);
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
          const std::string wrong = texture_program(cuda_kind, runtime);
          CHECK(wrong == "");
        } catch (const Error& e) {
          error = e;
          driver.fail_at(0, 0);
          if (code != 719) CHECK(texture_program(cuda_kind, runtime) == "");  // nothing stands in the way of the next calls
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
      if (log.text() == "") CHECK(alive_with_textures(driver) == before);
      CHECK(driver.reports() == "");
      driver.set_current(nullptr);
    }
    CHECK(n > 50);
    CHECK(thrown > 30);
  }
}

// test_ze_faults.cpp -- every driver and compiler call of a program fails in turn: the right error, nothing left over, usable afterwards.
#include <optional>

#include "fault_support.h"
#include "texture_support.h"
#include "ze_support.h"

using namespace tack;
using namespace tack::test;

namespace {

constexpr int invalid_argument = 0x78000004, out_of_memory = 0x70000003, device_lost = 0x70000001;  // ze_result_t

/// What a host does with a device. Answers what went wrong with the values, if anything.
std::string program(const std::shared_ptr<Runtime>& runtime) {
  const auto device = runtime->device("level_zero");
  const std::string wrong = texture_program(device, ze_look);
  return wrong.empty() ? triad_program(device, ze_triad()) : wrong;
}

/// Settings with a disk cache of its own, so that ocloc compiles the kernel once.
Config cached() {
  static const std::string folder = [] {
    std::string name = "/tmp/tack-ze-faults-XXXXXX";
    return std::string(mkdtemp(name.data()));
  }();
  Config config = ze_config();
  config.cache = true;
  config.cache_dir = folder;
  return config;
}

}  // namespace

TEST_CASE("the n-th driver call fails") {
  const StandInZe driver;
  long thrown = 0, logged = 0;
  const long calls = fail_each_call(cached(), program, driver, driver, invalid_argument, false,
                                    [&](const std::optional<Error>& error, const std::string& log) {
                                      if (error) {
                                        ++thrown;
                                        CAPTURE(std::string(error->what()));
                                        CHECK((error->code() == ErrorCode::unavailable || error->code() == ErrorCode::driver ||
                                               error->code() == ErrorCode::invalid_argument));
                                        CHECK(std::string(error->what()).find("ZE_RESULT_ERROR_INVALID_ARGUMENT") != std::string::npos);
                                      } else if (log != "") {
                                        ++logged;
                                        CHECK(log.find("ZE_RESULT_ERROR_INVALID_ARGUMENT") != std::string::npos);
                                      }
                                    });
  CHECK(calls > 60);
  CHECK(thrown > 40);
  CHECK(logged >= 5);
}

TEST_CASE("the n-th driver call says that there is no memory") {
  const StandInZe driver;
  fail_each_call(cached(), program, driver, driver, out_of_memory, false, [&](const std::optional<Error>& error, const std::string&) {
    if (!error) return;
    CHECK((error->code() == ErrorCode::out_of_memory || error->code() == ErrorCode::unavailable));
  });
}

TEST_CASE("the n-th driver call reports the loss of the device") {
  const StandInZe driver;
  long named = 0;
  fail_each_call(cached(), program, driver, driver, device_lost, true, [&](const std::optional<Error>& error, const std::string&) {
    if (!error || error->code() == ErrorCode::unavailable) return;
    CHECK(error->code() == ErrorCode::driver);
    if (std::string(error->what()).rfind("Kernel 'triad': ", 0) == 0) ++named;
  });
  CHECK(named >= 4);  // from the launch to the end of the first wait after it
}

TEST_CASE("the n-th call of ocloc fails") {
  const StandIn compiler("TACK_LIBOCLOC");
  long thrown = 0;
  const long calls =
      fail_each_call(ze_config(), program, StandInZe(), compiler, -6, false, [&](const std::optional<Error>& error, const std::string&) {
        if (!error) return;
        ++thrown;
        CHECK(error->code() == ErrorCode::compile);
        const std::string what = error->what();
        CHECK(what.rfind("Kernel '", 0) == 0);
        CHECK(what.find("' cannot be compiled for Level Zero (skl).") != std::string::npos);
        CHECK(error->fields().native_code == -6);
      });
  CHECK(calls >= 2);
  CHECK(thrown == 2);
  CHECK(compiler.count("ocloc outputs") == 0);
}

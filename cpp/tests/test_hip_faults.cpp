// test_hip_faults.cpp -- every call of the HIP runtime and of hipRTC fails in turn: the right error, nothing left over, usable afterwards.
#include "fault_support.h"
#include "hip_support.h"

using namespace tack;
using namespace tack::test;

namespace {
constexpr int invalid_value = 1, out_of_memory = 2, launch_failed = 719;  // hipError_t
}

TEST_CASE("the n-th call of the runtime fails") {
  const StandInRuntime driver;
  long thrown = 0, logged = 0, silent = 0;
  const long calls =
      fail_each_call(hip_kind, driver, driver, invalid_value, false, [&](const std::optional<Error>& error, const std::string& log) {
        if (error) {
          ++thrown;
          CAPTURE(std::string(error->what()));
          CHECK((error->code() == ErrorCode::unavailable || error->code() == ErrorCode::driver));
          CHECK(error->fields().backend == "hip");
          CHECK(std::string(error->what()).find("hipErrorInvalidValue (1)") != std::string::npos);
        } else if (log != "") {
          ++logged;
          CHECK(log.find("hipErrorInvalidValue (1)") != std::string::npos);
        } else {
          ++silent;
        }
      });
  CHECK(calls > 60);
  CHECK(thrown > 40);
  CHECK(logged >= 1);
  // Which device is this thread's (then it is the first one), which release it is of (for the cache's key, the architectures, the warning),
  // waits before memory is given back.
  CHECK(silent <= 9);
}

TEST_CASE("the n-th call of the runtime says that there is no memory") {
  const StandInRuntime driver;
  fail_each_call(hip_kind, driver, driver, out_of_memory, false, [&](const std::optional<Error>& error, const std::string&) {
    if (!error) return;
    CHECK((error->code() == ErrorCode::out_of_memory || error->code() == ErrorCode::unavailable));
  });
}

TEST_CASE("the n-th call of the runtime reports the failure of a kernel") {
  // A context that is lost stays so, as HIP's are never made anew: each device and each process can lose one.
  const StandInRuntime driver;
  const auto runtime = Runtime::create(config_of(hip_kind));
  const auto device = runtime->device("hip:1");
  const auto kernel = device->build(triad_source(hip_kind), {});
  const Array a = vector_of(device, 1000, 1.0f);
  kernel->launch(std::vector{Argument(a), Argument(a), Argument(a), Argument(1.0)});
  driver.fail_at(2, launch_failed);  // hipGetDevice, hipStreamSynchronize
  const Error error = error_of([&] { device->synchronize(); });
  CHECK(error.code() == ErrorCode::driver);
  CHECK(std::string(error.what()).rfind("Kernel 'triad': HIP reports a failure of queued work: ", 0) == 0);
  CHECK(std::string(error.what()).find("hipStreamSynchronize: hipErrorLaunchFailure (719)") != std::string::npos);
}

TEST_CASE("the n-th call of hipRTC fails") {
  const StandIn compiler("TACK_LIBHIPRTC");
  long thrown = 0;
  const long calls =
      fail_each_call(hip_kind, StandInRuntime(), compiler, 11, false, [&](const std::optional<Error>& error, const std::string&) {
        if (!error) return;
        ++thrown;
        CHECK(error->code() == ErrorCode::driver);
        CHECK(std::string(error->what()).rfind("Kernel 'triad' cannot be compiled for HIP (gfx1030).", 0) == 0);
        CHECK(error->fields().native_code == 11);
      });
  CHECK(calls >= 5);
  CHECK(thrown >= 4);
}

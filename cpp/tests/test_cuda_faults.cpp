// test_cuda_faults.cpp -- every driver and compiler call of a program fails in turn: the right error, nothing left over, usable afterwards.
#include "cuda_support.h"
#include "fault_support.h"

using namespace tack;
using namespace tack::test;

namespace {
constexpr int invalid_value = 1, out_of_memory = 2, launch_failed = 719;  // CUresult
}

TEST_CASE("the n-th driver call fails") {
  const StandInDriver driver;
  long thrown = 0, logged = 0, silent = 0;
  const long calls =
      fail_each_call(cuda_kind, driver, driver, invalid_value, false, [&](const std::optional<Error>& error, const std::string& log) {
        if (error) {
          ++thrown;
          CAPTURE(std::string(error->what()));
          const bool start = error->code() == ErrorCode::unavailable;
          CHECK((start || error->code() == ErrorCode::driver));
          CHECK(error->fields().backend == "cuda");
          CHECK(std::string(error->what()).find("CUDA_ERROR_INVALID_VALUE (1)") != std::string::npos);
        } else if (log != "") {
          ++logged;
          CHECK(log.find("CUDA_ERROR_INVALID_VALUE (1)") != std::string::npos);
        } else {
          ++silent;
        }
      });
  CHECK(calls > 60);
  CHECK(thrown > 40);
  CHECK(logged >= 1);
  // Which device is this thread's (3 calls; then it is the first one), waits before memory is given back (3), whether a context that was
  // released has ended (2).
  CHECK(silent <= 8);
}

TEST_CASE("the n-th driver call says that there is no memory") {
  const StandInDriver driver;
  fail_each_call(cuda_kind, driver, driver, out_of_memory, false, [&](const std::optional<Error>& error, const std::string&) {
    if (!error) return;
    CHECK((error->code() == ErrorCode::out_of_memory || error->code() == ErrorCode::unavailable));
  });
}

TEST_CASE("the n-th driver call reports the failure of a kernel") {
  const StandInDriver driver;
  long named = 0;
  fail_each_call(cuda_kind, driver, driver, launch_failed, true, [&](const std::optional<Error>& error, const std::string&) {
    if (!error || error->code() == ErrorCode::unavailable) return;
    CHECK(error->code() == ErrorCode::driver);
    if (std::string(error->what()).rfind("Kernel 'triad': ", 0) == 0) ++named;
  });
  CHECK(named >= 4);  // from the launch to the end of the first wait after it
}

TEST_CASE("the n-th call of NVRTC fails") {
  const StandIn compiler("TACK_LIBNVRTC");
  long thrown = 0;
  const long calls =
      fail_each_call(cuda_kind, StandInDriver(), compiler, 11, false, [&](const std::optional<Error>& error, const std::string&) {
        if (!error) return;
        ++thrown;
        CHECK(error->code() == ErrorCode::driver);
        CHECK(std::string(error->what()).rfind("Kernel 'triad' cannot be compiled for CUDA (sm_90).", 0) == 0);
        CHECK(error->fields().native_code == 11);
      });
  CHECK(calls >= 6);
  CHECK(thrown >= 4);
}

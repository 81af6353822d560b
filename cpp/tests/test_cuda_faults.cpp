// test_cuda_faults.cpp -- every driver and compiler call of a program fails in turn: the right error, nothing left over, usable afterwards.
#include <optional>

#include "cuda_support.h"

using namespace tack;
using namespace tack::test;

namespace {

constexpr int invalid_value = 1, out_of_memory = 2, launch_failed = 719;  // CUresult

/// What a host does with a device, in ten calls of the library. Answers what went wrong with the values, if anything.
std::string program(const std::shared_ptr<Runtime>& runtime) {
  const auto device = runtime->device("cuda");
  const auto kernel = device->build(triad_source(), {});
  const Array a = vector_of(device, 300'000, 0.0f), b = vector_of(device, 300'000, 2.0f);
  std::vector<float> values(300'000, 3.0f);
  const std::int64_t shape[] = {300'000}, strides[] = {4};
  const Array c = Array::empty(device, f32, shape);
  c.write(values.data(), strides);
  kernel->launch(std::vector{Argument(a), Argument(b), Argument(c), Argument(10.0)});
  b.copy_from(a);
  device->synchronize();
  b.read(values.data(), strides);
  if (values != std::vector<float>(300'000, 32.0f)) return "wrong values";
  device->trim();
  return "";
}

/// Runs the program with its n-th call failing, for n = 1, 2, ... until a run has no n-th call. `check(error, log)` sees what came of
/// each. `lost`: the code is one after which the driver takes no more calls for the device.
template <class Check>
long fail_each_call(const StandIn& failing, int code, bool lost, Check check) {
  const StandInDriver driver;
  driver.set_current(nullptr);
  const long before = driver.alive();
  long n = 1;
  for (;; ++n) {
    CAPTURE(n);
    REQUIRE(n < 1000);
    Kept log;
    std::optional<Error> error;
    const long injected = failing.count("injected");
    {
      const auto runtime = Runtime::create(cuda_config());
      log.watch(*runtime);
      failing.fail_at(n, code);
      try {
        const std::string wrong = program(runtime);
        CHECK(wrong == "");
      } catch (const Error& e) {
        error = e;
        failing.fail_at(0, 0);
        // The failed call has left nothing that would stand in the way of the next ones.
        if (!lost) CHECK(program(runtime) == "");
      }
      // Without an error the call that fails is one of those that end the runtime.
    }
    const bool reached = failing.count("injected") != injected;
    failing.fail_at(0, 0);
    if (!reached) break;
    check(error, log.text());
    // Only what could not be given back, because giving it back failed, is left; the log says so.
    if (log.text() == "") CHECK(driver.alive() == before);
    CHECK(driver.reports() == "");
    driver.set_current(nullptr);
    CHECK(program(Runtime::create(cuda_config())) == "");
  }
  return n;
}

}  // namespace

TEST_CASE("the n-th driver call fails") {
  const StandInDriver driver;
  long thrown = 0, logged = 0, silent = 0;
  const long calls = fail_each_call(driver, invalid_value, false, [&](const std::optional<Error>& error, const std::string& log) {
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
  fail_each_call(driver, out_of_memory, false, [&](const std::optional<Error>& error, const std::string&) {
    if (!error) return;
    CHECK((error->code() == ErrorCode::out_of_memory || error->code() == ErrorCode::unavailable));
  });
}

TEST_CASE("the n-th driver call reports the failure of a kernel") {
  const StandInDriver driver;
  long named = 0;
  fail_each_call(driver, launch_failed, true, [&](const std::optional<Error>& error, const std::string&) {
    if (!error || error->code() == ErrorCode::unavailable) return;
    CHECK(error->code() == ErrorCode::driver);
    if (std::string(error->what()).rfind("Kernel 'triad': ", 0) == 0) ++named;
  });
  CHECK(named >= 4);  // from the launch to the end of the first wait after it
}

TEST_CASE("the n-th call of NVRTC fails") {
  const StandIn compiler("TACK_LIBNVRTC");
  long thrown = 0;
  const long calls = fail_each_call(compiler, 11, false, [&](const std::optional<Error>& error, const std::string&) {
    if (!error) return;
    ++thrown;
    CHECK(error->code() == ErrorCode::driver);
    CHECK(std::string(error->what()).rfind("Kernel 'triad' cannot be compiled for CUDA (sm_90).", 0) == 0);
    CHECK(error->fields().native_code == 11);
  });
  CHECK(calls >= 6);
  CHECK(thrown >= 4);
}

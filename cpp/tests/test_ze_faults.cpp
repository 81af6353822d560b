// test_ze_faults.cpp -- every driver and compiler call of a program fails in turn: the right error, nothing left over, usable afterwards.
#include <optional>

#include "ze_support.h"

using namespace tack;
using namespace tack::test;

namespace {

constexpr int invalid_argument = 0x78000004, out_of_memory = 0x70000003, device_lost = 0x70000001;  // ze_result_t

/// What a host does with a device. Answers what went wrong with the values, if anything. `binary`: the kernel, compiled before.
std::string program(const std::shared_ptr<Runtime>& runtime) {
  const auto device = runtime->device("level_zero");
  const auto kernel = device->build(ze_triad(), {});
  const Array a = vector_of(device, 300'000, 0.0f), b = vector_of(device, 300'000, 2.0f);
  std::vector<float> values(300'000, 3.0f);
  const std::int64_t shape[] = {300'000}, strides[] = {4};
  const Array c = Array::empty(device, f32, shape);
  c.write(values.data(), strides);
  kernel->launch(std::vector{Argument(a), Argument(b), Argument(c), Argument(10.0)});
  b.copy_from(a);
  const std::int64_t volume[] = {2, 3, 4}, one[] = {4};
  const Array texels = Array::empty(device, f32, volume), out = vector_of(device, 1, 0.0f);
  float texel = 7.0f;
  texels.fill(&texel);
  Texture texture(device, texels, Interp::linear, Wrap::repeat);
  texture.update(texels);
  device->build(ze_look(texture), {})->launch(std::vector{Argument(out), Argument(texture), Argument(0.0)});
  out.read(&texel, one);
  if (texel != 7.0f) return "a wrong texel";
  b.read(values.data(), strides);
  if (values != std::vector<float>(300'000, 32.0f)) return "wrong values";
  device->trim();
  return "";
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

/// Runs the program with its n-th call failing, for n = 1, 2, ... until a run has no n-th call. `check(error, log)` sees what came of
/// each. `lost`: the code is one after which the driver takes no more calls for the context.
template <class Check>
long fail_each_call(const StandIn& failing, const Config& config, int code, bool lost, Check check) {
  const StandInZe driver;
  const long before = driver.alive();
  CHECK(program(Runtime::create(config)) == "");
  long n = 1;
  for (;; ++n) {
    CAPTURE(n);
    REQUIRE(n < 1000);
    Kept log;
    std::optional<Error> error;
    const long injected = failing.count("injected");
    {
      const auto runtime = Runtime::create(config);
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
    if (log.text() == "") CHECK(driver.alive() == before);
    CHECK(driver.reports() == "");
  }
  CHECK(program(Runtime::create(config)) == "");
  return n;
}

}  // namespace

TEST_CASE("the n-th driver call fails") {
  const StandInZe driver;
  long thrown = 0, logged = 0;
  const long calls =
      fail_each_call(driver, cached(), invalid_argument, false, [&](const std::optional<Error>& error, const std::string& log) {
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
  fail_each_call(driver, cached(), out_of_memory, false, [&](const std::optional<Error>& error, const std::string&) {
    if (!error) return;
    CHECK((error->code() == ErrorCode::out_of_memory || error->code() == ErrorCode::unavailable));
  });
}

TEST_CASE("the n-th driver call reports the loss of the device") {
  const StandInZe driver;
  long named = 0;
  fail_each_call(driver, cached(), device_lost, true, [&](const std::optional<Error>& error, const std::string&) {
    if (!error || error->code() == ErrorCode::unavailable) return;
    CHECK(error->code() == ErrorCode::driver);
    if (std::string(error->what()).rfind("Kernel 'triad': ", 0) == 0) ++named;
  });
  CHECK(named >= 4);  // from the launch to the end of the first wait after it
}

TEST_CASE("the n-th call of ocloc fails") {
  const StandIn compiler("TACK_LIBOCLOC");
  long thrown = 0;
  const long calls = fail_each_call(compiler, ze_config(), -6, false, [&](const std::optional<Error>& error, const std::string&) {
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

// fault_support.h -- a program whose driver and compiler calls fail in turn.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu_support.h"

namespace tack::test {

/// What a host does with a device, in nine calls of the library. `triad`: the kernel. Answers what went wrong with the values, if anything.
inline std::string triad_program(const std::shared_ptr<Device>& device, const KernelSource& triad) {
  const auto kernel = device->build(triad, {});
  const Array a = vector_of(device, 300'000, 0.0f), b = vector_of(device, 300'000, 2.0f);
  std::vector<float> values(300'000, 3.0f);
  const std::int64_t shape[] = {300'000}, strides[] = {4};
  const Array c = Array::empty(device, f32, shape);
  c.write(values.data(), strides);
  run_triad(kernel, a, b, c, 10.0);
  b.copy_from(a);
  device->synchronize();
  b.read(values.data(), strides);
  if (values != std::vector<float>(300'000, 32.0f)) return "wrong values";
  device->trim();
  return "";
}

/// Runs a program with its n-th call failing, for n = 1, 2, ... until a run has no n-th call. `program(runtime)` answers what went wrong
/// with its values, if anything; `check(error, log)` sees what came of each run. `lost`: the code is one after which the driver takes no
/// more calls for the device. `driver.reset()` leaves the thread as at its start, `driver.alive()` counts what is not given back.
template <class Program, class Driver, class Check>
long fail_each_call(const Config& config, Program program, const Driver& driver, const StandIn& failing, int code, bool lost, Check check) {
  long n = 1;
  for (;; ++n) {
    CAPTURE(code);
    CAPTURE(n);
    REQUIRE(n < 1000);
    Kept log;
    std::optional<Error> error;
    driver.reset();
    const long before = driver.alive(), injected = failing.count("injected");
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
    // Only what could not be given back, because giving it back failed, is left; the log says so.
    if (log.text() == "") CHECK(driver.alive() == before);
    CHECK(driver.reports() == "");
  }
  driver.reset();
  CHECK(program(Runtime::create(config)) == "");  // as does each run before its n-th call
  return n;
}

template <class Driver, class Check>
long fail_each_call(const Kind& kind, const Driver& driver, const StandIn& failing, int code, bool lost, Check check) {
  const auto program = [&](const std::shared_ptr<Runtime>& runtime) {
    return triad_program(runtime->device(kind.type), triad_source(kind));
  };
  return fail_each_call(config_of(kind), program, driver, failing, code, lost, check);
}

}  // namespace tack::test

// test_metal_faults.cpp -- every call of Metal's fails in turn: the right error, nothing left over, usable afterwards.
#include "fault_support.h"
#include "metal_support.h"

using namespace tack;
using namespace tack::test;

namespace {
// MTLCommandBufferError; to the other kinds of errors they are codes like any other.
constexpr int invalid_resource = 9, out_of_memory = 8;
}  // namespace

TEST_CASE("the n-th call fails") {
  const StandInMetal driver;
  long thrown = 0, queued = 0, silent = 0;
  const long calls =
      fail_each_call(metal_kind, driver, driver, invalid_resource, false, [&](const std::optional<Error>& error, const std::string& log) {
        CHECK(log == "");  // nothing that ends a runtime fails here
        if (!error) {
          ++silent;
          return;
        }
        ++thrown;
        CAPTURE(std::string(error->what()));
        CHECK((error->code() == ErrorCode::unavailable || error->code() == ErrorCode::driver || error->code() == ErrorCode::out_of_memory));
        CHECK(error->fields().backend == "metal");
        CHECK(std::string(error->what()).find(" made to fail") != std::string::npos);
        if (error->fields().queued) {
          ++queued;
          CHECK(std::string(error->what()).find("MTLCommandBufferErrorInvalidResource") != std::string::npos);
        }
      });
  CHECK(calls > 15);
  CHECK(thrown >= 6);
  CHECK(queued >= 1);
  // Allocations that are tried again when the cache was given back; an archive that is not made or not opened, without which the text is
  // compiled.
  CHECK(silent <= 9);
}

TEST_CASE("the n-th call says that there is no memory") {
  const StandInMetal driver;
  fail_each_call(metal_kind, driver, driver, out_of_memory, false, [&](const std::optional<Error>& error, const std::string&) {
    if (!error) return;
    CAPTURE(std::string(error->what()));
    CHECK((error->code() == ErrorCode::out_of_memory || error->code() == ErrorCode::unavailable || error->code() == ErrorCode::driver));
    if (error->fields().queued) CHECK(std::string(error->what()).find("Drop arrays that are no longer needed") != std::string::npos);
  });
}

TEST_CASE("the failure of a kernel comes out at the wait, once, and names it") {
  const StandInMetal driver;
  const auto runtime = Runtime::create(config_of(metal_kind));
  const auto device = runtime->device("metal");
  const auto kernel = device->build(triad_source(metal_kind), {});
  const Array a = vector_of(device, 1000, 1.0f);
  driver.fail_at(3, invalid_resource);  // the command buffer, the launch, its commit
  kernel->launch(std::vector{Argument(a), Argument(a), Argument(a), Argument(1.0)});
  const Error error = error_of([&] { device->synchronize(); });
  CHECK(error.code() == ErrorCode::driver);
  CHECK(std::string(error.what()).find("'triad'") != std::string::npos);
  CHECK(std::string(error.what()).find("MTLCommandBufferErrorInvalidResource (9)") != std::string::npos);
  device->synchronize();
  kernel->launch(std::vector{Argument(a), Argument(a), Argument(a), Argument(1.0)});
  CHECK(values_of(a) == std::vector<float>(1000, 2.0f));
}

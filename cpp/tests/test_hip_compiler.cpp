// test_hip_compiler.cpp -- hipRTC: which architectures it may see, which releases are warned of, where it is looked for. On the stand-in.
#include <algorithm>

#include "backends/hip/architectures.h"
#include "backends/hip/hip_api.h"
#include "hip_support.h"

using namespace tack;
using namespace tack::test;
using tack::hip::Release;

namespace {

std::string message_of(ErrorCode code, const std::shared_ptr<Runtime>& runtime, const KernelSource& source) {
  return test::message_of(code, [&] { runtime->compile(source); });
}

}  // namespace

TEST_CASE("releases: of the runtime's number, of a library's file") {
  CHECK(hip::release_of(50221153) == Release{5, 2});
  CHECK(hip::release_of(70051831) == Release{7, 0});
  CHECK(hip::release_of(70152802) == Release{7, 1});
  CHECK(hip::release_of_file("/opt/rocm-7.0.2/lib/libhiprtc.so.7.0.70002") == Release{7, 0});
  CHECK(hip::release_of_file("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5.2.21153") == Release{5, 2});
  for (const char* silent : {"/opt/rocm/lib/libhiprtc.so.7", "libhiprtc.so", "hiprtc0701.dll", ""})
    CHECK(hip::release_of_file(silent) == Release{});
  CHECK(hip::miscompiles({7, 0}));
  CHECK(hip::miscompiles({7, 1}));
  CHECK(!hip::miscompiles({7, 2}));
  CHECK(!hip::miscompiles({6, 4}));
}

TEST_CASE("architectures are found with and without features, and know who compiles for them") {
  REQUIRE(hip::find_architecture("gfx90a:sramecc+:xnack-") != nullptr);
  CHECK(hip::find_architecture("gfx90a")->first == Release{5, 2});
  CHECK(hip::find_architecture("gfx1100")->first > Release{5, 2});
  CHECK(hip::find_architecture("gfx9999") == nullptr);
  CHECK(hip::find_architecture("sm_90") == nullptr);
  CHECK(contains(hip::architecture_names(), "gfx942"));
}

TEST_CASE("the search: hipRTC's own library, newest first, then the runtime's in which old releases have it") {
  const auto runtime = Runtime::create(Config{});
  const std::vector<std::string> names = hip::Api::compiler_libraries(runtime->impl());
  const auto at = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  CHECK(at("libhiprtc.so.7") == 0);
  CHECK(at("libhiprtc.so.6") == 1);
  CHECK(at("/opt/rocm/lib/libhiprtc.so.7") < at("libamdhip64.so.5"));
  CHECK(at("libamdhip64.so.5") < static_cast<std::ptrdiff_t>(names.size()));
  CHECK(at("libamdhip64.so.7") == static_cast<std::ptrdiff_t>(names.size()));
}

TEST_CASE("what the compiler refuses names kernel, backend, line") {
  const auto runtime = Runtime::create(config_of(hip_kind));
  KernelSource source = triad_source(hip_kind);
  source.text = "#line 42 \"kern.py\"\nextern \"C\" __global__ void triad(float* a) { a[0] = nothing; }\n";
  const std::string message = message_of(ErrorCode::compile, runtime, source);
  CHECK(message.rfind("Kernel 'triad' cannot be compiled for HIP (gfx1030):\n", 0) == 0);
  CHECK(contains(message, "kern.py:42"));
  CHECK(contains(message, "use of undeclared identifier 'nothing'"));
  CHECK(contains(message, "HIPRTC_ERROR_COMPILATION (6)"));
  CHECK(!runtime->compile(triad_source(hip_kind)).empty());
}

TEST_CASE("hipRTC never sees an architecture that it may not know: it would end the process") {
  const auto runtime = Runtime::create(config_of(hip_kind));
  KernelSource source = triad_source(hip_kind);
  for (const char* unknown : {"gfx9999", "gfx90", "banana", ""}) {
    source.arch = unknown;
    const std::string message = message_of(ErrorCode::invalid_argument, runtime, source);
    CHECK(contains(message, std::string("'") + unknown + "' is no architecture that tack knows of HIP's; they are gfx803 gfx900 "));
  }
  source.arch = "gfx90a:xnack-";
  CHECK(!runtime->compile(source).empty());
}

TEST_CASE("describe: capabilities without a device, and none for other architectures") {
  Config nothing;
  nothing.cache = false;
  nothing.lib_hip = "/nowhere/libamdhip64.so.7";
  const auto runtime = Runtime::create(nothing);
  const Capabilities can = runtime->describe("hip", "gfx1100");
  CHECK(can.arch == "gfx1100");
  CHECK(can.max_iterations == (1ull << 32) - 256);
  CHECK(can.atomic_dtypes == Runtime::create(config_of(hip_kind))->device("hip")->capabilities().atomic_dtypes);
  for (const char* arch : {"sm_90", "gfx", "gfx9999", ""}) {
    CHECK_THROWS_AS(runtime->describe("hip", arch), Error);
  }
}

TEST_CASE("without libraries: what is missing, and how to get it") {
  Config config = config_of(hip_kind);
  config.lib_hiprtc = "/nowhere/libhiprtc.so.7";
  const auto runtime = Runtime::create(config);
  const std::string message = message_of(ErrorCode::unavailable, runtime, triad_source(hip_kind));
  CHECK(message.rfind("Cannot start the 'hip' device: missing dependency.\n  hipRTC, HIP's compiler, is not found.\n  "
                      "/nowhere/libhiprtc.so.7: ",
                      0) == 0);
  CHECK(contains(message, "\n  Requires an AMD GPU with ROCm; in a clone:\n    pip install '.[hip]'   (or: uv sync --extra hip)"));
  // Arrays need none.
  CHECK(values_of(vector_of(runtime->device("hip"), 3, 2.0f))[2] == 2.0f);
  config.lib_hiprtc = "libc.so.6";
  CHECK(contains(message_of(ErrorCode::unavailable, Runtime::create(config), triad_source(hip_kind)),
                 "hipRTC in libc.so.6 is too old: it lacks hiprtcCreateProgram, hiprtcDestroyProgram, hiprtcCompileProgram and "));
  config.lib_hip = "libc.so.6";
  const auto old = Runtime::create(config);
  CHECK(old->device_count("hip") == 0);
  CHECK_THROWS_AS(old->device("hip"), Error);
}

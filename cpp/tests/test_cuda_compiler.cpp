// test_cuda_compiler.cpp -- NVRTC: what it is asked for, where it is looked for, what of its log is shown. On the stand-in compiler.
#include <algorithm>
#include <array>

#include "backends/cuda/nvrtc.h"
#include "cuda_support.h"

using namespace tack;
using namespace tack::test;
using tack::cuda::Nvrtc;

namespace {

std::string message_of(ErrorCode code, const std::shared_ptr<Runtime>& runtime, const KernelSource& source) {
  return test::message_of(code, [&] { runtime->compile(source); });
}

}  // namespace

TEST_CASE("architectures: machine code where NVRTC knows it, PTX of the newest below where the GPU is newer") {
  const std::array<int, 5> known{75, 80, 90, 100, 120};
  CHECK(Nvrtc::target_of(75, known) == "sm_75");
  CHECK(Nvrtc::target_of(120, known) == "sm_120");
  CHECK(Nvrtc::target_of(130, known) == "compute_120");
  CHECK(Nvrtc::target_of(103, known) == "compute_100");
  CHECK(Nvrtc::target_of(89, known) == "compute_80");
  CHECK(Nvrtc::target_of(70, known) == "");
  CHECK(Nvrtc::target_of(70, {}) == "sm_70");  // an NVRTC that cannot say what it knows
  CHECK(cuda::capability_of("sm_90") == 90);
  for (const char* wrong : {"sm_", "sm_9", "sm_90a", "sm_-90", "SM_90", "compute_90", ""}) CHECK(cuda::capability_of(wrong) == -1);
}

TEST_CASE("the search: the loader's places, then pip's packages, 13 before 12, then CUDA installations") {
  const std::array<std::string, 2> packages{"/site", "/other"};
  const std::vector<std::string> names = cuda::nvrtc_libraries(packages, "/toolkit");
  const auto at = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  CHECK(at("libnvrtc.so.13") == 0);
  CHECK(at("libnvrtc.so.12") == 1);
  CHECK(at("/site/nvidia/cu13/lib/libnvrtc.so.13") == 2);
  CHECK(at("/other/nvidia/cu13/lib/libnvrtc.so.13") == 3);
  CHECK(at("/site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12") == 4);
  CHECK(at("/toolkit/lib64/libnvrtc.so.13") == 6);
  CHECK(at("/usr/local/cuda/lib64/libnvrtc.so.13") > at("/toolkit/lib64/libnvrtc.so.12"));
  CHECK(at("/usr/local/cuda/lib64/libnvrtc.so.13") < static_cast<std::ptrdiff_t>(names.size()));
}

TEST_CASE("of a log, the errors: neither warnings nor counts, and not more than can be read") {
  const std::string log =
      "k.py(3): warning #177-D: variable \"y\" was declared but never referenced\n"
      "      int y;\n"
      "          ^\n"
      "\n"
      "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n"
      "\n"
      "k.py(4): error: identifier \"foo\" is undefined\n"
      "      a[i] = foo;\n"
      "             ^\n"
      "\n"
      "1 error detected in the compilation of \"k.cu\".\n";
  CHECK(gpu::relevant_lines(log) == "\n  k.py(4): error: identifier \"foo\" is undefined\n        a[i] = foo;\n               ^");
  std::string many;
  for (int i = 0; i < 30; ++i) many += "k.py(" + std::to_string(i) + "): error: no\n  x\n  ^\n\n";
  const std::string shown = gpu::relevant_lines(many);
  CHECK(contains(shown, "k.py(3): error"));
  CHECK(!contains(shown, "k.py(4): error"));
  CHECK(contains(shown, "... and 26 more errors"));
  CHECK(gpu::relevant_lines("nvrtc: something else\n") == "\n  nvrtc: something else");
  CHECK(gpu::relevant_lines("") == "");
}

TEST_CASE("what the compiler refuses names kernel, backend, line") {
  const auto runtime = Runtime::create(cuda_config());
  KernelSource source = triad_source();
  source.text = "#line 42 \"kern.py\"\nextern \"C\" __global__ void triad(float* a) { a[0] = nothing; }\n";
  const std::string message = message_of(ErrorCode::compile, runtime, source);
  CHECK(message.rfind("Kernel 'triad' cannot be compiled for CUDA (sm_90):\n", 0) == 0);
  CHECK(contains(message, "kern.py(42)"));
  CHECK(contains(message, "nothing"));
  CHECK(contains(message, "NVRTC_ERROR_COMPILATION (6)"));
  // The failure leaves the compiler usable.
  CHECK(!runtime->compile(triad_source()).empty());
  source.arch = "sm_banana";
  CHECK(contains(message_of(ErrorCode::invalid_argument, runtime, source), "'sm_banana' is no architecture of CUDA's"));
}

TEST_CASE("compiling asks for no device, and a GPU newer than NVRTC gets PTX that loads") {
  Config config = cuda_config();
  config.lib_cuda = "/nowhere/libcuda.so.1";
  const auto runtime = Runtime::create(config);
  CHECK(!runtime->compile(triad_source()).empty());
  KernelSource future = triad_source();
  future.arch = "sm_990";
  const std::vector<std::byte> ptx = runtime->compile(future);
  REQUIRE(!ptx.empty());
  CHECK(ptx.back() == std::byte{0});  // a text, as the driver takes it
}

TEST_CASE("without NVRTC: what is missing, and how to get it") {
  Config config = cuda_config();
  config.lib_nvrtc = "/nowhere/libnvrtc.so.13";
  const auto runtime = Runtime::create(config);
  const std::string message = message_of(ErrorCode::unavailable, runtime, triad_source());
  CHECK(message.rfind(
            "Cannot start the 'cuda' device: missing dependency.\n  NVRTC, CUDA's compiler, is not found.\n  /nowhere/libnvrtc.so.13: ",
            0) == 0);
  CHECK(contains(message, "\n    pip install '.[cuda]'   (or: uv sync --extra cuda)"));
  // Arrays need none.
  CHECK(values_of(vector_of(runtime->device("cuda"), 3, 2.0f))[2] == 2.0f);
  config.lib_nvrtc = "libc.so.6";
  CHECK(contains(message_of(ErrorCode::unavailable, Runtime::create(config), triad_source()),
                 "NVRTC in libc.so.6 is too old: it lacks nvrtcVersion, nvrtcCreateProgram, nvrtcDestroyProgram and "));
}

TEST_CASE("what a driver that is too old, or no driver, says") {
  Config config = cuda_config();
  config.lib_cuda = "libc.so.6";
  const auto runtime = Runtime::create(config);
  CHECK(runtime->device_count("cuda") == 0);
  try {
    runtime->device("cuda");
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::unavailable);
    CHECK(std::string(error.what())
              .rfind("Cannot start the 'cuda' device: missing dependency.\n  The CUDA driver in libc.so.6 is too old: it "
                     "lacks cuInit, cuDriverGetVersion, cuGetErrorName and ",
                     0) == 0);
  }
}

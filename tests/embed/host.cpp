// host.cpp -- a C++ program that embeds libtack: arrays, copies, kernels of its own, and its own threads under tack's launches.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tack/array.hpp>
#include <tack/error.hpp>
#include <tack/kernel.hpp>
#include <tack/runtime.hpp>

namespace {

int failures = 0;

void check(bool condition, const char* what) {
  std::printf("%s  %s\n", condition ? "ok    " : "FAILED", what);
  if (!condition) ++failures;
}

/// The host's own scheduler: a thread for each part. A real host hands the parts to its task system.
class HostThreads {
 public:
  void operator()(std::int64_t n, std::int64_t /*grain*/, int threads, tack::ParallelBody body, void* context) {
    ++calls;
    const std::int64_t part = (n + threads - 1) / threads;
    std::vector<std::thread> workers;
    for (std::int64_t begin = part; begin < n; begin += part)
      workers.emplace_back([=] { body(context, begin, std::min(n, begin + part)); });
    body(context, 0, std::min(n, part));
    for (std::thread& worker : workers) worker.join();
  }
  std::atomic<int> calls{0};
};

tack::ArgumentSpec array_argument(const char* name, tack::DType dtype, bool written) {
  tack::ArgumentSpec spec;
  spec.name = name;
  spec.dtype = dtype;
  spec.rank = 1;
  spec.written = written;
  return spec;
}

/// What libtack must know of kernels.c's `symbol`: its parameters and how many iterations a launch has.
tack::KernelSource source_of(const std::string& symbol, const tack::Device& device) {
  tack::KernelSource source;
  source.name = symbol;
  source.target = device.type();
  source.arch = device.capabilities().arch;
  source.text = "kernels.c, compiled ahead";
  tack::Step step;
  step.stop = {{{tack::ExtentOp::shape, 0, 0, 0}}};
  source.steps = {step};
  return source;
}

int run(const char* object_path) {
  tack::Config config;
  config.cache = false;
  const auto runtime = tack::Runtime::create(config);
  const auto cpu = runtime->device("cpu");
  const std::vector<std::int64_t> shape{1000};
  const std::vector<std::int64_t> strides{8};

  // Arrays: upload, copy, strided view, fill.
  std::vector<double> numbers(1000), back(1000);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  const tack::Array x = tack::Array::empty(cpu, tack::f64, shape);
  const tack::Array out = tack::Array::empty(cpu, tack::f64, shape);
  x.write(numbers.data(), strides);
  out.copy_from(x);
  out.read(back.data(), strides);
  check(back == numbers, "upload, copy, download");
  const std::vector<std::int64_t> half{500}, every_second{16};
  const double zero = 0;
  tack::Array::view(out.buffer(), tack::f64, half, every_second, 0, false).fill(&zero);
  out.read(back.data(), strides);
  check(back[998] == 0 && back[999] == 999, "filling a strided view");

  // Kernels: the host's compiler made the object; tack maps it, checks arguments and launches.
  std::ifstream file(object_path, std::ios::binary);
  const std::string object((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  check(!object.empty(), "reading the object file");
  runtime->set_cpu_compiler([&object](const tack::CompileRequest&) {
    const auto* bytes = reinterpret_cast<const std::byte*>(object.data());
    return std::vector<std::byte>(bytes, bytes + object.size());
  });
  tack::KernelSource scale_source = source_of("scale", *cpu);
  tack::ArgumentSpec factor;
  factor.name = "factor";
  factor.kind = tack::ArgumentSpec::Kind::floating;
  scale_source.arguments = {array_argument("x", tack::f64, false), array_argument("out", tack::f64, true), factor};
  scale_source.entries = {{"scale",
                           {{tack::ParamKind::pointer, 0, 0, tack::i64},
                            {tack::ParamKind::pointer, 0, 1, tack::i64},
                            {tack::ParamKind::scalar, 0, 2, tack::f64}},
                           1,
                           0.5}};
  const auto scale = cpu->build(scale_source, {});
  const std::vector<tack::Argument> arguments{tack::Argument(x), tack::Argument(out), tack::Argument(2.5)};
  bool refused = false;
  try {
    scale->launch(std::vector{tack::Argument(x), tack::Argument(out), tack::Argument(2)});
  } catch (const tack::Error& error) {
    refused = error.code() == tack::ErrorCode::type_mismatch;
  }
  check(refused, "an int for a float is refused");
  scale->launch(arguments);
  out.read(back.data(), strides);
  bool right = true;
  for (std::size_t i = 0; i < back.size(); ++i) right = right && back[i] == numbers[i] * 2.5;
  check(right, "a kernel of the host's own");
  check(cpu->compiled() == 1, "counted as one compilation");

  // The host's threads instead of tack's: the results are the same, and the host saw the work.
  const auto four = runtime->device("cpu", {4});
  tack::KernelSource churn_source = source_of("churn", *four);
  churn_source.arguments = {array_argument("out", tack::u64, true)};
  churn_source.entries = {{"churn", {{tack::ParamKind::pointer, 0, 0, tack::i64}}, 1, 2000.0}};
  const auto churn = four->build(churn_source, {});
  const std::vector<std::int64_t> many{20000};
  const tack::Array with_pool = tack::Array::empty(four, tack::u64, many);
  const tack::Array with_host = tack::Array::empty(four, tack::u64, many);
  churn->launch(std::vector{tack::Argument(with_pool)});
  auto threads = std::make_shared<HostThreads>();
  runtime->set_parallel_for([threads](std::int64_t n, std::int64_t grain, int count, tack::ParallelBody body, void* context) {
    (*threads)(n, grain, count, body, context);
  });
  // tack measures whether threads pay, so that it may take some launches on a busy machine.
  for (int launch = 0; launch < 50 && threads->calls == 0; ++launch) churn->launch(std::vector{tack::Argument(with_host)});
  check(threads->calls > 0, "launches run on the host's threads");
  std::vector<std::uint64_t> a(20000), b(20000);
  with_pool.read(a.data(), strides);
  with_host.read(b.data(), strides);
  check(a == b, "with the same results");
  runtime->set_parallel_for({});

  // Errors are exceptions with a code and a whole message.
  try {
    runtime->device("gpu");
    check(false, "an unknown device is refused");
  } catch (const tack::Error& error) {
    check(error.code() == tack::ErrorCode::invalid_argument && std::string(error.what()).find("'gpu'") != std::string::npos,
          "an unknown device is refused");
  }
  check(cpu->memory().in_use > 0 && cpu->memory().peak >= cpu->memory().in_use, "memory statistics");
  return failures;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return count == 2 ? run(arguments[1]) : 2;
  } catch (const std::exception& error) {
    std::printf("FAILED  %s\n", error.what());
    return 1;
  }
}

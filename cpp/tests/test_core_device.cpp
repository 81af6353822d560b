// test_core_device.cpp -- devices by name, their lifetime, and how kernels are built once and found again on disk.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime_impl.h"
#include "error_support.h"
#include "fake_backend.h"
#include "tack/array.hpp"
#include "tack/runtime.hpp"

namespace fs = std::filesystem;
using tack::Config;
using tack::Device;
using tack::Error;
using tack::ErrorCode;
using tack::Kernel;
using tack::KernelKey;
using tack::KernelSource;
using tack::Runtime;
using tack::test::contains;
using tack::test::fake_runtime;
using tack::test::FakeState;
using tack::test::message_of;
using tack::test::quiet;

namespace {

/// A kernel over one array that launches one entry.
KernelSource source_of(const std::string& text) {
  KernelSource source;
  source.name = "k";
  source.target = "fake";
  source.arch = "fake_1";
  source.text = text;
  tack::ArgumentSpec x;
  x.name = "x";
  x.dtype = tack::f32;
  x.rank = 1;
  source.arguments = {x};
  source.entries = {{"k_0", {{tack::ParamKind::pointer, 0, 0, tack::i64}}, 1, -1.0}};
  tack::Step step;
  step.stop = {{{tack::ExtentOp::shape, 0, 0, 0}}};
  source.steps = {step};
  return source;
}

KernelKey key_of(const std::string& name) {
  const std::vector<std::string_view> parts{name};
  return {Runtime::digest(parts)};
}

/// A folder for a disk cache, removed with the object.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "tack-core-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  Config config() const {
    Config config = quiet();
    config.cache = true;
    config.cache_dir = path_.string();
    return config;
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(path_))
      if (entry.is_regular_file()) found.push_back(entry.path());
    return found;
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("names: the same device when asked twice, options make another one in the same memory") {
  const auto runtime = Runtime::create(quiet());
  CHECK(runtime->backend_names() == std::vector<std::string>{"cpu", "metal", "cuda", "hip", "level_zero"});
  const auto cpu = runtime->device("cpu");
  CHECK(cpu->name() == "cpu");
  CHECK(cpu->type() == "cpu");
  CHECK(runtime->device("cpu") == cpu);
  const auto one = runtime->device("cpu", {1});
  CHECK(one != cpu);
  CHECK(one->name() == "cpu(num_threads=1)");
  CHECK(one->options().num_threads == 1);
  CHECK(runtime->device("cpu", {1}) == one);
  CHECK(runtime->device("cpu", {2}) != one);
  CHECK(one->memory_id() == cpu->memory_id());
  CHECK(cpu->can_address(*one));
  CHECK(cpu->runtime() == runtime);
  CHECK(cpu->shared_from_this() == cpu);
  CHECK(cpu->weak_from_this().lock() == cpu);
  CHECK(runtime->device_count("cpu") == 1);
}

TEST_CASE("a device is the same one also when nobody held it in between") {
  FakeState state;
  const auto runtime = fake_runtime(state);
  const Device* first = runtime->device("fake").get();
  CHECK(runtime->device("fake:0").get() == first);
  CHECK(state.opens == 1);
}

TEST_CASE("numbered devices: a bare name is the one that the thread uses") {
  FakeState state;
  const auto runtime = fake_runtime(state);
  const auto zero = runtime->device("fake");
  CHECK(zero->name() == "fake:0");
  CHECK(zero->index() == 0);
  const auto one = runtime->device("fake:1");
  CHECK(one->name() == "fake:1");
  CHECK(one->index() == 1);
  CHECK(one != zero);
  CHECK(!one->can_address(*zero));
  state.current = 1;
  CHECK(runtime->device("fake") == one);
  CHECK(runtime->device_count("fake") == 2);
}

TEST_CASE("names and options that are refused, and what the messages say") {
  FakeState state;
  const auto runtime = fake_runtime(state);
  const auto refused = [&](const char* spec, std::optional<int> threads = std::nullopt) {
    return message_of(ErrorCode::invalid_argument, [&] { runtime->device(spec, {threads}); });
  };
  CHECK(refused("gpu") ==
        "Unknown device 'gpu'. The devices are 'cpu', 'metal', 'cuda', 'hip', 'level_zero', 'fake'; the numbered ones also take a number, "
        "as in 'cuda:1'.");
  CHECK(contains(refused(""), "Unknown device ''. The devices are 'cpu'"));
  CHECK(contains(refused("CPU"), "Unknown device 'CPU'."));
  CHECK(refused("cpu:0") == "'cpu:0' is no device: there is one 'cpu' device and it has no number. Use 'cpu'.");
  CHECK(refused("metal:0") == "'metal:0' is no device: there is one 'metal' device and it has no number. Use 'metal'.");
  CHECK(refused("fake:-1") == "'fake:-1' is no device: its number must be 0 or more, as in 'fake:0'.");
  CHECK(contains(refused("fake:"), "its number must be 0 or more"));
  CHECK(contains(refused("fake:1x"), "its number must be 0 or more"));
  CHECK(contains(refused("fake:99999999999"), "its number must be 0 or more"));
  CHECK(refused("fake:2") == "There is no 'fake:2': this machine has 2 fake devices, the last is 'fake:1'.");
  state.devices = 1;
  CHECK(refused("fake:1") == "There is no 'fake:1': this machine has 1 fake device, 'fake:0'.");
  CHECK(refused("fake", 1) == "The 'fake' device takes no num_threads; only 'cpu' does.");
  CHECK(refused("cpu", 0) == "num_threads is 0; it must be from 1 to 4096.");
  CHECK(refused("cpu", -3) == "num_threads is -3; it must be from 1 to 4096.");
  CHECK(refused("cpu", 100000) == "num_threads is 100000; it must be from 1 to 4096.");
  CHECK(contains(message_of(ErrorCode::invalid_argument, [&] { runtime->device_count("gpu"); }), "Unknown device 'gpu'."));
  CHECK(state.opens == 0);
  Config bad = quiet();
  bad.cpu_threads = -5;
  CHECK(message_of(ErrorCode::invalid_argument, [&] { Runtime::create(bad); }) ==
        "TACK_CPU_THREADS is '-5'; accepted is a whole number from 0 to 4096.");
}

TEST_CASE("a backend without its library says what the loader said, what it requires and how to install it") {
  struct Row {
    const char* type;
    const char* setting;
    const char* requires_text;
    const char* install;
  };
  for (const Row& row :
       {Row{"cuda", "TACK_LIBCUDA", "  Requires an NVIDIA GPU with its driver", "    pip install '.[cuda]'   (or: uv sync --extra cuda)"},
        Row{"hip", "TACK_LIBHIP", "  Requires an AMD GPU with ROCm", "    pip install '.[hip]'   (or: uv sync --extra hip)"},
        Row{"level_zero", "TACK_LIBZE", "  Requires an Intel GPU", "    apt-get install intel-opencl-icd libze1"}}) {
    CAPTURE(row.type);
    Config config = quiet();
    config.set(row.setting, "/nowhere/libmissing.so.9");
    const auto runtime = Runtime::create(config);
    CHECK(runtime->device_count(row.type) == 0);
    const std::string message = message_of(ErrorCode::unavailable, [&] { runtime->device(row.type); });
    CHECK(message.rfind(std::string("Cannot start the '") + row.type + "' device: missing dependency.\n  /nowhere/libmissing.so.9: ", 0) ==
          0);
    CHECK(contains(message, std::string("\n") + row.requires_text));
    CHECK(contains(message, std::string("\n") + row.install));
    CHECK(contains(message_of(ErrorCode::unavailable, [&] { runtime->device(std::string(row.type) + ":3"); }), "missing dependency"));
  }
  // A library that loads and is another. The C library is one that always does.
  Config config = quiet();
  config.lib_hip = "libc.so.6";
  const std::string message = message_of(ErrorCode::unavailable, [&] { Runtime::create(config)->device("hip"); });
  CHECK(message.rfind("Cannot start the 'hip' device: missing dependency.\n  The HIP driver in libc.so.6 is too old: it lacks hipInit, ",
                      0) == 0);
}

TEST_CASE("any handle keeps everything it needs: device, buffer, array, kernel") {
  FakeState state;
  {
    std::weak_ptr<Runtime> watched;
    {
      auto runtime = fake_runtime(state);
      watched = runtime;
      auto device = runtime->device("fake");
      runtime.reset();
      CHECK(device->name() == "fake:0");
      const std::vector<std::int64_t> shape{10};
      auto array = tack::Array::empty(device, tack::f32, shape);
      auto kernel = device->build(source_of("a"), {});
      device.reset();
      CHECK(array.device().name() == "fake:0");
      array = tack::Array();
      CHECK(!watched.expired());
      CHECK(kernel->device()->runtime() == watched.lock());
      CHECK(state.modules == 1);
    }
    CHECK(watched.expired());  // no cycle
  }
  CHECK(state.modules == 0);
  CHECK(state.allocated == 0);
}

TEST_CASE("threads that ask for one device at once get one") {
  FakeState state;
  const auto runtime = fake_runtime(state);
  std::vector<std::thread> threads;
  std::atomic<const Device*> seen{nullptr};
  std::atomic<int> others{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      const Device* mine = runtime->device("fake:1").get();
      const Device* expected = nullptr;
      if (!seen.compare_exchange_strong(expected, mine) && expected != mine) ++others;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(others == 0);
  CHECK(state.opens == 1);
}

TEST_CASE("a kernel is built once, also by many threads at once, and again once nobody has it") {
  FakeState state;
  state.compile_time = std::chrono::milliseconds(30);
  const auto runtime = fake_runtime(state);
  const auto device = runtime->device("fake");
  std::vector<std::shared_ptr<Kernel>> kernels(6);
  std::vector<std::thread> threads;
  for (std::shared_ptr<Kernel>& kernel : kernels) threads.emplace_back([&] { kernel = device->build(source_of("a"), key_of("a")); });
  for (std::thread& thread : threads) thread.join();
  CHECK(state.compiles == 1);
  CHECK(device->compiled() == 1);
  for (const std::shared_ptr<Kernel>& kernel : kernels) CHECK(kernel == kernels[0]);
  CHECK(device->load(key_of("a")) == kernels[0]);
  CHECK(!kernels[0]->from_cache());
  CHECK(kernels[0]->source().text == "a");

  const auto other = runtime->device("fake:1")->build(source_of("a"), key_of("a"));
  CHECK(other != kernels[0]);  // each device compiles its own
  CHECK(state.compiles == 2);
  CHECK(runtime->device("fake:1")->compiled() == 1);

  const auto unnamed = device->build(source_of("a"), {});
  CHECK(device->build(source_of("a"), {}) == unnamed);
  CHECK(device->build(source_of("b"), {}) != unnamed);
  KernelSource steps = source_of("a");  // the same text, launched twice: one binary, two kernels
  steps.steps.push_back(steps.steps[0]);
  CHECK(device->build(steps, {}) != unnamed);
  CHECK(device->build(steps, {})->source().steps.size() == 2);
  kernels.clear();
  CHECK(device->load(key_of("a")) == nullptr);  // there is no disk cache here
  CHECK(device->load({}) == nullptr);
}

TEST_CASE("a compile error reaches everybody who waits; other failures are tried anew by those who waited") {
  FakeState state;
  state.compile_time = std::chrono::milliseconds(20);
  const auto device = fake_runtime(state)->device("fake");
  const auto build_by_four = [&] {
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        try {
          device->build(source_of("a"), key_of("a"));
        } catch (const std::exception&) {
          ++failures;
        }
      });
    for (std::thread& thread : threads) thread.join();
    return failures.load();
  };
  state.on_compile = [](const KernelSource&) { throw Error(ErrorCode::compile, "Kernel 'k': refused"); };
  CHECK(build_by_four() == 4);

  std::atomic<int> interrupts{1};
  state.on_compile = [&](const KernelSource&) {
    if (interrupts.fetch_sub(1) > 0) throw std::runtime_error("interrupted");
  };
  CHECK(build_by_four() == 1);
  state.on_compile = {};
  CHECK(device->build(source_of("a"), key_of("a")) != nullptr);  // nothing is left behind
}

TEST_CASE("sources that do not fit the device or themselves are refused") {
  FakeState state;
  const auto device = fake_runtime(state)->device("fake");
  KernelSource other = source_of("a");
  other.target = "cuda";
  CHECK(message_of(ErrorCode::invalid_argument, [&] { device->build(other, {}); }) ==
        "Kernel 'k' was printed for 'cuda' and cannot be built on 'fake:0'.");
  KernelSource broken = source_of("a");
  broken.steps[0].entry = 7;
  CHECK(message_of(ErrorCode::invalid_argument, [&] { device->build(broken, {}); }) ==
        "The kernel 'k' is malformed: a step launches an entry that is not there.");
  CHECK(state.compiles == 0);
}

TEST_CASE("a later process finds the kernel by its key alone; a newer compiler or another architecture does not") {
  const Folder folder;
  FakeState state;
  fake_runtime(state, folder.config())->device("fake")->build(source_of("a"), key_of("front a"));
  CHECK(state.compiles == 1);
  {
    const auto device = fake_runtime(state, folder.config())->device("fake");
    const auto kernel = device->load(key_of("front a"));
    REQUIRE(kernel != nullptr);
    CHECK(kernel->from_cache());
    CHECK(kernel->source().text.empty());
    CHECK(kernel->source().name == "k");
    CHECK(kernel->source().entries[0].symbol == "k_0");
    CHECK(device->loaded() == 1);
    CHECK(device->compiled() == 0);
    CHECK(device->load(key_of("front b")) == nullptr);
    // Another front end key, the same text: the binary is found by its content.
    const auto second = device->build(source_of("a"), key_of("front c"));
    CHECK(second->from_cache());
    CHECK(second != kernel);
    CHECK(device->loaded() == 2);
    CHECK(state.compiles == 1);
    KernelSource options = source_of("a");
    options.options = "-fast";
    device->build(options, {});
    CHECK(state.compiles == 2);
  }
  CHECK(fake_runtime(state, folder.config())->device("fake")->load(key_of("front c")) != nullptr);
  state.compiler = "fake compiler 2";
  {
    const auto device = fake_runtime(state, folder.config())->device("fake");
    CHECK(device->load(key_of("front a")) == nullptr);
    device->build(source_of("a"), key_of("front a"));
    CHECK(state.compiles == 3);
  }
  state.arch = "fake_2";
  CHECK(fake_runtime(state, folder.config())->device("fake")->load(key_of("front a")) == nullptr);
}

TEST_CASE("damaged entries are misses that the next build repairs") {
  const Folder folder;
  FakeState state;
  fake_runtime(state, folder.config())->device("fake")->build(source_of("a"), key_of("a"));
  REQUIRE(!folder.files().empty());
  for (const fs::path& file : folder.files()) fs::resize_file(file, fs::file_size(file) / 2);
  {
    const auto device = fake_runtime(state, folder.config())->device("fake");
    CHECK(device->load(key_of("a")) == nullptr);
    CHECK(!device->build(source_of("a"), key_of("a"))->from_cache());
    CHECK(state.compiles == 2);
  }
  CHECK(fake_runtime(state, folder.config())->device("fake")->load(key_of("a")) != nullptr);

  // Entries that are whole, but whose content is not what it should be.
  {
    const auto runtime = fake_runtime(state, folder.config());
    const std::string junk = "junk";
    runtime->impl().cache.put("front:" + key_of("a").digest, std::as_bytes(std::span(junk)));
    CHECK(runtime->device("fake")->load(key_of("a")) == nullptr);
  }
  {
    const auto device = fake_runtime(state, folder.config())->device("fake");
    CHECK(device->build(source_of("a"), key_of("a"))->from_cache());  // the binary was whole all the time
  }
  // Binaries that the backend refuses are misses as well.
  {
    const auto device = fake_runtime(state, folder.config())->device("fake");
    state.refuse_loads = 2;
    CHECK(device->load(key_of("a")) == nullptr);
    CHECK(!device->build(source_of("a"), key_of("a"))->from_cache());
    CHECK(state.compiles == 3);
  }
  CHECK(fake_runtime(state, folder.config())->device("fake")->load(key_of("a")) != nullptr);
}

TEST_CASE("on a queued device the code outlives the kernel until the queue has been waited for") {
  FakeState state;
  const auto device = fake_runtime(state)->device("fake");
  device->build(source_of("a"), {}).reset();
  CHECK(state.modules == 1);
  state.on_synchronize = [] { throw Error(ErrorCode::driver, "lost"); };
  CHECK_THROWS_AS(device->synchronize(), Error);
  CHECK(state.modules == 1);
  state.on_synchronize = {};
  device->synchronize();
  CHECK(state.modules == 0);

  FakeState prompt;
  prompt.queued = false;
  const auto other = fake_runtime(prompt)->device("fake");
  other->build(source_of("a"), {}).reset();
  CHECK(prompt.modules == 0);
}

TEST_CASE("waiting for everything throws the first error and logs the others") {
  FakeState state;
  const auto runtime = fake_runtime(state);
  std::vector<std::string> logged;
  runtime->set_log_sink([&](tack::LogLevel, std::string_view message) { logged.emplace_back(message); });
  runtime->device("fake:0");
  runtime->device("fake:1");
  runtime->synchronize();
  CHECK(state.synchronizations == 2);
  state.on_synchronize = [] { throw Error(ErrorCode::driver, "lost"); };
  CHECK(message_of(ErrorCode::driver, [&] { runtime->synchronize(); }) == "lost");
  CHECK(state.synchronizations == 4);
  REQUIRE(logged.size() == 1);
  CHECK(logged[0] == "'fake:1' failed as well: lost");
  state.on_synchronize = {};
}

TEST_CASE("without a compiler the CPU says how to get one") {
  const auto runtime = Runtime::create(quiet());
  KernelSource source = source_of("; no code");
  source.target = "cpu";
  source.arch = runtime->device("cpu")->capabilities().arch;
  const std::string message = message_of(ErrorCode::unavailable, [&] { runtime->device("cpu")->build(source, {}); });
  CHECK(contains(message, "Kernel 'k' cannot be compiled for the CPU: no compiler is installed."));
  CHECK(contains(message, "pip install llvmlite"));
}

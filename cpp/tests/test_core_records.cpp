// test_core_records.cpp -- what kernels report: texts of records, prints and failures at the end of a call or at the wait, lost prints.
#include <doctest/doctest.h>

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/kernel_source_io.h"
#include "core/records.h"
#include "fake_backend.h"
#include "tack/array.hpp"

using tack::Error;
using tack::ErrorCode;
using tack::KernelSource;
using tack::ParamKind;
using tack::RecordSite;
using tack::test::fake_runtime;
using tack::test::FakeState;
using tack::test::quiet;
using Kind = RecordSite::Kind;

namespace {

RecordSite site(std::string text, std::vector<tack::DType> values = {}, Kind kind = Kind::print) {
  RecordSite made;
  made.kind = kind;
  made.line = kind == Kind::print ? 0 : 12;
  made.file = "user.py";
  made.text = std::move(text);
  made.values = std::move(values);
  return made;
}

std::uint64_t word(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t word(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t word(std::int64_t value) { return static_cast<std::uint64_t>(value); }

template <class T>
std::string written(const std::string& text, tack::DType type, T value) {
  const RecordSite one = site(text, {type});
  CHECK_MESSAGE(tack::fits_values(one), text);
  const std::vector<std::uint64_t> values{word(value)};
  return tack::said(one, values);
}

/// A kernel over one array whose one entry takes the record buffer; prints at site 0, fails at sites 1 and 2.
KernelSource source() {
  KernelSource made;
  made.name = "k";
  made.target = "fake";
  made.arch = "fake_1";
  made.text = "text";
  tack::ArgumentSpec x;
  x.name = "x";
  x.dtype = tack::f32;
  x.rank = 1;
  made.arguments = {x};
  made.entries = {{"k_0", {{ParamKind::records, 0, 0, tack::i64}}, 1, -1.0}};
  tack::Step step;
  step.stop = {{{tack::ExtentOp::shape, 0, 0, 0}}};
  made.steps = {step};
  made.sites = {site("i = {}\n", {tack::i64}), site("index {} is outside", {tack::i64}, Kind::index),
                site("{} is not {}", {tack::f32, tack::bool8}, Kind::assertion)};
  return made;
}

/// What a kernel does to its record buffer, on the host.
class Reporter {
 public:
  explicit Reporter(const tack::LaunchCommand& command) {
    words_ = reinterpret_cast<std::uint64_t*>(static_cast<std::uintptr_t>(command.words[0]) & ~tack::test::device_bit);
  }
  void print(std::int64_t value) {
    const std::uint64_t number = words_[tack::printed_word]++;
    if (number < words_[tack::fitting_word]) write(tack::header_words + (number + 1) * size, {0, word(value)});
  }
  void fail(std::vector<std::uint64_t> record) {
    if (words_[tack::failed_word]++ == 0) write(tack::header_words, record);
  }

 private:
  static constexpr std::size_t size = 3;  // the longest record has two values
  void write(std::size_t at, const std::vector<std::uint64_t>& record) {
    std::memcpy(words_ + at, record.data(), record.size() * sizeof(std::uint64_t));
  }
  std::uint64_t* words_;
};

struct Stage {
  explicit Stage(bool queued) {
    state.queued = queued;
    tack::Config config = quiet();
    runtime = fake_runtime(state, config);
    runtime->set_print_sink([this](std::string_view text) { printed += text; });
    runtime->set_log_sink([this](tack::LogLevel, std::string_view text) { logged.emplace_back(text); });
    device = runtime->device("fake");
    const std::int64_t shape[] = {4};
    x = tack::Array::empty(device, tack::f32, shape);
    kernel = device->build(source(), {});
  }
  void launch() const {
    const tack::Argument arguments[] = {tack::Argument(x)};
    kernel->launch(arguments);
  }

  FakeState state;
  std::string printed;
  std::vector<std::string> logged;
  std::shared_ptr<tack::Runtime> runtime;
  std::shared_ptr<tack::Device> device;
  tack::Array x;
  std::shared_ptr<tack::Kernel> kernel;
};

template <class Body>
std::string failure(ErrorCode code, Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "nothing was thrown";
}

constexpr const char* index_message = "Kernel 'k': index 7 is outside\n  File \"user.py\", line 12";

}  // namespace

TEST_CASE("values are written as Python writes them") {
  CHECK(written("{}", tack::f64, 0.1) == "0.1");
  CHECK(written("{}", tack::f32, 0.1F) == "0.1");
  CHECK(written("{}", tack::f32, 16777216.0F) == "16777216.0");
  CHECK(written("{}", tack::f64, -0.0) == "-0.0");
  CHECK(written("{}", tack::f64, 1e16) == "1e+16");
  CHECK(written("{}", tack::f64, 1.25e-7) == "1.25e-07");
  CHECK(written("{}", tack::f64, 0.000123) == "0.000123");
  CHECK(written("{}", tack::f64, std::numeric_limits<double>::infinity()) == "inf");
  CHECK(written("{:F}", tack::f64, -std::numeric_limits<double>::infinity()) == "-INF");
  CHECK(written("{}", tack::f64, -std::numeric_limits<double>::quiet_NaN()) == "nan");
  CHECK(written("{:+08.2f}|", tack::f64, 3.14159) == "+0003.14|");
  CHECK(written("{:8.2e}", tack::f32, 1500.0F) == "1.50e+03");
  CHECK(written("{:.99f}", tack::f64, 1e308).size() == 309 + 1 + 99);
  CHECK(written("{}", tack::i8, std::int64_t{-128}) == "-128");
  CHECK(written("{}", tack::u8, std::int64_t{-1}) == "255");
  CHECK(written("{}", tack::u64, std::int64_t{-1}) == "18446744073709551615");
  CHECK(written("{}", tack::i64, std::numeric_limits<std::int64_t>::min()) == "-9223372036854775808");
  CHECK(written("{:06d}{{}}", tack::i32, std::int64_t{-42}) == "-00042{}");
  CHECK(written("{:x} {{", tack::i32, std::int64_t{-255}) == "-ff {");
  CHECK(written("{:b}", tack::u64, std::int64_t{-1}) == std::string(64, '1'));
  CHECK(written("{:.1f}", tack::i16, std::int64_t{-3}) == "-3.0");
  CHECK(written("}}{}", tack::bool8, std::int64_t{1}) == "}True");
}

TEST_CASE("texts that do not fit their values") {
  const auto refused = [](const std::string& text, std::vector<tack::DType> values) {
    return !tack::fits_values(site(text, std::move(values)));
  };
  CHECK(refused("{}", {}));
  CHECK(refused("text", {tack::i64}));
  CHECK(refused("{} {}", {tack::i64}));
  CHECK(refused("{", {}));
  CHECK(refused("}", {}));
  CHECK(refused("{:", {tack::i64}));
  CHECK(refused("{0}", {tack::i64}));
  CHECK(refused("{:d}", {tack::f32}));
  CHECK(refused("{:.2}", {tack::f32}));
  CHECK(refused("{:.2d}", {tack::i32}));
  CHECK(refused("{:100}", {tack::i32}));
  CHECK(refused("{:.100f}", {tack::f32}));
  CHECK(refused("{:4}", {tack::bool8}));
  CHECK(refused("{:q}", {tack::i32}));
  CHECK(refused("{:>4}", {tack::i32}));
  CHECK(refused("{:f }", {tack::f32}));
}

TEST_CASE("a call that waits prints and throws before it returns") {
  Stage stage(false);
  stage.state.on_launch = [](const tack::LaunchCommand& command) {
    Reporter report(command);
    report.print(3);
    report.print(-1);
  };
  const std::uint64_t before = stage.device->memory().in_use;
  stage.launch();
  CHECK(stage.printed == "i = 3\ni = -1\n");
  CHECK(stage.device->memory().in_use == before);

  stage.printed.clear();
  stage.state.on_launch = [](const tack::LaunchCommand& command) {
    Reporter report(command);
    report.print(5);
    report.fail({1, 7});
    report.fail({1, 8});
  };
  CHECK(failure(ErrorCode::index, [&] { stage.launch(); }) == index_message);
  CHECK(stage.printed == "i = 5\n");
  CHECK(stage.device->memory().in_use == before);

  stage.state.on_launch = [](const tack::LaunchCommand& command) { Reporter(command).fail({2, word(0.5F), 1}); };
  CHECK(failure(ErrorCode::assertion, [&] { stage.launch(); }) == "Kernel 'k': 0.5 is not True\n  File \"user.py\", line 12");
  stage.state.on_launch = [](const tack::LaunchCommand& command) { Reporter(command).fail({9}); };
  CHECK(failure(ErrorCode::internal, [&] { stage.launch(); }).find("at a place that it does not have") != std::string::npos);
  stage.state.on_launch = {};
  stage.launch();  // every call has a buffer of its own
}

TEST_CASE("queued launches report at the wait, whichever it is") {
  Stage stage(true);
  const std::uint64_t before = stage.device->memory().in_use;
  const auto fails = [](const tack::LaunchCommand& command) {
    Reporter(command).print(1);
    Reporter(command).fail({1, 7});
  };
  SUBCASE("the device") {
    stage.state.on_launch = fails;
    stage.launch();
    CHECK(stage.printed.empty());
    CHECK(failure(ErrorCode::index, [&] { stage.device->synchronize(); }) == index_message);
  }
  SUBCASE("the runtime") {
    stage.state.on_launch = fails;
    stage.launch();
    CHECK(failure(ErrorCode::index, [&] { stage.runtime->synchronize(); }) == index_message);
  }
  SUBCASE("a read") {
    stage.state.on_launch = fails;
    stage.launch();
    float values[4];
    const std::int64_t strides[] = {4};
    CHECK(failure(ErrorCode::index, [&] { stage.x.read(values, strides); }) == index_message);
  }
  SUBCASE("a strided read") {
    stage.state.on_launch = fails;
    stage.launch();
    float values[8];
    const std::int64_t strides[] = {8};
    CHECK(failure(ErrorCode::index, [&] { stage.x.read(values, strides); }) == index_message);
  }
  SUBCASE("so many launches that their buffers would pile up") {
    stage.state.on_launch = fails;
    int launches = 0;
    CHECK(failure(ErrorCode::index, [&] {
            while (launches < 1000) {
              ++launches;
              stage.launch();
            }
          }) == index_message);
    CHECK(launches == 64);
    stage.printed = "i = 1\n";
  }
  SUBCASE("the first of several is thrown, the others are logged, all prints are printed") {
    std::uint64_t number = 7;
    stage.state.on_launch = [&](const tack::LaunchCommand& command) { Reporter(command).fail({1, number++}); };
    stage.launch();
    stage.launch();
    stage.state.on_launch = [](const tack::LaunchCommand& command) { Reporter(command).print(1); };
    stage.launch();
    CHECK(failure(ErrorCode::index, [&] { stage.device->synchronize(); }) == index_message);
    REQUIRE(stage.logged.size() == 1);
    CHECK(stage.logged[0].find("index 8 is outside") != std::string::npos);
  }
  CHECK(stage.printed == "i = 1\n");
  CHECK(stage.device->memory().in_use == before);
  stage.device->synchronize();  // reported once
}

TEST_CASE("a result that is waited for brings the reports with it") {
  Stage stage(true);
  KernelSource made = source();
  made.scratch_bytes = 8;
  made.result_type = tack::i64;
  made.result_offset = 0;
  stage.kernel = stage.device->build(made, {});
  stage.state.on_launch = [](const tack::LaunchCommand& command) { Reporter(command).fail({1, 7}); };
  CHECK(failure(ErrorCode::index, [&] { stage.launch(); }) == index_message);
}

TEST_CASE("the kernel may be gone at the wait, and nobody may wait at all") {
  FakeState state;
  std::vector<std::string> logged;
  {
    auto runtime = fake_runtime(state, quiet());
    runtime->set_log_sink([&](tack::LogLevel, std::string_view text) { logged.emplace_back(text); });
    auto device = runtime->device("fake");
    const std::int64_t shape[] = {4};
    const tack::Array x = tack::Array::empty(device, tack::f32, shape);
    auto kernel = device->build(source(), {});
    state.on_launch = [](const tack::LaunchCommand& command) { Reporter(command).fail({1, 7}); };
    const tack::Argument arguments[] = {tack::Argument(x)};
    kernel->launch(arguments);
    kernel.reset();
    CHECK(failure(ErrorCode::index, [&] { device->synchronize(); }) == index_message);
    device->build(source(), {})->launch(arguments);
  }
  REQUIRE(logged.size() == 1);
  CHECK(logged[0].find(index_message) != std::string::npos);
  CHECK(state.allocated == 0);
}

TEST_CASE("prints beyond the buffer are counted and told") {
  Stage stage(false);
  const std::uint64_t room = tack::print_buffer_bytes / 24;
  stage.state.on_launch = [&](const tack::LaunchCommand& command) {
    Reporter report(command);
    for (std::uint64_t i = 0; i < room + 5; ++i) report.print(2);
  };
  stage.launch();
  const std::string note = "[tack] Kernel 'k' printed " + std::to_string(room + 5) +
                           " times in one call; 5 were lost, as there is room for " + std::to_string(room) +
                           ". Print less of it: if i == 0: print(...).\n";
  CHECK(stage.printed.size() == room * 6 + note.size());
  CHECK(stage.printed.substr(room * 6) == note);
}

TEST_CASE("what the sink throws comes out of the call") {
  Stage stage(false);
  stage.state.on_launch = [](const tack::LaunchCommand& command) { Reporter(command).print(1); };
  const std::uint64_t before = stage.device->memory().in_use;
  stage.runtime->set_print_sink([](std::string_view) { throw Error(ErrorCode::io, "nobody reads"); });
  CHECK(failure(ErrorCode::io, [&] { stage.launch(); }) == "nobody reads");
  CHECK(stage.device->memory().in_use == before);
}

TEST_CASE("sites are stored with the kernel, and checked") {
  const KernelSource stored = tack::read_kernel_source(tack::write_kernel_source(source()));
  REQUIRE(stored.sites.size() == 3);
  CHECK(stored.sites[2].kind == Kind::assertion);
  CHECK(stored.sites[2].file == "user.py");
  CHECK(stored.sites[2].line == 12);
  CHECK(stored.sites[2].text == "{} is not {}");
  CHECK(stored.sites[2].values == std::vector<tack::DType>{tack::f32, tack::bool8});

  const auto refusal = [](auto change) {
    KernelSource changed = source();
    change(changed);
    return failure(ErrorCode::invalid_argument, [&] { tack::validate(changed, ErrorCode::invalid_argument); });
  };
  CHECK(refusal([](KernelSource& s) { s.sites.clear(); }).find("records that it does not have") != std::string::npos);
  CHECK(refusal([](KernelSource& s) { s.sites[0].text = "{} {}"; }).find("does not fit its values") != std::string::npos);
  CHECK(refusal([](KernelSource& s) { s.sites[0].values[0].bits = 7; }).find("unknown type") != std::string::npos);
  CHECK(refusal([](KernelSource& s) { s.sites[0].kind = static_cast<Kind>(3); }).find("unknown kind") != std::string::npos);
  CHECK(refusal([](KernelSource& s) { s.sites[0].values.resize(65); }).find("too many values") != std::string::npos);
}

// test_core_source_io.cpp -- stored kernels: round trips, every truncation, random damage, and what validation refuses.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "core/kernel_source_io.h"

using tack::ArgumentSpec;
using tack::Error;
using tack::ErrorCode;
using tack::Extent;
using tack::ExtentOp;
using tack::KernelSource;
using tack::ParamKind;
using tack::Step;

namespace {

/// A kernel with something of everything.
KernelSource rich() {
  KernelSource source;
  source.name = "na\u00efve";
  source.target = "cpu";
  source.arch = "x86-64-v4";
  source.text = std::string("text with \0 in it", 17);
  source.options = "-O2";
  ArgumentSpec x;
  x.name = "x";
  x.dtype = tack::f32;
  x.rank = 2;
  x.layout = tack::Layout::inner;
  x.written = true;
  ArgumentSpec y = x;
  y.name = "y";
  y.dtype = {tack::TypeCode::float_, 64, 3};
  y.read_only = true;
  y.written = false;
  ArgumentSpec n;
  n.name = "n";
  n.kind = ArgumentSpec::Kind::integer;
  n.min = -128;
  n.max = 127;
  ArgumentSpec f;
  f.name = "f";
  f.kind = ArgumentSpec::Kind::strong;
  f.dtype = tack::f64;
  ArgumentSpec none;
  none.name = "none";
  none.kind = ArgumentSpec::Kind::none;
  source.arguments = {x, y, n, f, none};
  source.entries = {{"e0",
                     {{ParamKind::pointer, 0, 0, tack::i64},
                      {ParamKind::shape, 1, 1, tack::i64},
                      {ParamKind::stride, 0, 0, tack::i64},
                      {ParamKind::scalar, 0, 2, tack::i8},
                      {ParamKind::scalar, 0, 3, tack::f32},
                      {ParamKind::extent, 1, 0, tack::i64},
                      {ParamKind::start, 0, 0, tack::i64},
                      {ParamKind::step, 1, 0, tack::i64},
                      {ParamKind::sequence, 0, 0, tack::i64},
                      {ParamKind::scratch, 0, 0, tack::i64}},
                     2,
                     1.25,
                     "e0.alone",
                     2.5,
                     128,
                     true},
                    {"e1", {}, 1, -1.0}};
  const Extent bound{{ExtentOp::shape, 1, 0, 0},  {ExtentOp::sequence, 0, 0, 0},  {ExtentOp::lt, 0, 0, 0},
                     {ExtentOp::scalar, 0, 2, 0}, {ExtentOp::constant, 0, 0, -9}, {ExtentOp::select, 0, 0, 0}};
  const Extent one{{ExtentOp::constant, 0, 0, 1}};
  Step begin;
  begin.kind = Step::Kind::sequence_begin;
  begin.start = {one};
  begin.stop = {{{ExtentOp::scalar, 0, 2, 0}, {ExtentOp::neg, 0, 0, 0}}};
  begin.step = {one};
  begin.match = 2;
  Step launch;
  launch.start = {one, one};
  launch.stop = {bound, bound};
  launch.step = {one, one};
  Step end;
  end.kind = Step::Kind::sequence_end;
  end.match = 0;
  Step last;
  last.entry = 1;
  last.stop = {one};
  source.steps = {begin, launch, end, last};
  source.scratch_bytes = 64;
  source.result_type = tack::f32;
  source.result_offset = 60;
  source.simd = 16;
  return source;
}

bool same(const ArgumentSpec& a, const ArgumentSpec& b) {
  return a.name == b.name && a.kind == b.kind && a.dtype == b.dtype && a.rank == b.rank && a.layout == b.layout &&
         a.read_only == b.read_only && a.written == b.written && a.min == b.min && a.max == b.max;
}

void check_same(const KernelSource& a, const KernelSource& b) {
  CHECK(a.name == b.name);
  CHECK(a.target == b.target);
  CHECK(a.arch == b.arch);
  CHECK(a.options == b.options);
  REQUIRE(a.arguments.size() == b.arguments.size());
  for (std::size_t i = 0; i < a.arguments.size(); ++i) CHECK(same(a.arguments[i], b.arguments[i]));
  REQUIRE(a.entries.size() == b.entries.size());
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    CHECK(a.entries[i].symbol == b.entries[i].symbol);
    CHECK(a.entries[i].params == b.entries[i].params);
    CHECK(a.entries[i].rank == b.entries[i].rank);
    CHECK(a.entries[i].cost_hint == b.entries[i].cost_hint);
    CHECK(a.entries[i].alone == b.entries[i].alone);
    CHECK(a.entries[i].locked_cost == b.entries[i].locked_cost);
    CHECK(a.entries[i].group == b.entries[i].group);
    CHECK(a.entries[i].whole_groups == b.entries[i].whole_groups);
  }
  REQUIRE(a.steps.size() == b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    CHECK(a.steps[i].kind == b.steps[i].kind);
    CHECK(a.steps[i].entry == b.steps[i].entry);
    CHECK(a.steps[i].start == b.steps[i].start);
    CHECK(a.steps[i].stop == b.steps[i].stop);
    CHECK(a.steps[i].step == b.steps[i].step);
    CHECK(a.steps[i].match == b.steps[i].match);
  }
  CHECK(a.scratch_bytes == b.scratch_bytes);
  CHECK(a.result_type == b.result_type);
  CHECK(a.result_offset == b.result_offset);
  CHECK(a.simd == b.simd);
}

/// True when the bytes are read, false when they are refused as damaged; anything else fails the test.
bool reads(std::span<const std::byte> bytes) {
  try {
    tack::read_front_entry(bytes);
    return true;
  } catch (const Error& error) {
    REQUIRE(error.code() == ErrorCode::corrupt);
    return false;
  }
}

}  // namespace

TEST_CASE("a kernel comes back as it was stored") {
  const KernelSource source = rich();
  const KernelSource whole = tack::read_kernel_source(tack::write_kernel_source(source));
  check_same(whole, source);
  CHECK(whole.text == source.text);
  const tack::FrontEntry entry = tack::read_front_entry(tack::write_front_entry(source, "content", "compiler 1"));
  check_same(entry.source, source);
  CHECK(entry.source.text.empty());
  CHECK(entry.content == "content");
  CHECK(entry.compiler == "compiler 1");
  CHECK(tack::write_kernel_source(whole) == tack::write_kernel_source(source));  // the same bytes on every run
}

TEST_CASE("every truncation, every surplus byte and another format are refused") {
  std::vector<std::byte> bytes = tack::write_front_entry(rich(), "content", "compiler 1");
  REQUIRE(reads(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) REQUIRE(!reads(std::span(bytes).first(size)));
  bytes.push_back(std::byte{0});
  CHECK(!reads(bytes));
  bytes.pop_back();
  bytes[8] ^= std::byte{0x40};  // the format's version, behind the magic's length and the magic
  CHECK(!reads(bytes));
}

TEST_CASE("damaged bytes are refused or describe some valid kernel; nothing worse happens") {
  const std::vector<std::byte> bytes = tack::write_front_entry(rich(), "content", "compiler 1");
  std::mt19937 random(3);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> damaged = bytes;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      const std::size_t at = random() % damaged.size();
      constexpr unsigned values[] = {0x00, 0xff, 0x7f, 0x80, 0x01};
      damaged[at] = static_cast<std::byte>(random() % 2 == 0 ? values[random() % 5] : random() & 0xff);
    }
    if (!reads(damaged)) ++refused;
  }
  CHECK(refused > 10000);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> noise(random() % 300);
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random() & 0xff);
    REQUIRE(!reads(noise));
  }
}

TEST_CASE("what does not fit together is refused, with the place") {
  const auto problem = [](const auto& change) {
    KernelSource source = rich();
    change(source);
    try {
      tack::validate(source, ErrorCode::invalid_argument);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_argument);
      const std::string message = error.what();
      const std::string start = "The kernel 'na\u00efve' is malformed: ";
      CHECK(message.rfind(start, 0) == 0);
      return message.substr(start.size());
    }
    return std::string();
  };
  using S = KernelSource&;
  CHECK(problem([](S) {}).empty());
  CHECK(problem([](S s) { s.entries[0].params[0].arg = 2; }) == "it takes the address of a scalar.");
  CHECK(problem([](S s) { s.entries[0].params[0].arg = 5; }) == "it names a parameter that it does not have.");
  CHECK(problem([](S s) { s.entries[0].params[1].dim = 2; }) == "it takes the shape of a dimension that is not there.");
  CHECK(problem([](S s) { s.entries[0].params[3].arg = 0; }) == "it takes the value of an array.");
  CHECK(problem([](S s) { s.entries[0].params[3].arg = 4; }) == "it takes the value of an array.");
  CHECK(problem([](S s) { s.entries[0].params[4].type = tack::i32; }) == "a floating argument is taken as an integer.");
  CHECK(problem([](S s) { s.entries[0].params[4].type = {tack::TypeCode::float_, 16}; }) == "a scalar has an unknown type.");
  CHECK(problem([](S s) { s.entries[0].params[5].dim = 2; }) == "it takes the range of a dimension that is not there.");
  CHECK(problem([](S s) { s.entries[0].params[8].arg = 1; }) == "it takes the variable of a sequence that it is not in.");
  CHECK(problem([](S s) { s.entries[0].params[0].kind = static_cast<ParamKind>(200); }) == "a parameter word has an unknown kind.");
  CHECK(problem([](S s) { s.entries[0].rank = 5; }) == "an entry has not 1 to 4 dimensions.");
  CHECK(problem([](S s) { s.entries[0].symbol.clear(); }) == "an entry has no name.");
  CHECK(problem([](S s) { s.steps[1].entry = 2; }) == "a step launches an entry that is not there.");
  CHECK(problem([](S s) { s.steps[1].stop.pop_back(); }) == "a step has not as many bounds as its entry dimensions.");
  CHECK(problem([](S s) { s.steps[1].start.pop_back(); }) == "a step has not as many starts as its entry dimensions.");
  CHECK(problem([](S s) { s.steps[1].step.pop_back(); }) == "a step has not as many steps as its entry dimensions.");
  CHECK(problem([](S s) { s.steps[0].match = 1; }) == "its sequences are not nested.");
  CHECK(problem([](S s) { s.steps[0].match = 9; }) == "a sequence does not end.");
  CHECK(problem([](S s) { s.steps[2].match = 1; }) == "its sequences are not nested.");
  CHECK(problem([](S s) { s.steps.resize(2); }) == "a sequence does not end.");
  CHECK(problem([](S s) { s.steps.erase(s.steps.begin()); }).substr(0, 18) == "a bound names a se");
  CHECK(problem([](S s) { s.steps[1].kind = static_cast<Step::Kind>(200); }) == "a step has an unknown kind.");
  CHECK(problem([](S s) { s.steps[3].stop[0] = {}; }) == "a bound is not one value.");
  CHECK(problem([](S s) { s.steps[3].stop[0] = {{ExtentOp::add, 0, 0, 0}}; }) == "a bound lacks an operand.");
  CHECK(problem([](S s) { s.steps[3].stop[0] = {{ExtentOp::constant, 0, 0, 1}, {ExtentOp::constant, 0, 0, 1}}; }) ==
        "a bound is not one value.");
  CHECK(problem([](S s) { s.steps[3].stop[0] = Extent(100, {ExtentOp::constant, 0, 0, 1}); }) == "a bound is nested too deeply.");
  CHECK(problem([](S s) { s.steps[3].stop[0] = {{ExtentOp::scalar, 0, 3, 0}}; }) == "a bound names a parameter that is no integer.");
  CHECK(problem([](S s) { s.steps[3].stop[0] = {{ExtentOp::sequence, 0, 0, 0}}; }) == "a bound names a sequence that it is not in.");
  CHECK(problem([](S s) { s.steps[3].stop[0] = {{ExtentOp::shape, 2, 0, 0}}; }) == "a bound names a dimension that is not there.");
  CHECK(problem([](S s) { s.steps[3].stop[0] = {{ExtentOp::constant, 0, 0, 1}, {static_cast<ExtentOp>(200), 0, 0, 0}}; }) ==
        "a bound has an unknown operation.");
  CHECK(problem([](S s) { s.arguments[0].rank = 9; }) == "a parameter has too many dimensions.");
  CHECK(problem([](S s) { s.arguments[0].kind = static_cast<ArgumentSpec::Kind>(200); }) == "a parameter has an unknown kind.");
  CHECK(problem([](S s) { s.arguments[0].layout = static_cast<tack::Layout>(200); }) == "a parameter has an unknown layout.");
  CHECK(problem([](S s) { s.arguments[0].dtype = {tack::TypeCode::float_, 8}; }) == "a parameter has an unknown element type.");
  CHECK(problem([](S s) { s.result_offset = 61; }) == "its result lies outside its scratch.");
  CHECK(problem([](S s) { s.result_type = {tack::TypeCode::int_, 24}; }) == "its result has an unknown type.");
  CHECK(problem([](S s) { s.scratch_bytes = 0, s.result_offset = -1; }) == "it takes the address of scratch that it does not have.");
  CHECK(problem([](S s) { s.scratch_bytes = std::uint64_t{1} << 60; }) == "its scratch is too large.");
}

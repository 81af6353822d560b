// test_core_kernel.cpp -- launching: parameter words, ranges, limits, sequences, scratch, results.
#include <doctest/doctest.h>

#include <bit>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/kernel_plan.h"
#include "kernel_support.h"

using namespace tack::test;
using tack::Argument;
using tack::ArgumentSpec;
using tack::Array;
using tack::DType;
using tack::Error;
using tack::ErrorCode;
using tack::Extent;
using tack::ExtentOp;
using tack::KernelSource;
using tack::Layout;
using tack::ParamKind;
using tack::ParamSlot;
using tack::Result;
using tack::Step;

namespace {

constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();

std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }
std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

TEST_CASE("words: addresses, shapes, strides, ranges, in the order of the slots") {
  Bench bench;
  const Array x = bench.array({6, 8});
  const Array column = Array::view(x.buffer(), tack::f32, Lengths{6}, Lengths{32}, 4, false);
  const auto kernel =
      bench.build(source_of({array_spec("x", tack::f32, 2), array_spec("y", tack::f32, 1, Layout::general)},
                            {{{ParamKind::stride, 0, 1, tack::i64},
                              {ParamKind::pointer, 0, 1, tack::i64},
                              {ParamKind::pointer, 0, 0, tack::i64},
                              {ParamKind::shape, 1, 0, tack::i64},
                              {ParamKind::extent, 1, 0, tack::i64},
                              {ParamKind::start, 0, 0, tack::i64},
                              {ParamKind::step, 0, 0, tack::i64},
                              {ParamKind::start, 1, 0, tack::i64},
                              {ParamKind::step, 1, 0, tack::i64}}},
                            {launch(0, {constant(10), constant(1)}, {shape(0, 0), shape(0, 1)}, {constant(-2), constant(3)})}, 2));
  const std::vector<Argument> arguments{Argument(x), Argument(column)};
  kernel->check(arguments);
  CHECK(!kernel->launch(arguments).present);
  REQUIRE(bench.state.launches.size() == 1);
  CHECK(bench.last().words == Words{32, reinterpret_cast<std::uintptr_t>(column.data()), reinterpret_cast<std::uintptr_t>(x.data()), 8, 3,
                                    10, bits(std::int64_t{-2}), 1, 3});
  CHECK(bench.last().extents == Lengths{2, 3});  // 10, 8 and 1, 4, 7
  CHECK(bench.last().iterations == 6);
}

TEST_CASE("scalars are converted to their slot's type") {
  Bench bench;
  struct Row {
    Kind kind;
    DType argument_type, slot_type;
    Argument argument;
    std::uint64_t word;
  };
  const std::vector<Row> rows{
      {Kind::integer, tack::i64, tack::i64, Argument(std::int64_t{-5}), bits(std::int64_t{-5})},
      {Kind::integer, tack::i64, tack::i8, Argument(std::int64_t{-5}), bits(std::int64_t{-5})},
      {Kind::integer, tack::i64, tack::i8, Argument(std::int64_t{130}), bits(std::int64_t{-126})},
      {Kind::integer, tack::i64, tack::u8, Argument(std::int64_t{-1}), 255},
      {Kind::integer, tack::i64, tack::u32, Argument(std::int64_t{-1}), 0xffffffffu},
      {Kind::integer, tack::i64, tack::u64, Argument(std::int64_t{-1}), ~std::uint64_t{0}},
      {Kind::integer, tack::i64, tack::f32, Argument(std::int64_t{-3}), bits(-3.0f)},
      // Rounded once: by way of a double it would be 9007199791611905 -> 9007199791611904 -> a tie.
      {Kind::integer, tack::i64, tack::f32, Argument(std::int64_t{9007199791611905}), bits(9007200328482816.0f)},
      {Kind::integer, tack::i64, tack::f64, Argument(std::int64_t{-3}), bits(-3.0)},
      {Kind::integer, tack::i64, tack::bool8, Argument(std::int64_t{256}), 1},
      {Kind::unsigned_, tack::u64, tack::u64, Argument(~std::uint64_t{0}), ~std::uint64_t{0}},
      {Kind::unsigned_, tack::u64, tack::f64, Argument(std::uint64_t{1} << 63), bits(9223372036854775808.0)},
      {Kind::unsigned_, tack::u64, tack::f32, Argument(std::uint64_t{1} << 63), bits(9223372036854775808.0f)},
      {Kind::floating, tack::f64, tack::f64, Argument(-0.0), bits(-0.0)},
      {Kind::floating, tack::f64, tack::f32, Argument(0.1), bits(0.1f)},
      {Kind::floating, tack::f64, tack::f32, Argument(1e300), bits(std::numeric_limits<float>::infinity())},
      {Kind::boolean, tack::i64, tack::bool8, Argument(true), 1},
      {Kind::boolean, tack::i64, tack::i32, Argument(true), 1},
      {Kind::strong, tack::f32, tack::f32, Argument(0.25), bits(0.25f)},
      {Kind::strong, tack::i16, tack::i16, Argument(std::int64_t{-7}), bits(std::int64_t{-7})},
      {Kind::strong, tack::u32, tack::f64, Argument(4000000000u), bits(4000000000.0)},
  };
  for (const Row& row : rows) {
    const auto kernel = bench.build(source_of({scalar_spec("n", row.kind, row.argument_type)}, {{{ParamKind::scalar, 0, 0, row.slot_type}}},
                                              {launch(0, {constant(1)})}));
    kernel->launch(std::vector<Argument>{row.argument});
    CAPTURE(tack::name_of(row.slot_type));
    CHECK(bench.last().words == Words{row.word});
  }
}

TEST_CASE("more words than lie on the stack") {
  Bench bench;
  const std::vector<ParamSlot> slots(200, {ParamKind::extent, 0, 0, tack::i64});
  bench.build(source_of({}, {slots}, {launch(0, {constant(9)})}))->launch({});
  CHECK(bench.last().words == Words(200, 9));
}

TEST_CASE("ranges count as Python's, a step of 0 runs nothing, a negative size counts as 0") {
  CHECK(tack::range_count(0, 10, 3) == 4);
  CHECK(tack::range_count(10, 0, -3) == 4);
  CHECK(tack::range_count(0, 10, -1) == 0);
  CHECK(tack::range_count(5, 5, 1) == 0);
  CHECK(tack::range_count(5, 9, 0) == 0);
  CHECK(tack::range_count(int64_min, int64_max, 1) == ~std::uint64_t{0});
  CHECK(tack::range_count(int64_max, int64_min, int64_min) == 2);
  CHECK(tack::range_count(int64_min, int64_max, int64_max) == 3);
  for (std::int64_t start = -4; start <= 4; ++start)
    for (std::int64_t stop = -4; stop <= 4; ++stop)
      for (std::int64_t step = -4; step <= 4; ++step) {
        std::uint64_t count = 0;
        if (step > 0)
          for (std::int64_t i = start; i < stop; i += step) ++count;
        if (step < 0)
          for (std::int64_t i = start; i > stop; i += step) ++count;
        REQUIRE(tack::range_count(start, stop, step) == count);
      }
  Bench bench;
  const auto kernel = bench.build(source_of({scalar_spec("n", Kind::integer)}, {{}}, {launch(0, {scalar(0)})}));
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{-1}, int64_min}) kernel->launch(std::vector{Argument(n)});
  CHECK(bench.state.launches.empty());
  kernel->launch(std::vector{Argument(std::int64_t{3})});
  CHECK(bench.last().iterations == 3);
}

TEST_CASE("extents: every operation, against Python's meaning and wrapping") {
  const auto run = [](const Extent& program) { return tack::evaluate(program, {}, nullptr); };
  const auto binary = [&](ExtentOp op, std::int64_t a, std::int64_t b) {
    return run({{ExtentOp::constant, 0, 0, a}, {ExtentOp::constant, 0, 0, b}, {op, 0, 0, 0}});
  };
  CHECK(binary(ExtentOp::add, int64_max, 1) == int64_min);
  CHECK(binary(ExtentOp::sub, int64_min, 1) == int64_max);
  CHECK(binary(ExtentOp::mul, int64_max, 2) == -2);
  CHECK(binary(ExtentOp::floordiv, -7, 2) == -4);
  CHECK(binary(ExtentOp::floordiv, 7, -2) == -4);
  CHECK(binary(ExtentOp::floordiv, -7, -2) == 3);
  CHECK(binary(ExtentOp::floordiv, 8, -2) == -4);
  CHECK(binary(ExtentOp::floordiv, 5, 0) == 0);
  CHECK(binary(ExtentOp::floordiv, int64_min, -1) == int64_min);
  CHECK(binary(ExtentOp::mod, -7, 3) == 2);
  CHECK(binary(ExtentOp::mod, 7, -3) == -2);
  CHECK(binary(ExtentOp::mod, 6, -3) == 0);
  CHECK(binary(ExtentOp::mod, 5, 0) == 0);
  CHECK(binary(ExtentOp::mod, int64_min, -1) == 0);
  CHECK(binary(ExtentOp::min, -1, 1) == -1);
  CHECK(binary(ExtentOp::max, -1, 1) == 1);
  CHECK(binary(ExtentOp::lt, 1, 2) == 1);
  CHECK(binary(ExtentOp::lt, 2, 2) == 0);
  CHECK(binary(ExtentOp::le, 2, 2) == 1);
  CHECK(binary(ExtentOp::eq, 2, 2) == 1);
  CHECK(binary(ExtentOp::eq, 2, 3) == 0);
  CHECK(binary(ExtentOp::ne, 2, 3) == 1);
  CHECK(binary(ExtentOp::shl, 3, 4) == 48);
  CHECK(binary(ExtentOp::shl, 1, 63) == int64_min);
  CHECK(binary(ExtentOp::shl, 1, 64) == 0);
  CHECK(binary(ExtentOp::shl, 1, -1) == 0);
  CHECK(binary(ExtentOp::shr, -9, 1) == -5);
  CHECK(binary(ExtentOp::shr, -9, 64) == -1);
  CHECK(binary(ExtentOp::shr, 9, -1) == 0);
  CHECK(binary(ExtentOp::bit_and, 12, 10) == 8);
  CHECK(binary(ExtentOp::bit_or, 12, 10) == 14);
  CHECK(binary(ExtentOp::bit_xor, 12, -1) == -13);
  CHECK(binary(ExtentOp::pow, -3, 3) == -27);
  CHECK(binary(ExtentOp::pow, 3, 0) == 1);
  CHECK(binary(ExtentOp::pow, 3, -1) == 0);
  CHECK(binary(ExtentOp::pow, 2, int64_max) == 0);
  CHECK(run({{ExtentOp::constant, 0, 0, -1}, {ExtentOp::popcount, 0, 0, 0}}) == 64);
  CHECK(run({{ExtentOp::constant, 0, 0, 0}, {ExtentOp::clz, 0, 0, 0}}) == 64);
  CHECK(run({{ExtentOp::constant, 0, 0, 5}, {ExtentOp::clz, 0, 0, 0}}) == 61);
  CHECK(run({{ExtentOp::constant, 0, 0, int64_min}, {ExtentOp::neg, 0, 0, 0}}) == int64_min);
  CHECK(run({{ExtentOp::constant, 0, 0, 5}, {ExtentOp::neg, 0, 0, 0}}) == -5);
  const auto select = [&](std::int64_t condition) {
    return run({{ExtentOp::constant, 0, 0, condition},
                {ExtentOp::constant, 0, 0, 10},
                {ExtentOp::constant, 0, 0, 20},
                {ExtentOp::select, 0, 0, 0}});
  };
  CHECK(select(1) == 10);
  CHECK(select(-3) == 10);
  CHECK(select(0) == 20);
}

TEST_CASE("extents of shapes and scalars") {
  Bench bench;
  const Array x = bench.array({7, 5});
  // (x.shape[0] - 2) * n // x.shape[1]
  const Extent program{{ExtentOp::shape, 0, 0, 0}, {ExtentOp::constant, 0, 0, 2}, {ExtentOp::sub, 0, 0, 0},     {ExtentOp::scalar, 0, 1, 0},
                       {ExtentOp::mul, 0, 0, 0},   {ExtentOp::shape, 1, 0, 0},    {ExtentOp::floordiv, 0, 0, 0}};
  bench.build(source_of({array_spec("x", tack::f32, 2), scalar_spec("n", Kind::integer)}, {{}}, {launch(0, {program})}))
      ->launch(std::vector{Argument(x), Argument(std::int64_t{9})});
  CHECK(bench.last().iterations == 9);
}

TEST_CASE("limits: the page's text, checked for all launches before the first") {
  Bench bench(true, 1000);
  const auto kernel = bench.build(source_of({scalar_spec("n", Kind::integer)}, {{}}, {launch(0, {constant(5)}), launch(0, {scalar(0)})}));
  CHECK(message_of(ErrorCode::invalid_argument, [&] { kernel->launch(std::vector{Argument(std::int64_t{1001})}); }) ==
        "Kernel 'k': 1001 iterations; the limit on fake is 1000. Split the work across several calls.");
  CHECK(bench.state.launches.empty());
  kernel->launch(std::vector{Argument(std::int64_t{1000})});
  CHECK(bench.state.launches.size() == 2);

  Bench free;
  const auto wide = free.build(source_of({scalar_spec("n", Kind::integer)}, {{}}, {launch(0, {scalar(0), scalar(0)})}, 2));
  CHECK(message_of(ErrorCode::invalid_argument, [&] { wide->launch(std::vector{Argument(std::int64_t{1} << 32)}); }) ==
        "Kernel 'k': 4294967296 x 4294967296 iterations; the limit on fake is 2^63 - 1. Split the work across several calls.");
  CHECK(wide->predict(std::vector{Argument(std::int64_t{1} << 32)}) == 0.0);
  const auto empty = free.build(source_of({scalar_spec("n", Kind::integer)}, {{}}, {launch(0, {scalar(0), scalar(0), constant(0)})}, 3));
  empty->launch(std::vector{Argument(int64_max)});  // nothing is nothing, however large the rest
  CHECK(free.state.launches.empty());
}

TEST_CASE("limits go with the size of the groups") {
  Bench bench(true, 2560);  // ten groups of 256
  KernelSource source = source_of({scalar_spec("n", Kind::integer)}, {{}, {}}, {launch(0, {scalar(0)})});
  const auto limit_is = [&](const std::string& expected) {
    const std::string message =
        message_of(ErrorCode::invalid_argument, [&] { bench.build(source)->launch(std::vector{Argument(std::int64_t{1} << 40)}); });
    CHECK(message == "Kernel 'k': 1099511627776 iterations; the limit on fake is " + expected + ". Split the work across several calls.");
  };
  limit_is("2560");
  source.entries[0].group = 32;
  limit_is("320");
  source.entries[0].group = 1024;
  limit_is("10240");
  source.entries[0].whole_groups = true;
  limit_is("10");
  // A loop that runs in another shape: its own iterations count, and a group runs many of them.
  Step check = launch(1, {scalar(0)});
  check.kind = Step::Kind::check;
  source.entries[0].whole_groups = false;
  source.entries[1].group = 64;
  source.entries[1].whole_groups = true;
  source.steps = {check, launch(0, {constant(3)})};
  limit_is("2560");
  CHECK(bench.state.launches.empty());
  bench.build(source)->launch(std::vector{Argument(std::int64_t{2560})});
  CHECK(bench.last().iterations == 3);
}

TEST_CASE("integers outside their parameter's range") {
  Bench bench;
  const auto with_range = [&](std::int64_t min, std::int64_t max, Kind kind, const Argument& argument) {
    ArgumentSpec spec = scalar_spec("n", kind);
    spec.min = min;
    spec.max = max;
    const auto kernel = bench.build(source_of({spec}, {{}}, {launch(0, {constant(1)})}));
    const std::string checked = message_of(ErrorCode::overflow, [&] { kernel->check(std::vector{argument}); });
    const std::string launched = message_of(ErrorCode::overflow, [&] { kernel->launch(std::vector{argument}); });
    CHECK(checked == launched);
    return launched;
  };
  CHECK(with_range(0, 255, Kind::integer, Argument(std::int64_t{300})) ==
        "Kernel 'k': argument 'n' is 300, which does not fit tack.u8 (0 to 255).");
  CHECK(with_range(0, 255, Kind::integer, Argument(std::int64_t{-1})) ==
        "Kernel 'k': argument 'n' is -1, which does not fit tack.u8 (0 to 255).");
  CHECK(with_range(0, 255, Kind::integer, Argument(std::int64_t{255})).empty());
  CHECK(with_range(-128, 127, Kind::integer, Argument(std::int64_t{-129})) ==
        "Kernel 'k': argument 'n' is -129, which does not fit tack.i8 (-128 to 127).");
  CHECK(with_range(0, int64_max, Kind::integer, Argument(std::int64_t{-1})) ==
        "Kernel 'k': argument 'n' is -1, which does not fit tack.u64 (0 to 18446744073709551615).");
  CHECK(with_range(2, 5, Kind::integer, Argument(std::int64_t{6})) == "Kernel 'k': argument 'n' is 6, which is not from 2 to 5.");
  CHECK(with_range(-2147483648LL, 2147483647, Kind::unsigned_, Argument(std::uint64_t{1} << 63)) ==
        "Kernel 'k': argument 'n' is 9223372036854775808, which does not fit tack.i32 (-2147483648 to 2147483647).");
  CHECK(with_range(int64_min, int64_max, Kind::unsigned_, Argument(~std::uint64_t{0})).empty());
  CHECK(with_range(0, int64_max, Kind::unsigned_, Argument(~std::uint64_t{0})) ==
        "Kernel 'k': argument 'n' is 18446744073709551615, which does not fit tack.i64 (-9223372036854775808 to 9223372036854775807).");
}

TEST_CASE("sequences: nested, with bounds that use the outer variables, empty ones skipped") {
  Bench bench;
  // for a in sequential(1, n, 2): launch(a); for b in sequential(a, 0, -1): launch(10 * a + b); then launch(99)
  const Extent ten_a_plus_b{{ExtentOp::constant, 0, 0, 10},
                            {ExtentOp::sequence, 0, 0, 0},
                            {ExtentOp::mul, 0, 0, 0},
                            {ExtentOp::sequence, 0, 1, 0},
                            {ExtentOp::add, 0, 0, 0}};
  const std::vector<ParamSlot> outer{{ParamKind::sequence, 0, 0, tack::i64}};
  const std::vector<ParamSlot> inner{{ParamKind::sequence, 0, 1, tack::i64}, {ParamKind::sequence, 0, 0, tack::i64}};
  const auto kernel = bench.build(
      source_of({scalar_spec("n", Kind::integer)}, {outer, inner, {}},
                {begin(constant(1), scalar(0), constant(2), 5), launch(0, {sequence(0)}), begin(sequence(0), constant(0), constant(-1), 4),
                 launch(1, {ten_a_plus_b}), end(2), end(0), launch(2, {constant(99)})}));
  kernel->launch(std::vector{Argument(std::int64_t{4})});
  std::vector<std::int64_t> iterations;
  std::vector<Words> words;
  for (const auto& one : bench.state.launches) {
    iterations.push_back(one.iterations);
    words.push_back(one.words);
  }
  CHECK(iterations == Lengths{1, 11, 3, 33, 32, 31, 99});
  CHECK(words == std::vector<Words>{{1}, {1, 1}, {3}, {3, 3}, {2, 3}, {1, 3}, {}});
  bench.state.launches.clear();
  kernel->launch(std::vector{Argument(std::int64_t{0})});
  REQUIRE(bench.state.launches.size() == 1);
  CHECK(bench.last().iterations == 99);
}

TEST_CASE("sequences: a launch that becomes too large later is refused before the first") {
  Bench bench(true, 1000);
  const auto kernel = bench.build(
      source_of({scalar_spec("n", Kind::integer)}, {{}},
                {begin(constant(0), scalar(0), constant(1), 2),
                 launch(0, {Extent{{ExtentOp::sequence, 0, 0, 0}, {ExtentOp::constant, 0, 0, 100}, {ExtentOp::mul, 0, 0, 0}}}), end(0)}));
  CHECK(message_of(ErrorCode::invalid_argument, [&] {
          kernel->launch(std::vector{Argument(std::int64_t{12})});
        }).find("1100 iterations; the limit on fake is 1000") != std::string::npos);
  CHECK(bench.state.launches.empty());
  kernel->launch(std::vector{Argument(std::int64_t{11})});
  CHECK(bench.state.launches.size() == 10);  // the first is empty
}

TEST_CASE("sequences: a long one in which nothing varies is not walked for the check") {
  Bench bench(true, 10);
  const auto kernel =
      bench.build(source_of({}, {{}}, {begin(constant(0), constant(int64_max), constant(1), 2), launch(0, {constant(11)}), end(0)}));
  CHECK(!message_of(ErrorCode::invalid_argument, [&] { kernel->launch({}); }).empty());  // at once
  CHECK(kernel->predict({}) > 1e18);
}

TEST_CASE("results and scratch, on the stack and in the device's memory") {
  for (const bool queued : {false, true})
    for (const std::uint64_t scratch_bytes : {std::uint64_t{64}, std::uint64_t{5000}}) {
      Bench bench(queued);
      struct Row {
        DType type;
        std::uint64_t cell;
        double expected;
      };
      for (const Row& row : {Row{tack::i32, 0xfffffff6u, -10.0}, Row{tack::u8, 200, 200.0}, Row{tack::f32, bits(1.5f), 1.5},
                             Row{tack::f64, bits(-2.5), -2.5}, Row{tack::i64, bits(std::int64_t{-3}), -3.0}, Row{tack::bool8, 1, 1.0}}) {
        KernelSource source = source_of({}, {{{ParamKind::scratch, 0, 0, tack::i64}}}, {launch(0, {constant(1)})});
        source.scratch_bytes = scratch_bytes;
        source.result_type = row.type;
        source.result_offset = 16;
        const auto kernel = bench.build(source);
        bool zeroed = true;
        bench.state.on_launch = [&](const tack::LaunchCommand& command) {
          auto* cells = static_cast<std::byte*>(
              static_cast<tack::test::FakeDevice&>(bench.device->impl()).host(reinterpret_cast<void*>(command.words[0])));
          for (std::size_t i = 0; i < scratch_bytes; ++i) zeroed = zeroed && cells[i] == std::byte{0};
          std::memcpy(cells + 16, &row.cell, row.type.size());
          cells[0] = std::byte{1};
        };
        for (int call = 0; call < 2; ++call) {
          const Result result = kernel->launch({});
          CHECK(result.present);
          CHECK(result.type == row.type);
          const double value = row.type.is_float()                     ? result.f
                               : row.type.code == tack::TypeCode::int_ ? static_cast<double>(result.i)
                                                                       : static_cast<double>(result.u);
          CHECK(value == row.expected);
        }
        CHECK(zeroed);
      }
      bench.state.on_launch = {};
      CHECK(bench.device->memory().in_use == 0);
      CHECK((bench.device->memory().allocations == 0) == (!queued && scratch_bytes == 64));
    }
}

TEST_CASE("an error of a launch names the kernel, once, and scratch is not lost") {
  Bench bench;
  KernelSource source = source_of({}, {{}}, {launch(0, {constant(1)})});
  source.scratch_bytes = 5000;
  const auto kernel = bench.build(source);
  bench.state.on_launch = [](const tack::LaunchCommand&) { throw Error(ErrorCode::driver, "the queue is gone"); };
  CHECK(message_of(ErrorCode::driver, [&] { kernel->launch({}); }) == "Kernel 'k': the queue is gone");
  bench.state.on_launch = [](const tack::LaunchCommand&) { throw Error(ErrorCode::driver, "Kernel 'k': it knew itself"); };
  CHECK(message_of(ErrorCode::driver, [&] { kernel->launch({}); }) == "Kernel 'k': it knew itself");
  CHECK(bench.device->memory().in_use == 0);
}

TEST_CASE("launches that use shared memory are complete when the call returns") {
  Bench bench;
  const Array x = bench.array({4});
  const auto kernel = bench.build(source_of({array_spec("x")}, {{}}, {launch(0, {shape(0, 0)})}));
  kernel->launch(std::vector{Argument(x)});
  CHECK(bench.state.synchronizations == 0);
  CHECK(!kernel->waits(std::vector{Argument(x)}));
  x.buffer()->mark_shared();
  CHECK(kernel->waits(std::vector{Argument(x)}));
  kernel->launch(std::vector{Argument(x)});
  CHECK(bench.state.synchronizations == 1);
}

TEST_CASE("prediction: iterations times the module's figure, sequences by their middle") {
  Bench bench;
  const auto one = bench.build(source_of({scalar_spec("n", Kind::integer)}, {{}}, {launch(0, {scalar(0)})}));
  CHECK(one->predict(std::vector{Argument(std::int64_t{100})}) == 100.0);
  CHECK(one->predict(std::vector{Argument(std::int64_t{0})}) == 0.0);
  CHECK(one->predict({}) == 0.0);
  const auto two = bench.build(source_of({scalar_spec("n", Kind::integer)}, {{}, {}}, {launch(0, {scalar(0)}), launch(1, {constant(3)})}));
  CHECK(two->predict(std::vector{Argument(std::int64_t{100})}) == 106.0);
  const auto steps =
      bench.build(source_of({scalar_spec("n", Kind::integer)}, {{}},
                            {begin(constant(0), scalar(0), constant(1), 2), launch(0, {sequence(0)}), end(0), launch(0, {constant(1)})}));
  CHECK(steps->predict(std::vector{Argument(std::int64_t{100})}) == 100.0 * 50.0 + 1.0);
  CHECK(steps->predict(std::vector{Argument(std::int64_t{0})}) == 1.0);
  CHECK(steps->waits(std::vector{Argument(std::int64_t{100})}));  // it queues many launches
  CHECK(!two->waits(std::vector{Argument(std::int64_t{100})}));
}

TEST_CASE("short launches go straight to the module, and only those") {
  const auto triad = [] {
    return source_of({array_spec("a"), scalar_spec("n", Kind::integer)},
                     {{{ParamKind::pointer, 0, 0, tack::i64},
                       {ParamKind::scalar, 0, 1, tack::i64},
                       {ParamKind::extent, 0, 0, tack::i64},
                       {ParamKind::start, 0, 0, tack::i64}}},
                     {launch(0, {scalar(1)})});
  };
  SUBCASE("as a launch, but for the way") {
    Bench bench(false, 1000);
    bench.state.short_below = 10;
    KernelSource source = triad();
    source.arguments[1].max = 2000;
    const auto kernel = bench.build(source);
    const Array a = bench.array({4});
    CHECK(kernel->launch_unchecked_if_short(std::vector<Argument>{Argument(a), Argument(std::int64_t{9})}));
    CHECK(bench.last().entry == 1000);
    CHECK(bench.last().iterations == 9);
    CHECK(bench.last().words == Words{reinterpret_cast<std::uintptr_t>(a.data()), 9, 9});
    for (const std::int64_t nothing : {0, -5})
      CHECK(kernel->launch_unchecked_if_short(std::vector<Argument>{Argument(a), Argument(nothing)}));
    CHECK_FALSE(kernel->launch_unchecked_if_short(std::vector<Argument>{Argument(a), Argument(std::int64_t{10})}));
    CHECK_FALSE(kernel->launch_unchecked_if_short(std::vector<Argument>{Argument(a)}));
    CHECK(bench.state.launches.size() == 1);
    const auto refused = [&](std::int64_t n) { kernel->launch_unchecked_if_short(std::vector<Argument>{Argument(a), Argument(n)}); };
    CHECK(message_of(ErrorCode::invalid_argument, [&] { refused(1001); }).find("1001 iterations") != std::string::npos);
    CHECK(message_of(ErrorCode::overflow, [&] { refused(2001); }).find("'n' is 2001") != std::string::npos);
  }
  SUBCASE("a start and a step") {
    Bench bench(false);
    bench.state.short_below = 10;
    KernelSource source = triad();
    source.steps = {launch(0, {constant(3)}, {scalar(1)}, {constant(2)})};
    CHECK(bench.build(source)->launch_unchecked_if_short(std::vector<Argument>{Argument(bench.array({4})), Argument(std::int64_t{10})}));
    CHECK(bench.last().iterations == 4);
    CHECK(bench.last().words[3] == 3);
  }
  SUBCASE("not where launches are queued, the module has no such way, or there is more than one launch") {
    const auto refused = [&](bool queued, std::int64_t short_below, bool twice) {
      Bench bench(queued);
      bench.state.short_below = short_below;
      KernelSource source = triad();
      if (twice) source.steps.push_back(source.steps.front());
      const bool ran =
          bench.build(source)->launch_unchecked_if_short(std::vector<Argument>{Argument(bench.array({4})), Argument(std::int64_t{1})});
      return !ran && bench.state.launches.empty();
    };
    CHECK_FALSE(refused(false, 10, false));
    CHECK(refused(true, 10, false));
    CHECK(refused(false, 0, false));
    CHECK(refused(false, 10, true));
  }
  SUBCASE("more words than lie on the stack") {
    Bench bench(false);
    bench.state.short_below = 10;
    KernelSource source = triad();
    source.entries[0].params.assign(100, source.entries[0].params[1]);
    CHECK_FALSE(
        bench.build(source)->launch_unchecked_if_short(std::vector<Argument>{Argument(bench.array({4})), Argument(std::int64_t{1})}));
  }
}

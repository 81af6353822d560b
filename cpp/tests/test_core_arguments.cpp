// test_core_arguments.cpp -- what an argument must be for its parameter, and what is said of one that is not.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel_support.h"

using namespace tack::test;
using tack::Argument;
using tack::Array;
using tack::DType;
using tack::ErrorCode;
using tack::Layout;
using tack::ParamKind;
using tack::ParamSlot;

TEST_CASE("arguments that do not fit") {
  Bench bench;
  FakeState elsewhere_state;
  elsewhere_state.memory_space = 0x7800;
  const auto elsewhere = fake_runtime(elsewhere_state)->device("fake");
  const auto kernel = bench.build(source_of(
      {array_spec("x"), array_spec("y", tack::f32, 2, Layout::inner), scalar_spec("n", Kind::integer)}, {{}}, {launch(0, {shape(0, 0)})}));
  const Array x = bench.array({4});
  const Array y = bench.array({4, 4});
  const Argument n(std::int64_t{1});
  kernel->check(std::vector{Argument(x), Argument(y), n});
  kernel->check(std::vector{Argument(x), Argument(Array::view(y.buffer(), tack::f32, Lengths{2, 2}, Lengths{16, 4}, 0, false)), n});
  const auto refused = [&](ErrorCode code, const std::vector<Argument>& arguments) {
    return message_of(code, [&] { kernel->check(arguments); });
  };
  CHECK(refused(ErrorCode::type_mismatch, {Argument(x)}) == "Kernel 'k' takes 3 arguments, 1 was given.");
  CHECK(message_of(ErrorCode::type_mismatch, [&] { kernel->launch({}); }) == "Kernel 'k' takes 3 arguments, 0 were given.");
  CHECK(refused(ErrorCode::type_mismatch, {n, Argument(y), n}) == "Kernel 'k': parameter 'x' is an array, an int was given.");
  CHECK(refused(ErrorCode::type_mismatch, {Argument(x), Argument(y), Argument(x)}) ==
        "Kernel 'k': parameter 'n' is an int, an array was given.");
  const Array none;
  CHECK(refused(ErrorCode::type_mismatch, {Argument(none), Argument(y), n}) == "Kernel 'k': parameter 'x' is an array, none was given.");
  const Array wide = bench.array({4}, tack::f64);
  CHECK(refused(ErrorCode::type_mismatch, {Argument(wide), Argument(y), n}) ==
        "Kernel 'k': parameter 'x' has dtype tack.f64; this kernel was built for tack.f32.");
  CHECK(refused(ErrorCode::type_mismatch, {Argument(y), Argument(y), n}) ==
        "Kernel 'k': parameter 'x' has 2 dimensions; this kernel was built for 1.");
  const Array sparse = Array::view(y.buffer(), tack::f32, Lengths{4}, Lengths{16}, 0, false);
  CHECK(refused(ErrorCode::type_mismatch, {Argument(sparse), Argument(y), n}) ==
        "Kernel 'k': parameter 'x' must be contiguous; make a contiguous copy of it.");
  const Array turned = Array::view(y.buffer(), tack::f32, Lengths{4, 4}, Lengths{4, 16}, 0, false);
  CHECK(refused(ErrorCode::type_mismatch, {Argument(x), Argument(turned), n}) ==
        "Kernel 'k': parameter 'y' must be contiguous in its last dimension; make a contiguous copy of it.");
  const Array fixed = Array::view(x.buffer(), tack::f32, Lengths{4}, Lengths{4}, 0, true);
  CHECK(refused(ErrorCode::invalid_argument, {Argument(fixed), Argument(y), n}) ==
        "Kernel 'k': parameter 'x' is read-only, and the kernel writes it; give it a copy.");
  const Array far = Array::empty(elsewhere, tack::f32, Lengths{4});
  CHECK(refused(ErrorCode::invalid_argument, {Argument(far), Argument(y), n}) ==
        "Kernel 'k': parameter 'x' is on 'fake:0', which 'fake:0' cannot address; copy it there first.");
}

TEST_CASE("scalars are what their parameter is, or refused by every launch") {
  Bench bench;
  constexpr std::uint64_t large = std::uint64_t{1} << 63;
  const auto refused = [&](Kind kind, DType type, const Argument& argument) -> std::string {
    std::vector<ParamSlot> words;
    if (kind != Kind::none) words.push_back({ParamKind::scalar, 0, 0, type});
    const auto kernel = bench.build(source_of({scalar_spec("n", kind, type)}, {words}, {launch(0, {constant(1)})}));
    const std::vector<Argument> arguments{argument};
    const std::size_t before = bench.state.launches.size();
    try {
      kernel->launch(arguments);
    } catch (const tack::Error& error) {
      CHECK(error.code() == ErrorCode::type_mismatch);
      CHECK(bench.state.launches.size() == before);
      CHECK(message_of(ErrorCode::type_mismatch, [&] { kernel->check(arguments); }) == error.what());
      return error.what();
    }
    kernel->check(arguments);
    CHECK(bench.state.launches.size() == before + 1);
    return "";
  };
  const std::string n = "Kernel 'k': parameter 'n' is ";
  SUBCASE("a float") {
    for (const Argument& good : {Argument(2.0), Argument(2.0f)}) CHECK(refused(Kind::floating, tack::f32, good).empty());
    CHECK(refused(Kind::floating, tack::f32, Argument(2)) == n + "a float, an int was given.");
    CHECK(refused(Kind::floating, tack::f32, Argument(-2)) == n + "a float, -2 was given.");
    CHECK(refused(Kind::floating, tack::f64, Argument(2u)) == n + "a float, an int was given.");
    CHECK(refused(Kind::floating, tack::f64, Argument(true)) == n + "a float, a bool was given.");
    CHECK(refused(Kind::floating, tack::f64, Argument()) == n + "a float, None was given.");
  }
  SUBCASE("an int of either sign's type") {
    for (const Argument& good : {Argument(-5), Argument(5u), Argument(std::int8_t{-5}), Argument(large - 1)})
      CHECK(refused(Kind::integer, tack::i64, good).empty());
    CHECK(refused(Kind::integer, tack::i64, Argument(large)) == n + "an int, 9223372036854775808 was given.");
    CHECK(refused(Kind::integer, tack::i64, Argument(1.0)) == n + "an int, a float was given.");
    for (const Argument& good : {Argument(large), Argument(5u), Argument(5)}) CHECK(refused(Kind::unsigned_, tack::u64, good).empty());
    CHECK(refused(Kind::unsigned_, tack::u64, Argument(-5)) == n + "an unsigned int, -5 was given.");
  }
  SUBCASE("a bool, and None") {
    CHECK(refused(Kind::boolean, tack::bool8, Argument(false)).empty());
    CHECK(refused(Kind::boolean, tack::bool8, Argument(1)) == n + "a bool, an int was given.");
    CHECK(refused(Kind::none, tack::i64, Argument()).empty());
    CHECK(refused(Kind::none, tack::i64, Argument(0)) == n + "None, an int was given.");
  }
  SUBCASE("of a dtype of its own") {
    for (const Argument& good : {Argument(0.5f), Argument(0.5)}) CHECK(refused(Kind::strong, tack::f32, good).empty());
    CHECK(refused(Kind::strong, tack::f32, Argument(1)) == n + "a tack.f32, an int was given.");
    for (const Argument& good : {Argument(-7), Argument(7u)}) CHECK(refused(Kind::strong, tack::i16, good).empty());
    CHECK(refused(Kind::strong, tack::u32, Argument(-7)) == n + "a tack.u32, -7 was given.");
    CHECK(refused(Kind::strong, tack::i16, Argument(0.5)) == n + "a tack.i16, a float was given.");
  }
}

// test_core_texture.cpp -- Texture: what it copies, what it refuses, and kernels that take one.
#include <array>
#include <string>
#include <vector>

#include "null_support.h"
#include "tack/texture.hpp"

using namespace tack;
using namespace tack::test;

namespace {

/// A volume of the texels 0, 1, 2, ...
Array volume(const std::shared_ptr<Device>& device, const std::vector<std::int64_t>& shape, DType dtype = f32) {
  const Array made = Array::empty(device, dtype, shape);
  std::vector<float> values(static_cast<std::size_t>(made.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  if (dtype == f32) made.write(values.data(), made.strides());
  return made;
}

std::vector<float> values_of(const Array& array) {
  std::vector<float> values(static_cast<std::size_t>(array.size()));
  array.read(values.data(), array.strides());
  return values;
}

template <class F>
std::string refusal(F f, ErrorCode code) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

/// A kernel of the null device that takes a texture read in the way `reading`, by its handle.
KernelSource taking(std::uint8_t reading) {
  ArgumentSpec argument;
  argument.name = "tex";
  argument.rank = 3;
  argument.read_only = true;
  argument.texture = reading;
  return null_source("look", argument, {.kind = ParamKind::texture});
}

}  // namespace

TEST_CASE("a texture is a copy of its array, until it is updated") {
  const auto runtime = quiet();
  const auto cpu = runtime->device("cpu");
  for (const char* name : {"cpu", "null"}) {
    CAPTURE(name);
    const auto device = runtime->device(name);
    const Array source = volume(cpu, {2, 3, 4});
    Texture texture(device, source, Interp::linear, Wrap::mirror);
    const std::vector<float> before = values_of(source);
    CHECK(values_of(texture.texels()) == before);
    CHECK(&texture.texels().device() == device.get());
    const float other = 5.0f;
    source.fill(&other);
    CHECK(values_of(texture.texels()) == before);
    texture.update(source);
    CHECK(values_of(texture.texels()) == std::vector<float>(24, 5.0f));
    CHECK(texture.hardware() == device->capabilities().supports_images);
    CHECK((texture.handle() != 0) == texture.hardware());
    CHECK(texture.interp() == Interp::linear);
    CHECK(texture.wrap() == Wrap::mirror);
    const Texture moved(std::move(texture));
    CHECK(moved.reading() == (moved.hardware() ? 9 : 3));
  }
}

TEST_CASE("a strided view becomes a texture of its elements") {
  const auto runtime = quiet();
  const auto cpu = runtime->device("cpu");
  const Array whole = volume(cpu, {2, 2, 4});
  const std::array<std::int64_t, 3> shape{2, 2, 2}, strides{32, 16, 8};
  const Array every_other = Array::view(whole.buffer(), f32, shape, strides, 4, true);
  const Texture texture(runtime->device("null"), every_other, Interp::nearest, Wrap::clamp);
  CHECK(values_of(texture.texels()) == std::vector<float>{1, 3, 5, 7, 9, 11, 13, 15});
}

TEST_CASE("what is no texture") {
  const auto runtime = quiet();
  const auto cpu = runtime->device("cpu");
  const auto make = [&](const Array& array) { return [&] { const Texture texture(cpu, array, Interp::linear, Wrap::clamp); }; };
  CHECK(refusal(make(volume(cpu, {2, 2, 2}, f64)), ErrorCode::type_mismatch) == "A texture has texels of tack.f32, not of tack.f64.");
  CHECK(refusal(make(volume(cpu, {4, 4})), ErrorCode::invalid_argument) ==
        "A texture is made of an array of 3 dimensions; this one has 2.");
  CHECK(refusal(make(volume(cpu, {2, 0, 2})), ErrorCode::invalid_argument) ==
        "A texture is made of an array with at least one texel; this one is empty.");
  Texture texture(cpu, volume(cpu, {2, 2, 2}), Interp::linear, Wrap::clamp);
  CHECK(refusal([&] { texture.update(volume(cpu, {2, 2, 3})); }, ErrorCode::invalid_argument).find("differ") != std::string::npos);
}

TEST_CASE("a kernel takes the textures that it was built for") {
  const auto runtime = quiet();
  const auto device = runtime->device("null");
  const Texture clamped(device, volume(device, {2, 2, 2}), Interp::linear, Wrap::clamp);
  const Texture mirrored(device, volume(device, {2, 2, 2}), Interp::nearest, Wrap::mirror);
  const auto kernel = device->build(taking(clamped.reading()), {});
  const std::vector<Argument> good{Argument(clamped)}, other{Argument(mirrored)}, array{Argument(clamped.texels())};
  kernel->check(good);
  kernel->launch(good);
  CHECK(refusal([&] { kernel->check(other); }, ErrorCode::type_mismatch) ==
        "Kernel 'look': parameter 'tex' is a texture (interp=linear, wrap=clamp, sampled by hardware), a texture (interp=nearest, "
        "wrap=mirror, "
        "sampled by hardware) was given.");
  CHECK(refusal([&] { kernel->check(array); }, ErrorCode::type_mismatch) ==
        "Kernel 'look': parameter 'tex' is a texture (interp=linear, wrap=clamp, sampled by hardware), an array was given.");
  device->synchronize();
}

TEST_CASE("a texture parameter is a volume of f32 that is only read") {
  const auto runtime = quiet();
  const auto device = runtime->device("null");
  const auto refused = [&](auto change) {
    KernelSource source = taking(1);
    change(source);
    return refusal([&] { device->build(source, {}); }, ErrorCode::invalid_argument);
  };
  const std::string problem = "The kernel 'look' is malformed: a texture parameter is no volume of f32 that is only read.";
  CHECK(refused([](KernelSource& s) { s.arguments[0].dtype = f64; }) == problem);
  CHECK(refused([](KernelSource& s) { s.arguments[0].rank = 2; }) == problem);
  CHECK(refused([](KernelSource& s) { s.arguments[0].written = true; }) == problem);
  CHECK(refused([](KernelSource& s) { s.arguments[0].texture = max_reading + 1; }) == problem);
  CHECK(refused([](KernelSource& s) { s.arguments[0].texture = 0; }) ==
        "The kernel 'look' is malformed: it takes a texture of a parameter that is none.");
}

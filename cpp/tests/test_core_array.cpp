// test_core_array.cpp -- arrays: shapes, bounds, layouts, and copies of any layout between the host and devices, against a slow oracle.
#include <doctest/doctest.h>

#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/strided.h"
#include "error_support.h"
#include "fake_backend.h"
#include "tack/array.hpp"

using tack::Array;
using tack::Buffer;
using tack::Device;
using tack::Error;
using tack::ErrorCode;
using tack::Layout;
using tack::test::fake_runtime;
using tack::test::FakeState;
using tack::test::message_of;

namespace {

using Lengths = std::vector<std::int64_t>;
constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

Lengths dense(const Lengths& shape, std::size_t item) {
  Lengths strides(shape.size());
  tack::dense_strides(shape, item, strides);
  return strides;
}

/// The elements in row-major order.
std::vector<std::int32_t> values(const Array& array) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(array.size()));
  array.read(out.data(), dense({array.shape().begin(), array.shape().end()}, 4));
  return out;
}

/// A row-major array of i32 with the values 0, 1, 2, ...
Array counting(const std::shared_ptr<Device>& device, const Lengths& shape) {
  Array array = Array::empty(device, tack::i32, shape);
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(array.size()));
  std::iota(numbers.begin(), numbers.end(), 0);
  array.write(numbers.data(), dense(shape, 4));
  return array;
}

/// Row-major element offsets (bytes) of a strided array: the oracle.
std::vector<std::int64_t> offsets(const Lengths& shape, const Lengths& strides) {
  std::vector<std::int64_t> out{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : out)
      for (std::int64_t i = 0; i < shape[d]; ++i) next.push_back(offset + i * strides[d]);
    out = next;
  }
  return out;
}

/// Devices of all kinds of memory, for tests that run on each.
struct Devices {
  FakeState hidden, queued, open;
  std::vector<std::shared_ptr<Device>> all;
  Devices() {
    queued.host_addressable = true;
    open.host_addressable = true;
    open.queued = false;
    queued.memory_space = 0x7100;
    open.memory_space = 0x7200;
    for (FakeState* state : {&hidden, &queued, &open}) all.push_back(fake_runtime(*state)->device("fake"));
    all.push_back(tack::Runtime::create(tack::test::quiet())->device("cpu"));
  }
};

}  // namespace

TEST_CASE("new arrays: shapes, strides, sizes, layout") {
  const Devices devices;
  for (const auto& device : devices.all) {
    const Array a = Array::empty(device, tack::f64, Lengths{2, 3, 4});
    CHECK(a.rank() == 3);
    CHECK(a.size() == 24);
    CHECK(a.bytes() == 192);
    CHECK(a.stride(0) == 96);
    CHECK(a.stride(2) == 8);
    CHECK(a.layout() == Layout::contiguous);
    CHECK(!a.read_only());
    CHECK(&a.device() == device.get());
    CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
    const Array scalar = Array::empty(device, tack::u8, Lengths{});
    CHECK(scalar.rank() == 0);
    CHECK(scalar.size() == 1);
    const Array none = Array::empty(device, tack::f32, Lengths{5, 0, 3});
    CHECK(none.size() == 0);
    CHECK(none.layout() == Layout::contiguous);
    CHECK(none.data() != nullptr);
    none.read(nullptr, none.strides());
    none.write(nullptr, none.strides());
    none.fill("0000");
    none.copy_from(none);
    CHECK(Array::empty(device, tack::i8, Lengths{1, 1, 1, 1, 1, 1, 1, 1}).rank() == 8);
  }
}

TEST_CASE("shapes that are refused") {
  FakeState state;
  const auto device = fake_runtime(state)->device("fake");
  const auto refused = [&](const Lengths& shape) {
    return message_of(ErrorCode::invalid_argument, [&] { Array::empty(device, tack::f32, shape); });
  };
  CHECK(refused({-1}) == "The shape (-1,) has a negative length.");
  CHECK(refused({2, -3}) == "The shape (2, -3) has a negative length.");
  CHECK(refused({1, 1, 1, 1, 1, 1, 1, 1, 1}) == "The shape (1, 1, 1, 1, 1, 1, 1, 1, 1) has 9 dimensions; an array has at most 8.");
  CHECK(refused({huge}) == "An array of tack.f32 with the shape (9223372036854775807,) has more than 2^63 - 1 bytes.");
  CHECK(refused({std::int64_t{1} << 32, std::int64_t{1} << 32}).find("more than 2^63 - 1 bytes") != std::string::npos);
  CHECK(refused({0, huge, huge}).find("more than 2^63 - 1 bytes") != std::string::npos);
  CHECK(message_of(ErrorCode::invalid_argument, [&] {
          Array::empty(device, {tack::TypeCode::float_, 16}, Lengths{1});
        }).find("element type") != std::string::npos);
  CHECK(message_of(ErrorCode::out_of_memory, [&] {
          Array::empty(device, tack::u8, Lengths{std::int64_t{1} << 50});
        }).find("Allocating 1.0 PiB on 'fake:0' failed") == 0);
  CHECK(state.allocated == 0);
}

TEST_CASE("views: bounds, strides, alignment") {
  FakeState state;
  const auto device = fake_runtime(state)->device("fake");
  const auto buffer = Buffer::allocate(device, 100);
  const auto view = [&](const Lengths& shape, const Lengths& strides, std::int64_t offset, tack::DType type = tack::i32) {
    return Array::view(buffer, type, shape, strides, offset, false);
  };
  const auto refused = [&](const Lengths& shape, const Lengths& strides, std::int64_t offset, tack::DType type = tack::i32) {
    const std::string message = message_of(ErrorCode::invalid_argument, [&] { view(shape, strides, offset, type); });
    return !message.empty();
  };
  CHECK(view({25}, {4}, 0).data() == buffer->pointer());
  CHECK(refused({26}, {4}, 0));
  CHECK(refused({25}, {4}, 4));
  CHECK(refused({1}, {4}, -4));
  CHECK(refused({1}, {4}, 100));
  CHECK(view({0}, {4}, 100).size() == 0);
  CHECK(refused({0}, {4}, 101));
  CHECK(view({25}, {-4}, 96).stride(0) == -4);
  CHECK(refused({25}, {-4}, 92));
  CHECK(view({25, 1000}, {4, 0}, 0).size() == 25000);
  CHECK(refused({25}, {6}, 0));
  CHECK(refused({2}, {4, 4}, 0));
  CHECK(refused({2}, {huge - 3}, 0));
  CHECK(refused({huge / 4, 3}, {0, 0}, 0));       // too many elements
  CHECK(refused({huge / 8}, {4 - huge + 3}, 0));  // strides whose product overflows
  CHECK(refused({3, 3}, {huge - 3, huge - 3}, 0));
  CHECK(refused({1}, {4}, 2));  // misaligned
  CHECK(view({2}, {8}, 8, tack::f64).data() == static_cast<std::byte*>(buffer->pointer()) + 8);
  CHECK(refused({2}, {8}, 4, tack::f64));
  CHECK(view({2}, {12}, 4, {tack::TypeCode::float_, 32, 3}).size() == 2);  // a vector's alignment is its element's
  CHECK(message_of(ErrorCode::invalid_argument, [&] { view({26}, {4}, 0); }) ==
        "A view of tack.i32 with the shape (26,), strides (4,) and offset 0 leaves its buffer of 100 bytes.");
}

TEST_CASE("layouts and signatures") {
  FakeState state;
  const auto device = fake_runtime(state)->device("fake");
  const auto buffer = Buffer::allocate(device, 4096);
  const auto view = [&](const Lengths& shape, const Lengths& strides, std::int64_t offset = 0, bool read_only = false,
                        tack::DType type = tack::f32) { return Array::view(buffer, type, shape, strides, offset, read_only); };
  CHECK(view({3, 4}, {16, 4}).layout() == Layout::contiguous);
  CHECK(view({3, 4}, {32, 4}).layout() == Layout::inner);
  CHECK(view({3, 4}, {4, 16}).layout() == Layout::general);
  CHECK(view({4}, {8}).layout() == Layout::general);
  CHECK(view({4}, {-4}, 12).layout() == Layout::general);
  CHECK(view({4}, {0}).layout() == Layout::general);
  CHECK(view({1}, {400}).layout() == Layout::contiguous);
  CHECK(view({1, 4}, {400, 4}).layout() == Layout::contiguous);
  CHECK(view({3, 1}, {32, 400}).layout() == Layout::inner);
  CHECK(view({3, 0}, {400, 400}).layout() == Layout::contiguous);
  CHECK(view({}, {}).layout() == Layout::contiguous);

  std::vector<std::uint32_t> seen;
  for (const tack::DType type :
       {tack::f32, tack::f64, tack::i32, tack::u32, tack::i8, tack::u8, tack::DType{tack::TypeCode::float_, 32, 2}})
    for (const bool read_only : {false, true}) {
      seen.push_back(view({4}, {static_cast<std::int64_t>(type.size())}, 0, read_only, type).signature());
      seen.push_back(view({4}, {static_cast<std::int64_t>(type.size()) * 2}, 0, read_only, type).signature());
      seen.push_back(view({4, 4}, {256, static_cast<std::int64_t>(type.size())}, 0, read_only, type).signature());
      seen.push_back(view({1, 4}, {256, static_cast<std::int64_t>(type.size())}, 0, read_only, type).signature());
    }
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  CHECK(view({4}, {4}).signature() == view({7}, {4}, 4).signature());  // never a length or an address
  CHECK(Array::empty(device, tack::f32, Lengths{9}).signature() == view({7}, {4}).signature());
}

TEST_CASE("reading and writing any layout on any kind of memory, against the oracle") {
  const Devices devices;
  std::mt19937 random(7);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 600; ++round) {
    const auto& device = devices.all[static_cast<std::size_t>(round) % devices.all.size()];
    const std::size_t rank = static_cast<std::size_t>(pick(0, 5));
    Lengths shape(rank), strides(rank), host_strides(rank);
    // Strides of a permuted, gappy, partly reversed array; sometimes one dimension is broadcast.
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    std::int64_t extent = 4, host_extent = 4;
    for (const std::size_t d : order) {
      shape[d] = pick(1, 4);
      strides[d] = extent * (pick(0, 3) == 0 ? pick(1, 2) : 1);
      extent = strides[d] * shape[d];
      if (pick(0, 3) == 0) strides[d] = -strides[d];
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t d : order) {
      host_strides[d] = host_extent;
      host_extent *= shape[d];
      if (pick(0, 3) == 0) host_strides[d] = -host_strides[d];
    }
    const bool broadcast = rank > 0 && pick(0, 4) == 0;
    if (broadcast) strides[static_cast<std::size_t>(pick(0, static_cast<int>(rank) - 1))] = 0;
    const tack::ByteRange range = tack::byte_range(shape, strides, 4);
    const tack::ByteRange host_range = tack::byte_range(shape, host_strides, 4);

    // The device's memory is known first, so that what must survive can be compared.
    const std::int64_t total = range.high - range.low + 16;
    Array whole = counting(device, {total / 4});
    std::vector<std::int32_t> expected = values(whole);
    const Array view = Array::view(whole.buffer(), tack::i32, shape, strides, 8 - range.low, false);
    std::vector<std::int32_t> host(static_cast<std::size_t>((host_range.high - host_range.low) / 4));
    std::byte* const origin = reinterpret_cast<std::byte*>(host.data()) - host_range.low;
    const auto device_offsets = offsets(shape, strides);
    const auto host_offsets = offsets(shape, host_strides);
    const auto device_index = [&](std::size_t i) { return static_cast<std::size_t>((8 - range.low + device_offsets[i]) / 4); };
    const auto host_index = [&](std::size_t i) { return static_cast<std::size_t>((host_offsets[i] - host_range.low) / 4); };

    view.read(origin, host_strides);
    for (std::size_t i = 0; i < device_offsets.size(); ++i) REQUIRE(host[host_index(i)] == expected[device_index(i)]);
    if (broadcast) continue;
    for (std::int32_t& value : host) value = 1000 + pick(0, 1000);
    view.write(origin, host_strides);
    for (std::size_t i = 0; i < device_offsets.size(); ++i) expected[device_index(i)] = host[host_index(i)];
    REQUIRE(values(whole) == expected);
    const std::int32_t five = 5;
    view.fill(&five);
    for (std::size_t i = 0; i < device_offsets.size(); ++i) expected[device_index(i)] = 5;
    REQUIRE(values(whole) == expected);
  }
}

TEST_CASE("elements of all sizes, and host memory that is not aligned") {
  const Devices devices;
  for (const auto& device : devices.all)
    for (const tack::DType type : {tack::u8, tack::i16, tack::f32, tack::f64, tack::DType{tack::TypeCode::float_, 32, 3}}) {
      const auto item = static_cast<std::int64_t>(type.size());
      const auto buffer = Buffer::allocate(device, static_cast<std::size_t>(item * 20));
      const Array every_second = Array::view(buffer, type, Lengths{10}, Lengths{2 * item}, 0, false);
      std::vector<std::uint8_t> bytes(static_cast<std::size_t>(item * 10 + 1));
      std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
      every_second.write(bytes.data() + 1, Lengths{item});
      std::vector<std::uint8_t> back(bytes.size());
      every_second.read(back.data() + 1, Lengths{item});
      CHECK(std::equal(bytes.begin() + 1, bytes.end(), back.begin() + 1));
      const Array whole = Array::view(buffer, type, Lengths{20}, Lengths{item}, 0, false);
      whole.fill(bytes.data());
      every_second.read(back.data() + 1, Lengths{item});
      for (std::size_t i = 0; i < 10; ++i)
        CHECK(std::equal(bytes.begin(), bytes.begin() + item, back.begin() + 1 + static_cast<std::ptrdiff_t>(i) * item));
    }
}

TEST_CASE("copies between all kinds of devices and layouts") {
  Devices devices;
  for (std::size_t i = 0; i < devices.all.size(); ++i)
    for (std::size_t j = 0; j < devices.all.size(); ++j) {
      CAPTURE(i);
      CAPTURE(j);
      const auto& from = devices.all[i];
      const auto& to = devices.all[j];
      const Array source = counting(from, {4, 6});
      const Array transposed = Array::view(source.buffer(), tack::i32, Lengths{6, 4}, Lengths{4, 24}, 0, false);
      Array dense_target = Array::empty(to, tack::i32, Lengths{4, 6});
      dense_target.copy_from(source);
      CHECK(values(dense_target) == values(source));
      Array turned = Array::empty(to, tack::i32, Lengths{6, 4});
      turned.copy_from(transposed);
      CHECK(values(turned) == values(transposed));
      Array wide = counting(to, {6, 8});
      Array half = Array::view(wide.buffer(), tack::i32, Lengths{6, 4}, Lengths{32, -8}, 24, false);
      half.copy_from(transposed);
      CHECK(values(half) == values(transposed));
      CHECK(values(wide)[1] == 1);  // between the elements nothing changes
    }
}

TEST_CASE("overlapping copies are as if all were read first") {
  const Devices devices;
  for (const auto& device : devices.all) {
    const Array a = counting(device, {10});
    const Array low = Array::view(a.buffer(), tack::i32, Lengths{8}, Lengths{4}, 0, false);
    const Array high = Array::view(a.buffer(), tack::i32, Lengths{8}, Lengths{4}, 8, false);
    high.copy_from(low);
    CHECK(values(a) == std::vector<std::int32_t>{0, 1, 0, 1, 2, 3, 4, 5, 6, 7});
    low.copy_from(high);
    CHECK(values(a) == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 6, 7});
    const Array reversed = Array::view(a.buffer(), tack::i32, Lengths{10}, Lengths{-4}, 36, false);
    a.copy_from(reversed);
    CHECK(values(a) == std::vector<std::int32_t>{7, 6, 7, 6, 5, 4, 3, 2, 1, 0});
    a.copy_from(a);
    CHECK(values(a)[0] == 7);
  }
}

TEST_CASE("what copies refuse") {
  FakeState state;
  const auto device = fake_runtime(state)->device("fake");
  const Array a = counting(device, {4});
  const auto refused = [&](const auto& body) { return message_of(ErrorCode::invalid_argument, body); };
  CHECK(refused([&] { a.copy_from(Array::empty(device, tack::f32, Lengths{4})); }) ==
        "Elements of tack.f32 cannot be copied to an array of tack.i32; convert them first.");
  CHECK(refused([&] { a.copy_from(Array::empty(device, tack::i32, Lengths{5})); }) ==
        "The shapes (5,) and (4,) of a copy's two arrays differ.");
  CHECK(refused([&] { a.copy_from(Array::empty(device, tack::i32, Lengths{4, 1})); }) ==
        "The shapes (4, 1) and (4,) of a copy's two arrays differ.");
  const Array fixed = Array::view(a.buffer(), tack::i32, Lengths{4}, Lengths{4}, 0, true);
  const std::string read_only = "An array of tack.i32 with the shape (4,) is read-only; write to a copy of it.";
  CHECK(refused([&] { fixed.copy_from(counting(device, {4})); }) == read_only);
  CHECK(refused([&] { fixed.fill("0000"); }) == read_only);
  std::int32_t numbers[4] = {};
  CHECK(refused([&] { fixed.write(numbers, Lengths{4}); }) == read_only);
  fixed.read(numbers, Lengths{4});
  CHECK(numbers[3] == 3);
  CHECK(!refused([&] { a.read(numbers, Lengths{4, 4}); }).empty());
  CHECK(!refused([&] { a.write(numbers, Lengths{}); }).empty());
}

TEST_CASE("host access to a queued device's memory waits for the queue") {
  FakeState state;
  state.host_addressable = true;
  const auto device = fake_runtime(state)->device("fake");
  const Array a = counting(device, {4, 4});
  const Array column = Array::view(a.buffer(), tack::i32, Lengths{4}, Lengths{16}, 0, false);
  const int before = state.synchronizations;
  CHECK(values(column) == std::vector<std::int32_t>{0, 4, 8, 12});
  CHECK(state.synchronizations == before + 1);
}

TEST_CASE("buffers: memory of others is released with the last view, and a failing owner is logged") {
  FakeState state;
  state.host_addressable = true;
  const auto runtime = fake_runtime(state);
  const auto device = runtime->device("fake");
  std::vector<std::string> logged;
  runtime->set_log_sink([&](tack::LogLevel, std::string_view message) { logged.emplace_back(message); });
  alignas(8) std::int32_t numbers[4] = {1, 2, 3, 4};
  int released = 0;
  {
    auto buffer = Buffer::wrap(device, numbers, sizeof numbers, [&] { ++released; }, true);
    CHECK(buffer->shared());
    const Array a = Array::view(buffer, tack::i32, Lengths{4}, Lengths{4}, 0, false);
    const Array b = Array::view(buffer, tack::i32, Lengths{2}, Lengths{8}, 4, false);
    buffer.reset();
    CHECK(values(b) == std::vector<std::int32_t>{2, 4});
    CHECK(released == 0);
  }
  CHECK(released == 1);
  Buffer::wrap(device, numbers, sizeof numbers, [] { throw std::runtime_error("gone"); }, false).reset();
  REQUIRE(logged.size() == 1);
  CHECK(logged[0] == "The owner of wrapped memory failed to release it: gone");
  CHECK(!message_of(ErrorCode::invalid_argument, [&] { Buffer::wrap(device, nullptr, 4, {}, false); }).empty());
  auto plain = Buffer::allocate(device, 10);
  CHECK(!plain->shared());
  plain->mark_shared();
  CHECK(plain->shared());
  CHECK(device->memory().in_use == 64);
  plain.reset();
  CHECK(device->memory().in_use == 0);
  CHECK(device->memory().cached == 64);
  CHECK(device->trim() == 64);
}

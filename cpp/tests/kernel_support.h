// kernel_support.h -- what tests of launching share: kernels made by hand, and a device of their own that remembers its launches.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "error_support.h"
#include "fake_backend.h"

namespace tack::test {

using Lengths = std::vector<std::int64_t>;
using Words = std::vector<std::uint64_t>;
using Kind = ArgumentSpec::Kind;

inline ArgumentSpec array_spec(const std::string& name, DType type = tack::f32, std::uint8_t rank = 1, Layout layout = Layout::contiguous) {
  ArgumentSpec spec;
  spec.name = name;
  spec.dtype = type;
  spec.rank = rank;
  spec.layout = layout;
  spec.written = true;
  return spec;
}
inline ArgumentSpec scalar_spec(const std::string& name, Kind kind, DType type = tack::i64) {
  ArgumentSpec spec;
  spec.name = name;
  spec.kind = kind;
  spec.dtype = type;
  return spec;
}
inline Extent constant(std::int64_t value) { return {{ExtentOp::constant, 0, 0, value}}; }
inline Extent shape(std::uint16_t arg, std::uint8_t dim) { return {{ExtentOp::shape, dim, arg, 0}}; }
inline Extent scalar(std::uint16_t arg) { return {{ExtentOp::scalar, 0, arg, 0}}; }
inline Extent sequence(std::uint16_t depth) { return {{ExtentOp::sequence, 0, depth, 0}}; }

inline Step launch(std::uint32_t entry, std::vector<Extent> stop) {
  Step step;
  step.entry = entry;
  step.stop = std::move(stop);
  return step;
}
inline Step launch(std::uint32_t entry, std::vector<Extent> start, std::vector<Extent> stop, std::vector<Extent> by) {
  Step step = launch(entry, std::move(stop));
  step.start = std::move(start);
  step.step = std::move(by);
  return step;
}
inline Step begin(Extent start, Extent stop, Extent by, std::uint32_t match) {
  Step step;
  step.kind = Step::Kind::sequence_begin;
  step.start = {std::move(start)};
  step.stop = {std::move(stop)};
  step.step = {std::move(by)};
  step.match = match;
  return step;
}
inline Step end(std::uint32_t match) {
  Step step;
  step.kind = Step::Kind::sequence_end;
  step.match = match;
  return step;
}

inline KernelSource source_of(std::vector<ArgumentSpec> arguments, std::vector<std::vector<ParamSlot>> entries, std::vector<Step> steps,
                              std::uint8_t rank = 1) {
  KernelSource source;
  source.name = "k";
  source.target = "fake";
  source.arch = "fake_1";
  source.text = "text";
  source.arguments = std::move(arguments);
  for (std::vector<ParamSlot>& params : entries)
    source.entries.push_back({"k_" + std::to_string(source.entries.size()), std::move(params), rank, -1.0});
  source.steps = std::move(steps);
  return source;
}

/// A device of its own for a test, and the launches that reached it.
struct Bench {
  FakeState state;
  std::shared_ptr<tack::Device> device;
  explicit Bench(bool queued = true, std::uint64_t limit = 0) {
    state.queued = queued;
    state.host_addressable = !queued;
    state.max_iterations = limit;
    device = fake_runtime(state)->device("fake");
  }
  std::shared_ptr<tack::Kernel> build(const KernelSource& source) { return device->build(source, {}); }
  Array array(const Lengths& lengths, DType type = tack::f32) { return Array::empty(device, type, lengths); }
  const FakeState::Launch& last() { return state.launches.back(); }
};

}  // namespace tack::test

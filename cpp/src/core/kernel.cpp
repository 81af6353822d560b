// core/kernel.cpp -- Kernel: checks arguments, walks the schedule, launches.
#include "tack/kernel.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "core/allocator.h"
#include "core/kernel_plan.h"
#include "core/registry.h"
#include "core/text.h"

namespace tack {

namespace {

constexpr std::size_t inline_scratch = 1024;  // bytes of scratch that lie on the stack, where the device can use that

using Kind = ArgumentSpec::Kind;

/// A kernel's scratch cells for one call, zeroed: on the stack where they are few and the device can use it, else the device's memory.
class Scratch {
 public:
  Scratch(Device& device, std::size_t bytes, bool on_stack) : device_(device) {
    if (bytes == 0) return;
    if (on_stack && bytes <= inline_scratch) {
      pointer_ = std::memset(cells_, 0, bytes);
      return;
    }
    block_ = device.queue().attributed([&] { return device.allocator().allocate(bytes); });
    pointer_ = block_.pointer;
    constexpr std::byte zero{};
    try {
      device.queue().fill(pointer_, &zero, 1, bytes);
    } catch (...) {
      device.allocator().free(block_);
      throw;
    }
  }
  ~Scratch() {
    if (block_.pointer != nullptr) device_.allocator().free(block_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* pointer() const noexcept { return pointer_; }
  /// Waits for what writes it.
  void read(void* destination, std::int64_t offset, std::size_t bytes) const {
    const auto* source = static_cast<const std::byte*>(pointer_) + offset;
    if (block_.pointer == nullptr)
      std::memcpy(destination, source, bytes);
    else
      device_.queue().download(destination, source, bytes);
  }

 private:
  Device& device_;
  Allocator::Block block_;
  void* pointer_ = nullptr;
  alignas(64) std::byte cells_[inline_scratch];
};

std::string parameter_text(const std::string& kernel, const std::string& parameter) {
  return text("Kernel '", kernel, "': parameter '", parameter, "' ");
}

/// A scratch cell's bits as a result.
Result result_of(DType type, std::uint64_t bits) noexcept {
  Result result;
  result.type = type;
  result.present = true;
  result.u = bits;
  if (type == f32) result.f = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  if (type.code == TypeCode::bool_) result.u = bits != 0 ? 1 : 0;
  if (type.code == TypeCode::int_) {
    const int unused = 64 - type.bits;
    result.i = static_cast<std::int64_t>(bits << unused) >> unused;
  }
  return result;
}

/// ArgumentSpec::texture, for messages.
std::string reading_text(std::uint8_t reading) {
  constexpr std::array<std::string_view, 2> interps{"linear", "nearest"};
  constexpr std::array<std::string_view, 3> wraps{"clamp", "repeat", "mirror"};
  if (reading == 0) return "an array";
  const std::size_t how = reading - std::size_t{1};
  return text("a texture (interp=", interps[how / 3 % 2], ", wrap=", wraps[how % 3],
              how >= 6 ? ", sampled by hardware)" : ", sampled in software)");
}

/// Whether a scalar is what the parameter will be read as. Integers of either sign's type have the same bits where both hold them.
bool fits(const ArgumentSpec& spec, const Argument& argument) noexcept {
  Kind kind = spec.kind;
  if (kind == Kind::strong)
    kind = spec.dtype.is_float() ? Kind::floating : spec.dtype.code == TypeCode::uint ? Kind::unsigned_ : Kind::integer;
  if (argument.kind == kind) return true;
  const bool integers =
      (kind == Kind::integer && argument.kind == Kind::unsigned_) || (kind == Kind::unsigned_ && argument.kind == Kind::integer);
  return integers && argument.i >= 0;
}

std::string wanted_text(const ArgumentSpec& spec) {
  static constexpr std::array<std::string_view, 6> names{"an array", "an int", "an unsigned int", "a float", "a bool", "None"};
  if (spec.kind == Kind::strong) return text("a tack.", name_of(spec.dtype));
  return std::string(names[static_cast<std::size_t>(spec.kind)]);
}

std::string given_text(const Argument& argument) {
  static constexpr std::array<std::string_view, 6> names{"an array", "an int", "an int", "a float", "a bool", "None"};
  if (argument.kind == Kind::integer && argument.i < 0) return text(argument.i);
  if (argument.kind == Kind::unsigned_ && argument.i < 0) return text(argument.u);
  return std::string(names[static_cast<std::size_t>(argument.kind)]);
}

constexpr std::array<std::string_view, 3> layout_names{"contiguous", "contiguous in its last dimension", "of any layout"};

}  // namespace

/// One call: the walk over the schedule, once to check all ranges and once to run.
class KernelCall {
 public:
  KernelCall(const Kernel& kernel, const Kernel::Plan& plan, std::span<const Argument> arguments) noexcept
      : kernel_(kernel), plan_(plan), arguments_(arguments) {}

  /// Calls `visit(step, sequences, ranges)` for every launch in order, ranges evaluated and checked. `all` false: a sequence in which
  /// nothing varies is walked once instead of step by step, which is enough for checking.
  template <class Visit>
  void walk(bool all, Visit visit) const {
    struct Loop {
      std::uint64_t left;
      std::int64_t step;
    };
    std::array<std::int64_t, max_extent_depth> sequences;
    std::array<Loop, max_extent_depth> loops;
    std::size_t depth = 0;
    Ranges ranges;
    for (std::size_t at = 0; at < plan_.steps.size();) {
      const Kernel::Plan::StepPlan& step = plan_.steps[at];
      switch (step.kind) {
        case Step::Kind::launch:
          plan_.evaluate_checked(step, arguments_, sequences.data(), ranges);
          if (ranges.iterations != 0) visit(step, sequences.data(), ranges);
          ++at;
          break;
        case Step::Kind::check:
          plan_.evaluate_checked(step, arguments_, sequences.data(), ranges);
          plan_.check_spans(step, ranges);
          ++at;
          break;
        case Step::Kind::sequence_begin: {
          static_cast<void>(plan_.evaluate(step, arguments_, sequences.data(), ranges));
          const std::int64_t count = ranges.iterations == -1 ? ranges.extents[0] : ranges.iterations;
          if (count == 0) {
            at = step.match + 1;
            break;
          }
          sequences[depth] = ranges.start[0];
          loops[depth] = {all || step.varying ? static_cast<std::uint64_t>(count) - 1 : 0, ranges.step[0]};
          ++depth;
          ++at;
          break;
        }
        case Step::Kind::sequence_end: {
          Loop& loop = loops[depth - 1];
          if (loop.left == 0) {
            --depth;
            ++at;
            break;
          }
          --loop.left;
          sequences[depth - 1] =
              static_cast<std::int64_t>(static_cast<std::uint64_t>(sequences[depth - 1]) + static_cast<std::uint64_t>(loop.step));
          at = step.match + 1;
          break;
        }
      }
    }
  }

  void launch(const Kernel::Plan::StepPlan& step, const std::int64_t* sequences, const Ranges& ranges, const Side& side) const {
    if (plan_.max_words <= inline_words) [[likely]] {
      std::array<std::uint64_t, inline_words> words;
      launch(step, sequences, ranges, side, words.data());
      return;
    }
    std::vector<std::uint64_t> words(plan_.max_words);
    launch(step, sequences, ranges, side, words.data());
  }

  /// Whether another library sees memory of an argument.
  bool is_shared() const noexcept {
    return std::any_of(plan_.arrays.begin(), plan_.arrays.end(),
                       [this](std::uint16_t position) { return arguments_[position].array->buffer()->shared(); });
  }
  /// Memory that another library sees is finished when the call returns.
  void finish_shared() const {
    if (plan_.queued && is_shared()) kernel_.device()->synchronize();
  }

 private:
  void launch(const Kernel::Plan::StepPlan& step, const std::int64_t* sequences, const Ranges& ranges, const Side& side,
              std::uint64_t* words) const {
    plan_.fill(step.entry, arguments_, sequences, ranges, side, words);
    LaunchCommand command;
    command.module = &kernel_.module();
    command.entry = step.entry;
    command.words = {words, plan_.entries[step.entry].size()};
    command.extents = {ranges.extents.data(), step.rank};
    command.iterations = ranges.iterations;
    command.shared = !step.alone || is_shared();
    try {
      kernel_.device()->queue().launch(command);
    } catch (const Error& error) {
      const std::string context = text("Kernel '", plan_.source.name, '\'');
      if (error.fields().queued || std::string_view(error.what()).find(context) != std::string_view::npos) throw;
      throw error.with_context(context);
    }
  }

  const Kernel& kernel_;
  const Kernel::Plan& plan_;
  std::span<const Argument> arguments_;
};

Kernel::Kernel(std::shared_ptr<Device> device, KernelSource source, std::unique_ptr<ModuleImpl> module, bool from_cache)
    : device_(std::move(device)), source_(std::move(source)), module_(std::move(module)), from_cache_(from_cache) {
  plan_ = std::make_unique<const Plan>(source_, device_->capabilities(), *module_, title_of(device_->type()));
}

Kernel::~Kernel() { device_->queue().retire(std::move(module_)); }

std::vector<EntryStatistics> Kernel::statistics() const { return module_->statistics(); }

bool Kernel::has_atomics() const noexcept { return plan_->alone; }

bool Kernel::launch_unchecked_if_short(std::span<const Argument> arguments) const {
  const Plan& plan = *plan_;
  if (plan.direct.run == nullptr || arguments.size() != source_.arguments.size()) return false;
  plan.check_limits(arguments);
  const Plan::StepPlan& step = plan.steps.front();
  Ranges ranges;
  plan.evaluate_checked(step, arguments, nullptr, ranges);
  if (ranges.iterations == 0) return true;
  std::array<std::uint64_t, inline_words> words;
  plan.fill(step.entry, arguments, nullptr, ranges, {}, words.data());
  return plan.direct.run(plan.direct.context, words.data(), ranges.iterations);
}

Result Kernel::launch(std::span<const Argument> arguments) const {
  check_kinds(arguments);
  return launch_unchecked(arguments);
}

Result Kernel::launch_unchecked(std::span<const Argument> arguments) const {
  const Plan& plan = *plan_;
  if (arguments.size() != source_.arguments.size()) [[unlikely]]
    check_count(arguments.size());
  plan.check_limits(arguments);
  const KernelCall call(*this, plan, arguments);
  Result result;
  if (plan.simple) [[likely]] {
    Ranges ranges;
    plan.evaluate_checked(plan.steps.front(), arguments, nullptr, ranges);
    if (ranges.iterations == 0) return result;
    call.launch(plan.steps.front(), nullptr, ranges, {});
    call.finish_shared();
    return result;
  }
  // All that can be refused is refused before anything runs.
  call.walk(false, [](const Plan::StepPlan&, const std::int64_t*, const Ranges&) {});
  const Scratch scratch(*device_, static_cast<std::size_t>(source_.scratch_bytes), plan.stack_scratch);
  std::optional<Records> records;
  if (plan.records) records.emplace(*device_, plan.records);
  const Side side{scratch.pointer(), records ? records->pointer() : nullptr};
  call.walk(true, [&](const Plan::StepPlan& step, const std::int64_t* sequences, const Ranges& ranges) {
    call.launch(step, sequences, ranges, side);
  });
  if (records) device_->queue().reported(std::move(*records));
  if (source_.result_offset >= 0 && scratch.pointer() != nullptr) {
    std::uint64_t bits = 0;
    static_assert(std::endian::native == std::endian::little, "scratch cells narrower than 64 bits are read into the low bits");
    scratch.read(&bits, source_.result_offset, source_.result_type.size());
    result = result_of(source_.result_type, bits);
    device_->queue().settle();
  }
  call.finish_shared();
  return result;
}

bool Kernel::waits(std::span<const Argument> arguments) const noexcept {
  const Plan& plan = *plan_;
  if (!plan.queued || arguments.size() != source_.arguments.size()) return false;
  if (!plan.simple && (source_.result_offset >= 0 || plan.records)) return true;
  const auto is_sequence = [](const Plan::StepPlan& step) { return step.kind == Step::Kind::sequence_begin; };
  return (!plan.simple && std::any_of(plan.steps.begin(), plan.steps.end(), is_sequence)) || KernelCall(*this, plan, arguments).is_shared();
}

double Kernel::predict(std::span<const Argument> arguments) const noexcept {
  const Plan& plan = *plan_;
  Ranges ranges;
  if (arguments.size() != source_.arguments.size()) return 0.0;
  if (plan.simple) [[likely]] {
    const Plan::StepPlan& step = plan.steps.front();
    return plan.evaluate(step, arguments, nullptr, ranges) && ranges.iterations != 0 ? module_->predict(step.entry, ranges.iterations)
                                                                                     : 0.0;
  }
  // A sequence counts as its middle step, as often as it runs.
  std::array<std::int64_t, max_extent_depth> sequences;
  std::array<double, max_extent_depth + 1> times;
  times[0] = 1.0;
  std::size_t depth = 0;
  double sum = 0.0;
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    const Plan::StepPlan& step = plan.steps[at];
    if (step.kind == Step::Kind::sequence_end) {
      --depth;
      continue;
    }
    if (step.kind == Step::Kind::check) continue;
    const bool fits = plan.evaluate(step, arguments, sequences.data(), ranges);
    if (step.kind == Step::Kind::launch) {
      if (fits && ranges.iterations != 0) sum += times[depth] * module_->predict(step.entry, ranges.iterations);
      continue;
    }
    const std::int64_t count = ranges.extents[0];
    if (count == 0) {
      at = step.match;
      continue;
    }
    const auto middle = static_cast<std::uint64_t>(count / 2) * static_cast<std::uint64_t>(ranges.step[0]);
    sequences[depth] = static_cast<std::int64_t>(static_cast<std::uint64_t>(ranges.start[0]) + middle);
    times[depth + 1] = times[depth] * static_cast<double>(count);
    ++depth;
  }
  return sum;
}

void Kernel::check_count(std::size_t given) const {
  const std::size_t wanted = source_.arguments.size();
  if (given == wanted) return;
  throw Error(ErrorCode::type_mismatch, text("Kernel '", source_.name, "' takes ", wanted, wanted == 1 ? " argument, " : " arguments, ",
                                             given, given == 1 ? " was given." : " were given."));
}

void Kernel::check(std::span<const Argument> arguments) const {
  check_kinds(arguments);
  plan_->check_limits(arguments);
}

void Kernel::check_kinds(std::span<const Argument> arguments) const {
  check_count(arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentSpec& spec = source_.arguments[i];
    const Array* array = arguments[i].array;
    const auto refuse = [&](ErrorCode code, const std::string& problem) {
      throw Error(code, parameter_text(source_.name, spec.name) + problem);
    };
    if (spec.kind != Kind::array) {
      if (!fits(spec, arguments[i]))
        refuse(ErrorCode::type_mismatch, text("is ", wanted_text(spec), ", ", given_text(arguments[i]), " was given."));
      continue;
    }
    if (array == nullptr || !array->buffer()) {
      refuse(ErrorCode::type_mismatch, text("is an array, ", array == nullptr ? given_text(arguments[i]) : "none", " was given."));
      continue;
    }
    if (const std::uint8_t reading = arguments[i].texture == nullptr ? std::uint8_t{0} : arguments[i].texture->reading();
        reading != spec.texture)
      refuse(ErrorCode::type_mismatch, text("is ", reading_text(spec.texture), ", ", reading_text(reading), " was given."));
    if (array->dtype() != spec.dtype)
      refuse(ErrorCode::type_mismatch,
             text("has dtype tack.", name_of(array->dtype()), "; this kernel was built for tack.", name_of(spec.dtype), '.'));
    if (array->rank() != spec.rank)
      refuse(ErrorCode::type_mismatch,
             text("has ", array->rank(), " dimensions; this kernel was built for ", std::uint32_t{spec.rank}, '.'));
    if (array->layout() > spec.layout)
      refuse(ErrorCode::type_mismatch,
             text("must be ", layout_names[static_cast<std::size_t>(spec.layout)], "; make a contiguous copy of it."));
    if (array->read_only() && spec.written) refuse(ErrorCode::invalid_argument, "is read-only, and the kernel writes it; give it a copy.");
    if (array->read_only() && !spec.read_only)
      refuse(ErrorCode::type_mismatch, "is read-only; this kernel was built for a writable array.");
    if (!device_->can_address(array->device()))
      refuse(ErrorCode::invalid_argument,
             text("is on '", array->device().name(), "', which '", device_->name(), "' cannot address; copy it there first."));
  }
}

}  // namespace tack

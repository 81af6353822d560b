// core/kernel_plan.cpp -- makes the plan of a kernel, evaluates its ranges and fills its parameter blocks.
#include "core/kernel_plan.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "core/checked_arithmetic.h"
#include "core/text.h"

namespace tack {

namespace {

using Kind = ArgumentSpec::Kind;

constexpr std::int64_t int64_min = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t int64_max = std::numeric_limits<std::int64_t>::max();

constexpr std::uint64_t bits(std::int64_t value) noexcept { return static_cast<std::uint64_t>(value); }
constexpr std::int64_t wrapped(std::uint64_t value) noexcept { return static_cast<std::int64_t>(value); }

// Python's floor division and remainder, with x // 0 = x % 0 = 0 and MIN // -1 wrapping.
std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept {
  if (b == 0) return 0;
  if (b == -1) return wrapped(0 - bits(a));
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}
std::int64_t floor_mod(std::int64_t a, std::int64_t b) noexcept {
  if (b == 0 || b == -1) return 0;
  const std::int64_t remainder = a % b;
  return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

std::int64_t shift_left(std::int64_t a, std::int64_t count) noexcept { return count < 0 || count > 63 ? 0 : wrapped(bits(a) << count); }
std::int64_t shift_right(std::int64_t a, std::int64_t count) noexcept { return a >> (count < 0 || count > 63 ? 63 : count); }

/// Exact modulo 2^64; 0 for a negative exponent.
std::int64_t power(std::int64_t base, std::int64_t exponent) noexcept {
  if (exponent < 0) return 0;
  std::uint64_t result = 1, square = bits(base);
  for (; exponent != 0; exponent >>= 1, square *= square)
    if ((exponent & 1) != 0) result *= square;
  return wrapped(result);
}

std::int64_t apply(ExtentOp op, std::int64_t a, std::int64_t b) noexcept {
  switch (op) {
    case ExtentOp::add:
      return wrapped(bits(a) + bits(b));
    case ExtentOp::sub:
      return wrapped(bits(a) - bits(b));
    case ExtentOp::mul:
      return wrapped(bits(a) * bits(b));
    case ExtentOp::floordiv:
      return floor_div(a, b);
    case ExtentOp::mod:
      return floor_mod(a, b);
    case ExtentOp::min:
      return std::min(a, b);
    case ExtentOp::max:
      return std::max(a, b);
    case ExtentOp::lt:
      return a < b ? 1 : 0;
    case ExtentOp::le:
      return a <= b ? 1 : 0;
    case ExtentOp::eq:
      return a == b ? 1 : 0;
    case ExtentOp::ne:
      return a != b ? 1 : 0;
    case ExtentOp::shl:
      return shift_left(a, b);
    case ExtentOp::shr:
      return shift_right(a, b);
    case ExtentOp::bit_and:
      return a & b;
    case ExtentOp::bit_or:
      return a | b;
    case ExtentOp::bit_xor:
      return a ^ b;
    case ExtentOp::pow:
      return power(a, b);
    default:
      return 0;  // the others take no two operands
  }
}

Value value_of(const Extent& extent) noexcept {
  Value value;
  value.program = &extent;
  value.kind = Value::Kind::program;
  if (extent.size() != 1) return value;
  const ExtentTerm& term = extent.front();
  value.dim = term.dim;
  value.arg = term.arg;
  value.number = term.value;
  if (term.op == ExtentOp::constant) value.kind = Value::Kind::constant;
  if (term.op == ExtentOp::shape) value.kind = Value::Kind::shape;
  if (term.op == ExtentOp::scalar) value.kind = Value::Kind::scalar;
  return value;
}

Value constant(std::int64_t number) noexcept {
  Value value;
  value.number = number;
  return value;
}

bool is_constant(const Value& value, std::int64_t number) noexcept { return value.kind == Value::Kind::constant && value.number == number; }

bool uses_sequence(const std::vector<Extent>& extents) noexcept {
  for (const Extent& extent : extents)
    for (const ExtentTerm& term : extent)
      if (term.op == ExtentOp::sequence) return true;
  return false;
}

inline std::int64_t number_of(const Value& value, std::span<const Argument> arguments, const std::int64_t* sequences) noexcept {
  switch (value.kind) {
    case Value::Kind::constant:
      return value.number;
    case Value::Kind::shape:
      return arguments[value.arg].array->shape(value.dim);
    case Value::Kind::scalar:
      return arguments[value.arg].i;
    case Value::Kind::program:
      break;
  }
  return evaluate(*value.program, arguments, sequences);
}

/// The limit of a launch of `entry`, which is the device's largest grid times the threads of the entry's groups; 0 is none. `launched`
/// false: of its loop, of which a group runs many iterations where the entry's are groups; it is held to what others are.
std::uint64_t max_iterations_of(const EntryPoint& entry, bool launched, const Capabilities& capabilities) noexcept {
  const std::uint64_t limit = capabilities.max_iterations;
  if (limit == 0 || capabilities.block == 0) return limit;
  const std::uint64_t group = entry.group == 0 ? capabilities.block : entry.group;
  const std::uint64_t groups = capabilities.max_groups == 0 ? limit / capabilities.block : std::min(capabilities.max_groups, limit / group);
  if (entry.whole_groups) return launched ? groups : limit;
  return group == capabilities.block ? limit : groups * group;
}

/// The dtype whose range it is, for messages; empty when it is none's.
struct NamedRange {
  std::string_view name;
  std::int64_t min, max;
  std::string_view shown;
};
constexpr std::array<NamedRange, 8> named_ranges{{
    {"i8", -128, 127, "-128 to 127"},
    {"u8", 0, 255, "0 to 255"},
    {"i16", -32768, 32767, "-32768 to 32767"},
    {"u16", 0, 65535, "0 to 65535"},
    {"i32", -2147483648LL, 2147483647LL, "-2147483648 to 2147483647"},
    {"u32", 0, 4294967295LL, "0 to 4294967295"},
    {"i64", int64_min, int64_max, "-9223372036854775808 to 9223372036854775807"},
    {"u64", 0, int64_max, "0 to 18446744073709551615"},
}};

std::string range_text(bool is_unsigned, std::int64_t min, std::int64_t max) {
  for (const NamedRange& range : named_ranges)  // of a dtype that an unsigned value meets, only the upper bound is left
    if ((is_unsigned || range.min == min) && range.max == max) return text("does not fit tack.", range.name, " (", range.shown, ')');
  return text("is not from ", min, " to ", max);
}

}  // namespace

std::int64_t evaluate(const Extent& program, std::span<const Argument> arguments, const std::int64_t* sequences) noexcept {
  std::array<std::int64_t, max_extent_depth> stack;
  std::size_t depth = 0;
  for (const ExtentTerm& term : program) {
    switch (term.op) {
      case ExtentOp::constant:
        stack[depth++] = term.value;
        break;
      case ExtentOp::shape:
        stack[depth++] = arguments[term.arg].array->shape(term.dim);
        break;
      case ExtentOp::scalar:
        stack[depth++] = arguments[term.arg].i;
        break;
      case ExtentOp::sequence:
        stack[depth++] = sequences[term.arg];
        break;
      case ExtentOp::neg:
        stack[depth - 1] = wrapped(0 - bits(stack[depth - 1]));
        break;
      case ExtentOp::popcount:
        stack[depth - 1] = std::popcount(bits(stack[depth - 1]));
        break;
      case ExtentOp::clz:
        stack[depth - 1] = std::countl_zero(bits(stack[depth - 1]));
        break;
      case ExtentOp::select:
        depth -= 2;
        stack[depth - 1] = stack[depth - 1] != 0 ? stack[depth] : stack[depth + 1];
        break;
      default:
        --depth;
        stack[depth - 1] = apply(term.op, stack[depth - 1], stack[depth]);
    }
  }
  return stack[0];
}

std::uint64_t range_count(std::int64_t start, std::int64_t stop, std::int64_t step) noexcept {
  if (step > 0 && start < stop) return (bits(stop) - bits(start) - 1) / bits(step) + 1;
  if (step < 0 && start > stop) return (bits(start) - bits(stop) - 1) / (0 - bits(step)) + 1;
  return 0;
}

Kernel::Plan::Plan(const KernelSource& kernel_source, const Capabilities& capabilities, ModuleImpl& module, std::string device_title)
    : source(kernel_source),
      title(std::move(device_title)),
      queued(capabilities.queued),
      stack_scratch(capabilities.host_addressable && !capabilities.queued) {
  for (std::size_t i = 0; i < source.arguments.size(); ++i) {
    const ArgumentSpec& argument = source.arguments[i];
    const auto position = static_cast<std::uint16_t>(i);
    if (argument.kind == Kind::array) arrays.push_back(position);
    const bool is_unsigned = argument.kind == Kind::unsigned_;
    if (!is_unsigned && argument.kind != Kind::integer) continue;
    if (argument.max != int64_max || argument.min != int64_min) limits.push_back({position, is_unsigned, argument.min, argument.max});
  }
  for (const EntryPoint& entry : source.entries) {
    std::vector<WordPlan>& words = entries.emplace_back();
    for (const ParamSlot& slot : entry.params) words.push_back(word_of(slot));
    max_words = std::max(max_words, words.size());
  }
  std::vector<std::size_t> open;
  for (const Step& step : source.steps) {
    StepPlan& plan = steps.emplace_back();
    plan.kind = step.kind;
    plan.entry = step.entry;
    plan.match = step.match;
    plan.rank = static_cast<std::uint8_t>(step.stop.size());
    for (std::size_t d = 0; d < step.stop.size(); ++d) {
      RangePlan& range = plan.ranges[d];
      range.start = step.start.empty() ? constant(0) : value_of(step.start[d]);
      range.stop = value_of(step.stop[d]);
      range.step = step.step.empty() ? constant(1) : value_of(step.step[d]);
      plan.unit = plan.unit && is_constant(range.start, 0) && is_constant(range.step, 1);
    }
    plan.alone = step.kind == Step::Kind::launch && !source.entries[step.entry].alone.empty();
    alone = alone || plan.alone;
    if (step.kind == Step::Kind::launch || step.kind == Step::Kind::check)
      plan.max_iterations = max_iterations_of(source.entries[step.entry], step.kind == Step::Kind::launch, capabilities);
    if (uses_sequence(step.start) || uses_sequence(step.stop) || uses_sequence(step.step))
      for (const std::size_t outer : open) steps[outer].varying = true;
    if (step.kind == Step::Kind::sequence_begin) open.push_back(steps.size() - 1);
    if (step.kind == Step::Kind::sequence_end) open.pop_back();
  }
  if (!source.sites.empty()) records = std::make_shared<const RecordTable>(source);
  simple = steps.size() == 1 && steps.front().kind == Step::Kind::launch && source.scratch_bytes == 0 && !records;
  if (simple && !queued && max_words <= inline_words) direct = module.direct(steps.front().entry);
}

Kernel::Plan::WordPlan Kernel::Plan::word_of(const ParamSlot& slot) const {
  WordPlan plan{Word::integer, slot.dim, slot.arg};
  switch (slot.kind) {
    case ParamKind::pointer:
      plan.word = Word::pointer;
      return plan;
    case ParamKind::shape:
      plan.word = Word::shape;
      return plan;
    case ParamKind::stride:
      plan.word = Word::stride;
      return plan;
    case ParamKind::extent:
      plan.word = Word::extent;
      return plan;
    case ParamKind::start:
      plan.word = Word::start;
      return plan;
    case ParamKind::step:
      plan.word = Word::step;
      return plan;
    case ParamKind::sequence:
      plan.word = Word::sequence;
      return plan;
    case ParamKind::scratch:
      plan.word = Word::scratch;
      return plan;
    case ParamKind::records:
      plan.word = Word::records;
      return plan;
    case ParamKind::texture:
      plan.word = Word::texture;
      return plan;
    case ParamKind::scalar:
      break;
  }
  const ArgumentSpec& argument = source.arguments[slot.arg];
  const bool strong = argument.kind == Kind::strong;
  const bool floating = argument.kind == Kind::floating || (strong && argument.dtype.is_float());
  const bool is_unsigned = argument.kind == Kind::unsigned_ || (strong && argument.dtype.code == TypeCode::uint);
  const bool wide = slot.type.bits == 64;
  switch (slot.type.code) {
    case TypeCode::float_:
      if (floating)
        plan.word = wide ? Word::f64_of_float : Word::f32_of_float;
      else if (is_unsigned)
        plan.word = wide ? Word::f64_of_unsigned : Word::f32_of_unsigned;
      else
        plan.word = wide ? Word::f64_of_signed : Word::f32_of_signed;
      break;
    case TypeCode::bool_:
      plan.word = Word::boolean;
      break;
    case TypeCode::int_:
      plan.word = wide ? Word::integer : Word::narrow_signed;
      break;
    case TypeCode::uint:
      plan.word = wide ? Word::integer : Word::narrow_unsigned;
      break;
  }
  if (plan.word == Word::narrow_signed || plan.word == Word::narrow_unsigned) plan.dim = static_cast<std::uint8_t>(64 - slot.type.bits);
  return plan;
}

bool Kernel::Plan::evaluate(const StepPlan& step, std::span<const Argument> arguments, const std::int64_t* sequences,
                            Ranges& ranges) const noexcept {
  if (step.unit && step.rank == 1) [[likely]] {
    ranges.start[0] = 0;
    ranges.step[0] = 1;
    ranges.extents[0] = ranges.iterations = std::max<std::int64_t>(number_of(step.ranges[0].stop, arguments, sequences), 0);
    return true;
  }
  std::int64_t iterations = 1;
  bool fits = true;
  bool empty = false;
  for (std::size_t d = 0; d < step.rank; ++d) {
    const RangePlan& range = step.ranges[d];
    const std::int64_t stop = number_of(range.stop, arguments, sequences);
    std::int64_t count = std::max<std::int64_t>(stop, 0);
    if (step.unit) {
      ranges.start[d] = 0;
      ranges.step[d] = 1;
    } else {
      ranges.start[d] = number_of(range.start, arguments, sequences);
      ranges.step[d] = number_of(range.step, arguments, sequences);
      const std::uint64_t wide = range_count(ranges.start[d], stop, ranges.step[d]);
      fits = fits && wide <= bits(int64_max);
      count = wrapped(std::min(wide, bits(int64_max)));
    }
    ranges.extents[d] = count;
    empty = empty || count == 0;
    fits = !multiply_overflows(iterations, count, iterations) && fits;
  }
  ranges.iterations = empty ? 0 : fits ? iterations : -1;
  return empty || fits;
}

void Kernel::Plan::evaluate_checked(const StepPlan& step, std::span<const Argument> arguments, const std::int64_t* sequences,
                                    Ranges& ranges) const {
  const bool fits = evaluate(step, arguments, sequences, ranges);
  if (fits && (step.max_iterations == 0 || bits(ranges.iterations) <= step.max_iterations)) [[likely]]
    return;
  std::string count = fits ? text(ranges.iterations) : std::string();
  for (std::size_t d = 0; !fits && d < step.rank; ++d) count += text(d == 0 ? "" : " x ", ranges.extents[d]);
  const std::string limit = step.max_iterations == 0 ? std::string("2^63 - 1") : text(step.max_iterations);
  throw Error(ErrorCode::invalid_argument, text("Kernel '", source.name, "': ", count, " iterations; the limit on ", title, " is ", limit,
                                                ". Split the work across several calls."));
}

void Kernel::Plan::check_spans(const StepPlan& step, const Ranges& ranges) const {
  for (std::size_t d = 0; d < step.rank; ++d) {
    std::int64_t span = 0;
    if (!multiply_overflows(ranges.extents[d], ranges.step[d], span)) [[likely]]
      continue;
    throw Error(ErrorCode::invalid_argument,
                text("Kernel '", source.name, "': a loop with a reduction takes ", ranges.extents[d], " steps of ", ranges.step[d],
                     ", which is further than 2^63 - 1. Count from 0 and compute the index inside the loop."));
  }
}

void Kernel::Plan::check_limits(std::span<const Argument> arguments) const {
  for (const Limit& limit : limits) {
    const Argument& argument = arguments[limit.arg];
    const bool good = limit.is_unsigned ? argument.u <= bits(limit.max) : argument.i >= limit.min && argument.i <= limit.max;
    if (good) [[likely]]
      continue;
    const std::string value = limit.is_unsigned ? text(argument.u) : text(argument.i);
    throw Error(ErrorCode::overflow, text("Kernel '", source.name, "': argument '", source.arguments[limit.arg].name, "' is ", value,
                                          ", which ", range_text(limit.is_unsigned, limit.min, limit.max), '.'));
  }
}

void Kernel::Plan::fill(std::uint32_t entry, std::span<const Argument> arguments, const std::int64_t* sequences, const Ranges& ranges,
                        const Side& side, std::uint64_t* words) const noexcept {
  const auto low_bits = [](float value) { return std::uint64_t{std::bit_cast<std::uint32_t>(value)}; };
  for (const WordPlan& plan : entries[entry]) {
    const auto argument = [&]() -> const Argument& { return arguments[plan.arg]; };
    std::uint64_t word = 0;
    switch (plan.word) {
      case Word::pointer:
        word = reinterpret_cast<std::uintptr_t>(argument().array->data());
        break;
      case Word::shape:
        word = bits(argument().array->shape(plan.dim));
        break;
      case Word::stride:
        word = bits(argument().array->stride(plan.dim));
        break;
      case Word::extent:
        word = bits(ranges.extents[plan.dim]);
        break;
      case Word::start:
        word = bits(ranges.start[plan.dim]);
        break;
      case Word::step:
        word = bits(ranges.step[plan.dim]);
        break;
      case Word::sequence:
        word = bits(sequences[plan.arg]);
        break;
      case Word::scratch:
        word = reinterpret_cast<std::uintptr_t>(side.scratch);
        break;
      case Word::records:
        word = reinterpret_cast<std::uintptr_t>(side.records);
        break;
      case Word::texture:
        word = argument().texture->handle();
        break;
      case Word::integer:
        word = argument().u;
        break;
      case Word::narrow_signed:
        word = bits(wrapped(argument().u << plan.dim) >> plan.dim);
        break;
      case Word::narrow_unsigned:
        word = argument().u << plan.dim >> plan.dim;
        break;
      case Word::boolean:
        word = argument().u != 0 ? 1 : 0;
        break;
      case Word::f64_of_float:
        word = std::bit_cast<std::uint64_t>(argument().f);
        break;
      case Word::f32_of_float:
        word = low_bits(static_cast<float>(argument().f));
        break;
      case Word::f64_of_signed:
        word = std::bit_cast<std::uint64_t>(static_cast<double>(argument().i));
        break;
      case Word::f32_of_signed:
        word = low_bits(static_cast<float>(argument().i));
        break;
      case Word::f64_of_unsigned:
        word = std::bit_cast<std::uint64_t>(static_cast<double>(argument().u));
        break;
      case Word::f32_of_unsigned:
        word = low_bits(static_cast<float>(argument().u));
        break;
    }
    *words++ = word;
  }
}

}  // namespace tack

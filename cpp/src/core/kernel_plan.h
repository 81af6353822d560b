// core/kernel_plan.h -- a kernel's schedule made ready: what launches evaluate and copy, decided once when the kernel is made.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend.h"
#include "core/kernel_source_io.h"
#include "core/records.h"
#include "tack/kernel.hpp"

namespace tack {

inline constexpr std::size_t max_dims = 4;
inline constexpr std::size_t inline_words = 64;  // a parameter block up to this size lies on the stack

/// The index ranges of one launch. Only the first `rank` items count.
struct Ranges {
  std::array<std::int64_t, max_dims> extents;
  std::array<std::int64_t, max_dims> start;
  std::array<std::int64_t, max_dims> step;
  std::int64_t iterations;
};

/// Memory of a call beside its arguments.
struct Side {
  void* scratch = nullptr;
  void* records = nullptr;
};

/// An integer computed before a launch. The common cases need no program.
struct Value {
  enum class Kind : std::uint8_t { constant, shape, scalar, program };
  Kind kind = Kind::constant;
  std::uint8_t dim = 0;
  std::uint16_t arg = 0;
  std::int64_t number = 0;
  const Extent* program = nullptr;  // in the kernel's source
};

/// Evaluates a postfix program that `validate` has passed. `sequences`: the variables of the enclosing sequences, outermost first.
std::int64_t evaluate(const Extent& program, std::span<const Argument> arguments, const std::int64_t* sequences) noexcept;
/// len(range(start, stop, step)); 0 for a step of 0.
std::uint64_t range_count(std::int64_t start, std::int64_t stop, std::int64_t step) noexcept;

/// The schedule of one Kernel. Immutable; points into the kernel's source, which lives as long.
struct Kernel::Plan {
  /// Which kind of word it is, the conversion of a scalar included.
  enum class Word : std::uint8_t {
    pointer,
    shape,
    stride,
    extent,
    start,
    step,
    sequence,
    scratch,
    records,
    texture,
    integer,  // 64 bits as they are
    narrow_signed,
    narrow_unsigned,
    boolean,
    f64_of_float,
    f32_of_float,
    f64_of_signed,
    f32_of_signed,
    f64_of_unsigned,
    f32_of_unsigned,
  };
  struct WordPlan {
    Word word = Word::integer;
    std::uint8_t dim = 0;  // for narrow integers: the unused bits of the word
    std::uint16_t arg = 0;
  };
  struct RangePlan {
    Value start, stop, step;
  };
  struct StepPlan {
    Step::Kind kind = Step::Kind::launch;
    std::uint32_t entry = 0;
    std::uint32_t match = 0;
    std::uint8_t rank = 1;
    bool alone = false;                // of a launch: the entry has code for being alone
    bool unit = true;                  // all ranges start at 0 and step by 1
    bool varying = false;              // a sequence: something in it depends on a sequence's variable
    std::uint64_t max_iterations = 0;  // of a launch and of a check; 0: none
    std::array<RangePlan, max_dims> ranges;
  };
  /// An integer argument whose range is checked.
  struct Limit {
    std::uint16_t arg = 0;
    bool is_unsigned = false;
    std::int64_t min = 0, max = 0;
  };

  Plan(const KernelSource& kernel_source, const Capabilities& capabilities, ModuleImpl& module, std::string device_title);
  WordPlan word_of(const ParamSlot& slot) const;

  /// False when the number of iterations exceeds 2^63 - 1; `ranges.iterations` then is -1.
  bool evaluate(const StepPlan& step, std::span<const Argument> arguments, const std::int64_t* sequences, Ranges& ranges) const noexcept;
  /// As `evaluate`, but throws for more iterations than the device takes.
  void evaluate_checked(const StepPlan& step, std::span<const Argument> arguments, const std::int64_t* sequences, Ranges& ranges) const;
  /// Throws where an index range is longer than 64-bit arithmetic on its bounds can follow.
  void check_spans(const StepPlan& step, const Ranges& ranges) const;
  void check_limits(std::span<const Argument> arguments) const;
  /// Fills the parameter block of an entry.
  void fill(std::uint32_t entry, std::span<const Argument> arguments, const std::int64_t* sequences, const Ranges& ranges, const Side& side,
            std::uint64_t* words) const noexcept;

  const KernelSource& source;
  const std::string title;  // of the device's type, for messages
  const bool queued;
  const bool stack_scratch;  // the device can use the launching thread's memory as scratch
  bool simple = false;       // one launch, no scratch, no records
  bool alone = false;        // one of the steps' is
  DirectLaunch direct;       // of a simple kernel
  std::size_t max_words = 0;
  std::vector<StepPlan> steps;
  std::vector<std::vector<WordPlan>> entries;
  std::vector<Limit> limits;
  std::vector<std::uint16_t> arrays;           // positions of the array arguments
  std::shared_ptr<const RecordTable> records;  // null: the kernel reports nothing
};

}  // namespace tack

// core/kernel_validate.cpp -- checks a KernelSource once, so that launching it needs no checks of the tables.
#include <string_view>
#include <vector>

#include "core/dtype_check.h"
#include "core/kernel_plan.h"
#include "core/kernel_source_io.h"
#include "core/records.h"
#include "core/text.h"

namespace tack {

namespace {

constexpr std::uint64_t max_scratch_bytes = std::uint64_t{1} << 40;
constexpr std::uint32_t max_group_threads = 1u << 16;  // more than any device has; what a device takes is asked when a kernel is loaded

class Validator {
 public:
  Validator(const KernelSource& source, ErrorCode code) : source_(source), code_(code) {}

  void run() {
    require(source_.arguments.size() <= 0xffff, "it has too many parameters");
    for (const ArgumentSpec& argument : source_.arguments) check(argument);
    for (const EntryPoint& entry : source_.entries) check(entry);
    for (const RecordSite& site : source_.sites) check(site);
    check_steps();
    require(source_.scratch_bytes <= max_scratch_bytes, "its scratch is too large");
    if (source_.result_offset >= 0) {
      require(is_known(source_.result_type) && source_.result_type.lanes == 1, "its result has an unknown type");
      const auto offset = static_cast<std::uint64_t>(source_.result_offset);
      const std::size_t size = source_.result_type.size();
      require(offset <= source_.scratch_bytes && size <= source_.scratch_bytes - offset, "its result lies outside its scratch");
    }
  }

 private:
  using Kind = ArgumentSpec::Kind;

  void require(bool condition, std::string_view problem) const {
    if (!condition) throw Error(code_, text("The kernel '", source_.name, "' is malformed: ", problem, '.'));
  }

  const ArgumentSpec& argument(std::uint16_t index) const {
    require(index < source_.arguments.size(), "it names a parameter that it does not have");
    return source_.arguments[index];
  }

  void check(const ArgumentSpec& argument) const {
    require(argument.kind <= Kind::strong, "a parameter has an unknown kind");
    require(argument.rank <= max_rank, "a parameter has too many dimensions");
    require(argument.layout <= Layout::general, "a parameter has an unknown layout");
    require(argument.texture == 0 || (argument.texture <= max_reading && argument.kind == Kind::array && argument.dtype == f32 &&
                                      argument.rank == 3 && !argument.written),
            "a texture parameter is no volume of f32 that is only read");
    if (argument.kind == Kind::array || argument.kind == Kind::strong)
      require(is_known(argument.dtype), "a parameter has an unknown element type");
    if (argument.kind == Kind::strong) require(argument.dtype.lanes == 1, "a scalar parameter is a vector");
  }

  void check(const EntryPoint& entry) const {
    require(!entry.symbol.empty(), "an entry has no name");
    require(entry.rank >= 1 && entry.rank <= max_dims, "an entry has not 1 to 4 dimensions");
    require(entry.group <= max_group_threads, "an entry has groups that are too large");
    for (const ParamSlot& slot : entry.params) {
      switch (slot.kind) {
        case ParamKind::pointer:
          require(argument(slot.arg).kind == Kind::array, "it takes the address of a scalar");
          break;
        case ParamKind::shape:
        case ParamKind::stride:
          require(argument(slot.arg).kind == Kind::array && slot.dim < argument(slot.arg).rank,
                  "it takes the shape of a dimension that is not there");
          break;
        case ParamKind::scalar:
          check_scalar(slot);
          break;
        case ParamKind::extent:
        case ParamKind::start:
        case ParamKind::step:
          require(slot.dim < entry.rank, "it takes the range of a dimension that is not there");
          break;
        case ParamKind::sequence:
          break;  // where the entry is launched
        case ParamKind::scratch:
          require(source_.scratch_bytes != 0, "it takes the address of scratch that it does not have");
          break;
        case ParamKind::texture:
          require(argument(slot.arg).texture != 0, "it takes a texture of a parameter that is none");
          break;
        case ParamKind::records:
          require(!source_.sites.empty(), "it takes the address of records that it does not have");
          break;
        default:
          require(false, "a parameter word has an unknown kind");
      }
    }
  }

  void check(const RecordSite& site) const {
    require(site.kind <= RecordSite::Kind::index, "a record has an unknown kind");
    require(site.values.size() <= max_record_values, "a record has too many values");
    for (const DType type : site.values) require(is_known(type) && type.lanes == 1, "a record has a value of an unknown type");
    require(fits_values(site), "the text of a record does not fit its values");
  }

  void check_scalar(const ParamSlot& slot) const {
    const ArgumentSpec& spec = argument(slot.arg);
    require(spec.kind != Kind::array && spec.kind != Kind::none, "it takes the value of an array");
    require(is_known(slot.type) && slot.type.lanes == 1, "a scalar has an unknown type");
    const bool floating = spec.kind == Kind::floating || (spec.kind == Kind::strong && spec.dtype.is_float());
    require(!floating || slot.type.is_float(), "a floating argument is taken as an integer");
  }

  void check_steps() {
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < source_.steps.size(); ++i) {
      const Step& step = source_.steps[i];
      switch (step.kind) {
        case Step::Kind::launch: {
          require(step.entry < source_.entries.size(), "a step launches an entry that is not there");
          const EntryPoint& entry = source_.entries[step.entry];
          require(step.stop.size() == entry.rank, "a step has not as many bounds as its entry dimensions");
          require(step.start.empty() || step.start.size() == entry.rank, "a step has not as many starts as its entry dimensions");
          require(step.step.empty() || step.step.size() == entry.rank, "a step has not as many steps as its entry dimensions");
          check_extents(step, open.size());
          for (const ParamSlot& slot : entry.params)
            require(slot.kind != ParamKind::sequence || slot.arg < open.size(), "it takes the variable of a sequence that it is not in");
          break;
        }
        case Step::Kind::check:
          require(step.entry < source_.entries.size(), "a check names an entry that is not there");
          require(!step.stop.empty() && step.stop.size() <= max_dims, "a check has no ranges, or too many");
          require(step.start.empty() || step.start.size() == step.stop.size(), "a check has not as many starts as bounds");
          require(step.step.empty() || step.step.size() == step.stop.size(), "a check has not as many steps as bounds");
          check_extents(step, open.size());
          break;
        case Step::Kind::sequence_begin:
          require(step.stop.size() == 1 && step.start.size() <= 1 && step.step.size() <= 1, "a sequence has not one range");
          check_extents(step, open.size());
          require(step.match < source_.steps.size() && step.match > i, "a sequence does not end");
          open.push_back(i);
          require(open.size() <= max_extent_depth, "its sequences are nested too deeply");
          break;
        case Step::Kind::sequence_end:
          require(!open.empty() && step.match == open.back() && source_.steps[open.back()].match == i, "its sequences are not nested");
          open.pop_back();
          break;
        default:
          require(false, "a step has an unknown kind");
      }
    }
    require(open.empty(), "a sequence does not end");
  }

  void check_extents(const Step& step, std::size_t depth) const {
    for (const std::vector<Extent>* extents : {&step.start, &step.stop, &step.step})
      for (const Extent& extent : *extents) check(extent, depth);
  }

  void check(const Extent& extent, std::size_t sequences) const {
    std::size_t depth = 0;
    for (const ExtentTerm& term : extent) {
      std::size_t operands = 2;
      switch (term.op) {
        case ExtentOp::constant:
          operands = 0;
          break;
        case ExtentOp::shape:
          require(argument(term.arg).kind == Kind::array && term.dim < argument(term.arg).rank,
                  "a bound names a dimension that is not there");
          operands = 0;
          break;
        case ExtentOp::scalar: {
          const ArgumentSpec& spec = argument(term.arg);
          const bool integral = spec.kind == Kind::integer || spec.kind == Kind::unsigned_ || spec.kind == Kind::boolean ||
                                (spec.kind == Kind::strong && !spec.dtype.is_float());
          require(integral, "a bound names a parameter that is no integer");
          operands = 0;
          break;
        }
        case ExtentOp::sequence:
          require(term.arg < sequences, "a bound names a sequence that it is not in");
          operands = 0;
          break;
        case ExtentOp::neg:
        case ExtentOp::popcount:
        case ExtentOp::clz:
          operands = 1;
          break;
        case ExtentOp::select:
          operands = 3;
          break;
        default:
          require(term.op <= ExtentOp::clz, "a bound has an unknown operation");
      }
      require(depth >= operands, "a bound lacks an operand");
      depth = depth - operands + 1;
      require(depth <= max_extent_depth, "a bound is nested too deeply");
    }
    require(depth == 1, "a bound is not one value");
  }

  const KernelSource& source_;
  ErrorCode code_;
};

}  // namespace

void validate(const KernelSource& source, ErrorCode code) { Validator(source, code).run(); }

}  // namespace tack

// tack/kernel.hpp -- KernelSource (text plus tables) and Kernel (loaded, launchable). All that crosses from a compiler to the runtime.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tack/array.hpp"
#include "tack/dtype.hpp"
#include "tack/export.hpp"
#include "tack/texture.hpp"

namespace tack {

/// What one word of an entry point's parameter block holds. The numbers are part of the bundle and cache format.
enum class ParamKind : std::uint8_t {
  pointer = 0,   ///< device address of array argument `arg`
  shape = 1,     ///< its length along `dim`
  stride = 2,    ///< its stride along `dim`, in bytes
  scalar = 3,    ///< scalar argument `arg`, converted to `type` (f32: the low 32 bits)
  extent = 4,    ///< number of iterations of this launch along `dim`
  start = 5,     ///< first index of this launch along `dim`
  step = 6,      ///< index step of this launch along `dim`
  sequence = 7,  ///< current value of the variable of the `arg`-th enclosing tack.sequential; 0 is the outermost
  scratch = 8,   ///< device address of the kernel's scratch cells
  records = 9,   ///< device address of the call's record buffer, see RecordSite
  texture = 10,  ///< Texture::handle() of texture argument `arg`
};
struct ParamSlot {
  ParamKind kind = ParamKind::pointer;
  std::uint8_t dim = 0;
  std::uint16_t arg = 0;
  DType type = i64;  ///< of a scalar
  bool operator==(const ParamSlot&) const = default;
};

/// One operation of an extent: a postfix program over 64-bit integers that C++ evaluates before a launch.
enum class ExtentOp : std::uint8_t {
  constant = 0,
  shape = 1,
  scalar = 2,
  sequence = 3,  // push
  add = 4,
  sub = 5,
  mul = 6,
  floordiv = 7,
  mod = 8,
  min = 9,
  max = 10,  // two operands
  neg = 11,  // one operand
  select = 12,
  lt = 13,
  le = 14,
  eq = 15,
  ne = 16,  // cond a b select; comparisons give 0 or 1
  shl = 17,
  shr = 18,
  bit_and = 19,
  bit_or = 20,
  bit_xor = 21,
  pow = 22,  // two operands
  popcount = 23,
  clz = 24,  // one operand; clz of 0 is 64
};
struct ExtentTerm {
  ExtentOp op = ExtentOp::constant;
  std::uint8_t dim = 0;
  std::uint16_t arg = 0;
  std::int64_t value = 0;
  bool operator==(const ExtentTerm&) const = default;
};
/// Wraps modulo 2^64; x // 0 and x % 0 are 0, counts of shifts outside [0, 64) and negative exponents as in kernels. `sequence` pushes the
/// variable of the `arg`-th enclosing sequence, 0 the outermost; `scalar` an integer or bool argument.
using Extent = std::vector<ExtentTerm>;

/// A function of the binary.
struct EntryPoint {
  std::string symbol;
  std::vector<ParamSlot> params;  ///< its words, in order
  std::uint8_t rank = 1;          ///< dimensions of its index range, 1..4
  double cost_hint = -1.0;        ///< estimated ns per iteration; negative: unknown (loops with run-time bounds)
  std::string alone = {};         ///< CPU: of an entry with atomics, the same without locked instructions, for launches that run on one
                                  ///< thread while nobody else updates their arrays; empty for an entry without
  double locked_cost = 1.0;       ///< of such an entry: how many times as long an iteration takes with locked instructions, by estimate
  std::uint32_t group = 0;        ///< GPUs: threads of a group; 0 is Capabilities::block
  bool whole_groups = false;      ///< GPUs: an iteration is a whole group, not a thread: the grid is `iterations` groups, in x. Otherwise
                                  ///< it is ceil(iterations / group) groups, and the threads beyond the last iteration have to stop
};

/// One step of a kernel's schedule. A range counts as Python's range(start, stop, step) does, but a step of 0 runs nothing; an empty
/// `start` list means zeros, an empty `step` list ones. The index of iteration k is start + k * step.
struct Step {
  enum class Kind : std::uint8_t {
    launch = 0,
    sequence_begin = 1,
    sequence_end = 2,
    check = 3,  ///< launches nothing: the ranges of a loop that a later step runs in another shape, for the limits and the message
  };
  Kind kind = Kind::launch;
  std::uint32_t entry = 0;                ///< launch: index into entries; check: the entry whose `group` the limit is taken for
  std::vector<Extent> start, stop, step;  ///< launch, check: one each per dimension; sequence_begin: one each
  std::uint32_t match = 0;                ///< sequence_begin/end: the index of the other end
};

/// What an argument must be. The dispatcher's key guarantees it; Kernel::prepare checks it for C++ callers.
struct ArgumentSpec {
  enum class Kind : std::uint8_t { array = 0, integer = 1, unsigned_ = 2, floating = 3, boolean = 4, none = 5, strong = 6 };
  std::string name;
  Kind kind = Kind::array;
  DType dtype{};  ///< of an array's elements or a strong scalar
  std::uint8_t rank = 0;
  Layout layout = Layout::contiguous;
  bool read_only = false;                                       ///< a read-only array is accepted (the kernel does not write it)
  bool written = false;                                         ///< the kernel writes it
  std::uint8_t texture = 0;                                     ///< of an array: Texture::reading() of the texture it must come in; 0: none
  std::int64_t min = std::numeric_limits<std::int64_t>::min();  ///< integer, unsigned: the accepted range (OverflowError outside); as it is
                                                                ///< here: any value
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

/// A place in a kernel that reports something while it runs: a print, an assert, an index. A record holds the site's number and values,
/// a 64-bit word each (signed integers extended, f32 in the low half); all else that is said of it stands here.
///
/// The record buffer of a call, in 64-bit words: word 0 is 0, and 1 once an iteration has failed (whoever changes it, by
/// compare-exchange, writes the one record at word 16; entries that check anything return when they see it). Word 8 counts the prints
/// (atomic add), word 9 is how many of them fit: print n < fits has its record behind the failure's, n records on; others are lost. All
/// records are as long as the longest.
struct RecordSite {
  enum class Kind : std::uint8_t { print = 0, assertion = 1, index = 2 };
  Kind kind = Kind::print;
  std::uint32_t line = 0;     ///< in `file`, 1-based; 0: not known
  std::string file;           ///< as Python names it
  std::string text;           ///< what is said: "{}" or "{:+08.3f}" for each value, "{{" and "}}" for braces
  std::vector<DType> values;  ///< scalars, bool among them
};

/// Everything a runtime needs to build and launch a kernel. No Python object and no pointer in it: it can be stored.
struct TACK_API KernelSource {
  std::string name;     ///< the Python function's
  std::string target;   ///< device type: "cpu", "cuda", ...
  std::string arch;     ///< Capabilities::arch it was printed for
  std::string text;     ///< LLVM IR, CUDA C, ...; not stored with the binary
  std::string options;  ///< for the compiler; part of the cache key
  std::vector<ArgumentSpec> arguments;
  std::vector<EntryPoint> entries;
  std::vector<Step> steps;
  std::uint64_t scratch_bytes = 0;
  DType result_type{};              ///< of a returned scalar, which lies at result_offset in scratch
  std::int64_t result_offset = -1;  ///< negative: returns nothing
  std::uint32_t simd = 1;           ///< lanes the CPU code was printed for (for inspection)
  std::vector<RecordSite> sites;    ///< what it may report; empty for nearly all kernels
};

/// Names a specialization as the front end knows it (function text, captured values, argument types, target, options): a 32-byte
/// digest, or empty for none.
struct KernelKey {
  std::string digest;
};

/// An argument of a launch: an array or texture that outlives the launch, a scalar, or Python's None. `kind` says which, and which
/// member of the union counts; it is never `strong`: a number of C++ fits parameters of either kind.
struct Argument {
  using Kind = ArgumentSpec::Kind;
  const Array* array = nullptr;  ///< of a texture: its texels
  union {
    const Texture* texture;  ///< of an array: the texture that it came in, or null
    std::int64_t i;          ///< integer, boolean
    std::uint64_t u;         ///< unsigned
    double f;                ///< floating
  };
  Kind kind = Kind::none;
  Argument() noexcept : i(0) {}
  explicit Argument(const Array& a) noexcept : array(&a), texture(nullptr), kind(Kind::array) {}
  explicit Argument(const Texture& t) noexcept : array(&t.texels()), texture(&t), kind(Kind::array) {}
  explicit Argument(std::same_as<bool> auto v) noexcept : i(v ? 1 : 0), kind(Kind::boolean) {}
  explicit Argument(std::signed_integral auto v) noexcept : i(v), kind(Kind::integer) {}
  explicit Argument(std::unsigned_integral auto v) noexcept
    requires(!std::same_as<decltype(v), bool>)
      : u(v), kind(Kind::unsigned_) {}
  explicit Argument(std::floating_point auto v) noexcept : f(static_cast<double>(v)), kind(Kind::floating) {}
};

/// A returned scalar of KernelSource::result_type: signed integers in `i`, unsigned ones and bools (0 or 1) in `u`, floats in `f`.
struct Result {
  DType type{};
  bool present = false;
  union {
    std::int64_t i;
    std::uint64_t u;
    double f;
  };
  Result() : i(0) {}
};

/// What is known about an entry's speed; read by tack.inspect(mode="schedule") and by the CPU's serial/parallel decision.
struct EntryStatistics {
  std::string symbol;
  double ns_per_iteration = -1.0;          ///< measured; negative: not yet
  double fan_out_ns = -1.0;                ///< measured cost of a fan-out on this device; negative: none
  std::uint64_t serial = 0, parallel = 0;  ///< launches of either kind
};

class DeviceImpl;
class ModuleImpl;

/// A loaded, launchable kernel. Thread-safe; keeps its device alive; its code is unloaded with the last reference.
class TACK_API Kernel {
 public:
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const KernelSource& source() const noexcept { return source_; }  ///< `text` is empty when it came from the disk cache
  const std::shared_ptr<Device>& device() const noexcept { return device_; }
  bool from_cache() const noexcept { return from_cache_; }
  std::vector<EntryStatistics> statistics() const;
  /// Whether it gains by arrays that nobody else updates meanwhile, see EntryPoint::alone.
  bool has_atomics() const noexcept;

  /// Predicted run time of a launch in ns, cheap and without a clock; used to decide whether to release the GIL.
  double predict(std::span<const Argument> arguments) const noexcept;
  /// Whether a launch on a queued device waits for it: for a returned scalar, memory that another library sees, what the kernel reports;
  /// or queues launches by the thousand. False on devices that are not queued. The arguments must fit, here as in `predict`.
  bool waits(std::span<const Argument> arguments) const noexcept;
  /// Checks the arguments (as `check`), ranges and limits, then runs (CPU) or queues the whole schedule. Empty launches do nothing.
  /// Throws what `check` throws, and Error(invalid_argument) for limits and extents. A kernel built with checks throws Error(index) or
  /// Error(assertion) for the first failure that an iteration reported: here, or on a queued device at the wait.
  Result launch(std::span<const Argument> arguments) const;
  /// As `launch` for arguments that certainly fit source().arguments in kind, dtype, rank and layout, since others like them have passed
  /// `check`. What does not fit is read as what it is not.
  Result launch_unchecked(std::span<const Argument> arguments) const;
  /// As `launch_unchecked`, if this certainly takes no more than a few microseconds on the calling thread and the kernel returns nothing.
  /// Answers false, having done nothing, where that is not known: for longer launches, queued devices and kernels of several loops. Saves
  /// hosts the question how long a launch will take (`predict`) where the answer costs as much as the launch.
  bool launch_unchecked_if_short(std::span<const Argument> arguments) const;
  /// Throws Error(type_mismatch) or Error(invalid_argument) naming kernel and parameter when an argument does not fit, Error(overflow) for
  /// an integer outside its range. Integers fit parameters that are integers, whatever their sign's type; nothing else is converted.
  void check(std::span<const Argument> arguments) const;

  ModuleImpl& module() const noexcept { return *module_; }  // for libtack's own files

 private:
  friend class Device;
  Kernel(std::shared_ptr<Device> device, KernelSource source, std::unique_ptr<ModuleImpl> module, bool from_cache);
  friend class KernelCall;
  struct Plan;  // the schedule, made ready for launching
  void check_count(std::size_t given) const;
  void check_kinds(std::span<const Argument> arguments) const;
  std::shared_ptr<Device> device_;
  KernelSource source_;
  std::unique_ptr<ModuleImpl> module_;
  std::unique_ptr<const Plan> plan_;
  bool from_cache_ = false;
};

}  // namespace tack

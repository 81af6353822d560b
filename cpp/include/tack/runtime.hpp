// tack/runtime.hpp -- Runtime: the root object. It owns settings, log, caches and devices; two in one process share nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tack/config.hpp"
#include "tack/device.hpp"
#include "tack/export.hpp"
#include "tack/log.hpp"

namespace tack {

/// What the CPU backend asks of whoever can compile LLVM IR (Python's llvmlite, through the bindings).
struct CompileRequest {
  std::string name;           ///< the kernel's
  std::string text;           ///< LLVM IR
  std::string arch;           ///< Capabilities::arch of the device
  int optimize = 2;           ///< 0..3
  bool assembly = false;      ///< answer assembly text instead of object code (tack.inspect)
  bool optimized_ir = false;  ///< answer the optimised IR as text (tack.inspect)
};
/// Answers object code (or text). May be called from any thread, without locks held; throws Error on failure.
using CpuCompiler = std::function<std::vector<std::byte>(const CompileRequest&)>;

/// A function outside a kernel's machine code that the code may call, by its name in C.
struct ImportedSymbol {
  std::string_view name;
  void* address;  ///< valid as long as the process
};
/// What the CPU backend asks of whoever can link machine code in a format that the runtime does not load itself: Mach-O, COFF. (ELF it
/// does.)
struct LinkRequest {
  std::string name;                         ///< the kernel's
  std::span<const std::byte> object;        ///< a relocatable object for this machine, as the CpuCompiler answered it
  std::span<const std::string> functions;   ///< whose addresses are wanted, by their names in LLVM IR
  std::span<const ImportedSymbol> imports;  ///< all that the object may use of the outside
};
struct LinkedObject {
  std::vector<void*> functions;       ///< addresses in the request's order; null for one that the object does not have
  std::shared_ptr<const void> owner;  ///< holds the code in memory; dropped with the kernel, on any thread
};
/// Links an object into this process. May be called from any thread, without locks held; throws Error on failure.
using ObjectLinker = std::function<LinkedObject(const LinkRequest&)>;

/// Runs `body(begin, end)` over disjoint pieces that cover [0, n), on up to `threads` threads, and returns when all are done.
/// `body` does not throw. A host with a scheduler of its own installs one with Runtime::set_parallel_for.
using ParallelBody = void (*)(void* context, std::int64_t begin, std::int64_t end);
using ParallelFor = std::function<void(std::int64_t n, std::int64_t grain, int threads, ParallelBody body, void* context)>;

/// Receives what kernels print: the text of one call, lines in the order of their records. Called on the thread that launched or waited,
/// without locks held; what it throws comes out there.
using PrintSink = std::function<void(std::string_view text)>;

/// Answers the folders in which a package manager of the host's puts shared libraries (Python's site-packages), in the order of the search.
/// Called on any thread, without locks held, when a compiler is looked for there.
using PackageFolders = std::function<std::vector<std::string>()>;

/// What came out of a wait for one of several devices.
struct DeviceFailure {
  std::shared_ptr<Device> device;
  std::exception_ptr error;
};

class RuntimeImpl;

/// Thread-safe. Devices, buffers and kernels keep their Runtime alive, and a Runtime keeps its devices.
class TACK_API Runtime : public std::enable_shared_from_this<Runtime> {
 public:
  static std::shared_ptr<Runtime> create(Config config = Config::from_environment());
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// "cpu", "cuda", "cuda:1", ...; the same spec and options answer the same device.
  /// Throws Error(invalid_argument) that lists the device types for an unknown spec or option, Error(unavailable) with the page's text.
  std::shared_ptr<Device> device(std::string_view spec, const DeviceOptions& options = {});
  /// How many devices of a type there are; 0 without a driver. "cpu" is 1. Throws Error(invalid_argument) for an unknown type.
  int device_count(std::string_view type);
  /// What a device of a type and architecture ("cuda", "sm_90") can do, without one. Throws Error(invalid_argument) for an unknown one.
  Capabilities describe(std::string_view type, std::string_view arch);
  /// Source text to binary, for source.target and source.arch; needs no device. What Device::build loads, past the disk cache. Blocking.
  /// Throws Error(compile), and Error(unavailable) where the compiler is missing.
  std::vector<std::byte> compile(const KernelSource& source);
  /// Names of all backends, in the order of the documentation: cpu metal cuda hip level_zero.
  std::vector<std::string> backend_names() const;
  /// Waits for every device, in the order in which they were started. Answers what failed, and throws none of it. Blocking.
  std::vector<DeviceFailure> finish();
  /// The same, but the first failure is thrown and the others are logged.
  void synchronize();

  void set_cpu_compiler(CpuCompiler compiler);
  /// Without one, machine code that is not ELF is refused with Error(unavailable). On Linux none is ever needed.
  void set_object_linker(ObjectLinker linker);
  /// Replaces the CPU pool for every CPU device of this runtime; an empty function restores it.
  void set_parallel_for(ParallelFor f);
  /// What CPU devices use where the system lets the pool start no thread. Without one, the launching thread then does all the work.
  void set_parallel_for_fallback(ParallelFor f);
  /// Where compilers such as NVRTC are looked for beside the system's own places.
  void set_package_folders(PackageFolders folders);
  void set_log_sink(LogSink sink);
  /// An empty function restores the default: the process's standard output.
  void set_print_sink(PrintSink sink);

  /// Small records of a front end (what an earlier process learnt about a function) in the same disk cache, under 32 bytes made by
  /// `digest` or any other key. Neither throws for the disk's sake: get answers nothing, put does nothing, both log.
  std::optional<std::vector<std::byte>> cache_get(std::string_view key);
  void cache_put(std::string_view key, std::span<const std::byte> value);
  /// The folder that holds this version's entries and nothing else, which may not exist yet; empty where nothing is kept on disk.
  std::string cache_folder() const;
  /// A 256-bit digest of the parts and of their lengths: the same in every process, on every machine. 32 bytes.
  static std::string digest(std::span<const std::string_view> parts);

  const Config& config() const noexcept;
  RuntimeImpl& impl() noexcept { return *impl_; }  // for libtack's own files

 private:
  explicit Runtime(Config config);
  std::unique_ptr<RuntimeImpl> impl_;
};

}  // namespace tack

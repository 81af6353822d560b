// backends/cpu/cpu_device.cpp -- CpuDevice, CpuModule and the backend that makes them.
#include "backends/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "backends/cpu/cpu_arch.h"
#include "backends/cpu/cpu_memory.h"
#include "backends/cpu/object_loader.h"
#include "core/runtime_impl.h"
#include "core/text.h"
#include "core/thread_pool.h"

namespace tack {
namespace cpu {
namespace {

// Part of the disk cache's key. A newer llvmlite makes other code, but not wrong code: what is stored stays valid until the way in which
// the runtime calls it, or what it offers to it, changes. Then this number does.
constexpr std::string_view code_revision = "cpu-code-1";

constexpr DTypeSet all_dtypes = (1u << array_dtypes.size()) - 1u;

/// `count` copies of one element, whatever its type.
template <class Bits>
void fill_as(void* destination, const void* element, std::size_t count) noexcept {
  Bits value;
  std::memcpy(&value, element, sizeof value);
  auto* const first = static_cast<Bits*>(destination);
  std::fill(first, first + count, value);
}

/// Puts machine code where it can run: ELF, and what nobody knows, is for the runtime's own loader, the rest for the installed linker.
LinkedObject link(RuntimeImpl& runtime, std::span<const std::byte> binary, const std::string& kernel,
                  std::span<const std::string> functions) {
  const ObjectFormat format = object_format(binary);
  if (format == ObjectFormat::mach_o || format == ObjectFormat::coff) {
    return runtime.link_object({.name = kernel, .object = binary, .functions = functions, .imports = runtime_symbols()},
                               format == ObjectFormat::mach_o ? "Mach-O" : "COFF");
  }
  const std::shared_ptr<const LoadedObject> object = load_object(binary, runtime_symbol, kernel);
  LinkedObject code{.functions = {}, .owner = object};
  for (const std::string& function : functions) code.functions.push_back(object->find(function));
  return code;
}

}  // namespace

// --- CpuModule ---------------------------------------------------------------------------------------------------------------------

CpuModule::CpuModule(Schedule& schedule, std::string kernel, std::shared_ptr<const void> code, const std::vector<Function>& functions)
    : ModuleImpl(std::move(kernel)), schedule_(schedule), code_(std::move(code)) {
  entries_.reserve(functions.size());
  for (const Function& function : functions) entries_.push_back(std::make_unique<Entry>(function, schedule.threads()));
}

std::vector<EntryStatistics> CpuModule::statistics() const {
  const FanOutCost fan_out = schedule_.fan_out();
  std::vector<EntryStatistics> rows;
  rows.reserve(entries_.size());
  for (const std::unique_ptr<Entry>& entry : entries_) {
    rows.push_back({.symbol = entry->function.symbol,
                    .ns_per_iteration = entry->cost.measured(),
                    .fan_out_ns = fan_out.warm,
                    .serial = entry->cost.serial.load(std::memory_order_relaxed),
                    .parallel = entry->cost.parallel.load(std::memory_order_relaxed)});
  }
  return rows;
}

double CpuModule::predict(std::uint32_t entry, std::int64_t iterations) const noexcept {
  return iterations > 0 ? entries_[entry]->cost.predict(iterations) : 0.0;
}

DirectLaunch CpuModule::direct(std::uint32_t entry) noexcept {
  const auto run = [](void* context, const std::uint64_t* words, std::int64_t iterations) noexcept {
    Entry& e = *static_cast<Entry*>(context);
    return Schedule::run_if_short(e.cost, e.function.code, words, iterations);
  };
  // Where others may update the same memory, a launch has to look after them.
  if (entries_[entry]->function.code.alone != nullptr) return {};
  return {run, entries_[entry].get()};
}

void CpuModule::launch(const LaunchCommand& command) {
  Entry& e = *entries_[command.entry];
  schedule_.run(e.cost, e.function.code, command.words.data(), command.iterations, command.shared);
}

// --- CpuDevice ---------------------------------------------------------------------------------------------------------------------

CpuDevice::CpuDevice(RuntimeImpl& runtime, int threads) : runtime_(runtime), schedule_(runtime, threads) {
  const CpuArch arch = detect_arch(runtime.config.cpu_target);
  capabilities_.arch = arch.arch;
  capabilities_.device_name = arch.name;
  capabilities_.vector_bits = arch.vector_bits;
  capabilities_.threads = static_cast<std::uint32_t>(threads);
  capabilities_.array_dtypes = all_dtypes;
  capabilities_.atomic_dtypes = all_dtypes;
  capabilities_.supports_f64 = true;
  capabilities_.host_addressable = true;
}

void* CpuDevice::allocate(std::size_t bytes) {
  void* const pointer = allocate_memory(bytes);
  if (pointer == nullptr) {
    throw Error({.code = ErrorCode::out_of_memory,
                 .message = text("Out of memory on 'cpu': the system refused ", bytes_text(bytes), " (", bytes,
                                 " bytes). Free arrays, or work on smaller ones."),
                 .backend = "cpu",
                 .operation = "allocate",
                 .native_code = 0,
                 .native_name = {}});
  }
  return pointer;
}

void CpuDevice::free(void* pointer, std::size_t bytes) noexcept { free_memory(pointer, bytes); }

void CpuDevice::upload(void* destination, const void* source, std::size_t bytes) { copy(destination, source, bytes); }
void CpuDevice::download(void* destination, const void* source, std::size_t bytes) { copy(destination, source, bytes); }
void CpuDevice::copy(void* destination, const void* source, std::size_t bytes) {
  if (bytes != 0) std::memmove(destination, source, bytes);
}

void CpuDevice::fill(void* destination, const void* element, std::size_t size, std::size_t count) {
  switch (size) {
    case 1:
      return fill_as<std::uint8_t>(destination, element, count);
    case 2:
      return fill_as<std::uint16_t>(destination, element, count);
    case 4:
      return fill_as<std::uint32_t>(destination, element, count);
    case 8:
      return fill_as<std::uint64_t>(destination, element, count);
    default:
      throw Error(ErrorCode::internal,
                  text("fill on 'cpu': elements of ", size, " bytes were given; 1, 2, 4 and 8 are known. Please report this."));
  }
}

std::unique_ptr<ModuleImpl> CpuDevice::load(std::span<const std::byte> binary, const KernelSource& source) {
  if (!can_run(source.arch)) {
    throw Error(ErrorCode::unsupported, text("Kernel '", source.name, "' is machine code for '", source.arch,
                                             "', which this processor cannot run. Compile it for '", capabilities_.arch, "'."));
  }
  std::vector<std::string> symbols;
  for (const EntryPoint& entry : source.entries) {
    symbols.push_back(entry.symbol);
    if (!entry.alone.empty()) symbols.push_back(entry.alone);
  }
  LinkedObject code = link(runtime_, binary, source.name, symbols);
  std::vector<CpuModule::Function> functions;
  functions.reserve(source.entries.size());
  std::size_t next = 0;
  const auto found = [&]() -> EntryFunction {
    const std::size_t i = next++;
    if (code.functions[i] == nullptr) {
      throw Error({.code = ErrorCode::corrupt,
                   .message = text("Kernel '", source.name, "': its machine code has no function '", symbols[i],
                                   "'. Compile it again; should that not help, please report it."),
                   .backend = "cpu",
                   .operation = "load object",
                   .native_code = 0,
                   .native_name = {}});
    }
    return reinterpret_cast<EntryFunction>(code.functions[i]);
  };
  for (const EntryPoint& entry : source.entries) {
    EntryCode both{.usual = found()};
    if (!entry.alone.empty()) both.alone = found();
    functions.push_back({entry.symbol, both, entry.cost_hint, entry.locked_cost});
  }
  return std::make_unique<CpuModule>(schedule_, source.name, std::move(code.owner), functions);
}

void CpuDevice::launch(const LaunchCommand& command) { static_cast<CpuModule*>(command.module)->launch(command); }

// --- The backend -------------------------------------------------------------------------------------------------------------------

namespace {

class CpuBackend final : public Backend {
 public:
  std::string name() const override { return "cpu"; }
  bool numbered() const override { return false; }
  int device_count(RuntimeImpl&) noexcept override { return 1; }
  std::uint32_t memory_space(int) const override { return 0; }

  std::unique_ptr<DeviceImpl> open(RuntimeImpl& runtime, int, const DeviceOptions& options) override {
    const int configured = runtime.config.cpu_threads;
    return std::make_unique<CpuDevice>(runtime, options.num_threads.value_or(configured > 0 ? configured : physical_cores()));
  }

  Capabilities describe(RuntimeImpl&, std::string_view arch) override {
    throw Error(ErrorCode::invalid_argument,
                text("'cpu:", arch, "' is no target. Use 'cpu', and choose its instruction set when the process starts: TACK_CPU_TARGET=",
                     arch, " (in C++ Config::cpu_target). This processor runs ", runnable_targets(), "."));
  }
  std::vector<std::byte> compile(RuntimeImpl& runtime, const KernelSource& source) override {
    CompileRequest request;
    request.name = source.name;
    request.text = source.text;
    request.arch = source.arch;
    return runtime.compile_cpu(request);
  }
  std::string compiler_version(RuntimeImpl&) override { return std::string(code_revision); }
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<cpu::CpuBackend>(); }

}  // namespace tack

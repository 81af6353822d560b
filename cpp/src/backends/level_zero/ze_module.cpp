// backends/level_zero/ze_module.cpp -- loading SPIR-V, which the driver compiles: what it refuses is told with its own log.
#include "backends/level_zero/ze_module.h"

#include "backends/gpu/compiler.h"
#include "core/text.h"

namespace tack::level_zero {

namespace {

std::uint8_t size_of(const ParamSlot& slot) noexcept {
  if (slot.kind == ParamKind::texture) return Module::texture;
  return slot.kind == ParamKind::scalar ? static_cast<std::uint8_t>(slot.type.size()) : std::uint8_t{8};
}

/// Takes the log of a build and gives it back.
std::string text_of(const Context& context, abi::BuildLog log) {
  if (log == nullptr) return {};
  const Driver& driver = context.driver();
  std::string words;
  std::size_t bytes = 0;
  if (driver.build_log_text(log, &bytes, nullptr) == abi::Result::success && bytes > 1) {
    words.resize(bytes);
    if (driver.build_log_text(log, &bytes, words.data()) != abi::Result::success) words.clear();
    words.resize(words.find_last_not_of(std::string_view("\0\n ", 3)) + 1);
  }
  driver.release(context.log(), "give a build log back", driver.build_log_destroy, log);
  return words;
}

}  // namespace

Module::Module(const Context& context, std::span<const std::byte> binary, const KernelSource& source, const Capabilities& can)
    : GroupedModule(source), context_(context) {
  load(binary);
  try {
    for (const EntryPoint& point : source.entries) find(point, can);
  } catch (...) {
    unload();
    throw;
  }
}

Module::~Module() { unload(); }

void Module::load(std::span<const std::byte> binary) {
  const Driver& driver = context_.driver();
  abi::ModuleDesc desc;
  desc.format = abi::module_spirv;
  desc.bytes = binary.size();
  desc.code = reinterpret_cast<const std::uint8_t*>(binary.data());
  desc.build_flags = build_flags.data();
  abi::BuildLog log = nullptr;
  const abi::Result result = driver.module_create(context_.handle(), context_.device(), &desc, &module_, &log);
  const std::string words = text_of(context_, log);
  if (result == abi::Result::success) return;
  module_ = nullptr;
  Error::Fields fields = driver
                             .error_of(text("load the code of kernel '", kernel(), '\''), result, driver.module_create.symbol,
                                       words.empty() ? words : text("The driver's log:", gpu::relevant_lines(words)))
                             .fields();
  if (result == abi::Result::module_build_failure || result == abi::Result::invalid_native_binary) fields.code = ErrorCode::corrupt;
  throw Error(std::move(fields));
}

void Module::find(const EntryPoint& point, const Capabilities& can) {
  const Driver& driver = context_.driver();
  Entry entry;
  entry.groups = gpu::Groups(point, can.block);
  for (const ParamSlot& slot : point.params) entry.sizes.push_back(size_of(slot));
  abi::KernelDesc desc;
  desc.name = point.symbol.c_str();
  const abi::Result found = driver.kernel_create(module_, &desc, &entry.kernel);
  if (found != abi::Result::success) {
    Error::Fields fields =
        driver.error_of(text("find '", point.symbol, "' in the code of kernel '", kernel(), '\''), found, driver.kernel_create.symbol)
            .fields();
    if (found == abi::Result::invalid_kernel_name) fields.code = ErrorCode::corrupt;
    throw Error(std::move(fields));
  }
  entries_.push_back(std::move(entry));
  const std::uint32_t threads = entries_.back().groups.threads;
  driver(text("run kernel '", kernel(), "' in groups of ", threads, " threads (the device has groups of at most ", can.max_group, ')'),
         driver.kernel_group_size, entries_.back().kernel, threads, 1u, 1u);
}

void Module::unload() noexcept {
  const Driver& driver = context_.driver();
  for (const Entry& entry : entries_) driver.release(context_.log(), "unload a kernel", driver.kernel_destroy, entry.kernel);
  entries_.clear();
  driver.release(context_.log(), "unload a kernel's code", driver.module_destroy, module_);
}

}  // namespace tack::level_zero

// backends/cuda/cuda_module.cpp -- loading a binary: what the driver refuses is told with its own log.
#include "backends/cuda/cuda_module.h"

#include <array>
#include <string>

#include "core/text.h"

namespace tack::cuda {

CudaModule::CudaModule(const Context& context, std::span<const std::byte> binary, const KernelSource& source, std::uint32_t block)
    : ModuleImpl(source.name), context_(context) {
  const ContextScope scope(context_);
  load(binary);
  try {
    for (const EntryPoint& point : source.entries) find(point, block);
  } catch (...) {
    unload();
    throw;
  }
}

CudaModule::~CudaModule() {
  try {
    const ContextScope scope(context_);
    unload();
  } catch (const std::exception& error) {
    context_.log_failure(error);
  }
}

void CudaModule::load(std::span<const std::byte> binary) {
  const Driver& driver = context_.driver();
  // The driver's words about PTX that it cannot compile. The size is an option's value, not a pointer to one.
  std::vector<char> log(8192, '\0');
  std::array<abi::JitOption, 2> options{abi::JitOption::error_log_buffer, abi::JitOption::error_log_buffer_bytes};
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const abi::Result result =
      driver.module_load(&module_, binary.data(), static_cast<unsigned int>(options.size()), options.data(), values.data());
  if (result == abi::Result::success) return;
  module_ = nullptr;
  std::string words(log.data());
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  Error::Fields fields =
      driver.error_of(text("load the code of kernel '", kernel(), '\''), result, driver.module_load.symbol, words).fields();
  if (result == abi::Result::invalid_image || result == abi::Result::no_binary_for_gpu || result == abi::Result::invalid_ptx)
    fields.code = ErrorCode::corrupt;
  throw Error(std::move(fields));
}

void CudaModule::find(const EntryPoint& point, std::uint32_t block) {
  const Driver& driver = context_.driver();
  Entry entry;
  entry.group = point.group == 0 ? block : point.group;
  entry.whole_groups = point.whole_groups;
  const abi::Result found = driver.module_function(&entry.function, module_, point.symbol.c_str());
  if (found != abi::Result::success) {
    Error::Fields fields =
        driver.error_of(text("find '", point.symbol, "' in the code of kernel '", kernel(), '\''), found, driver.module_function.symbol)
            .fields();
    if (found == abi::Result::not_found) fields.code = ErrorCode::corrupt;
    throw Error(std::move(fields));
  }
  int most = 0;
  driver("ask how large a kernel's groups may be", driver.function_attribute, &most, abi::FunctionAttribute::max_threads_per_block,
         entry.function);
  if (entry.group > static_cast<std::uint32_t>(most))
    throw Error({ErrorCode::driver,
                 text("Kernel '", kernel(), "' runs in groups of ", entry.group, " threads, but its code leaves registers for ", most,
                      " at most. Give it a smaller block=."),
                 "cuda",
                 driver.function_attribute.symbol,
                 0,
                 {}});
  entries_.push_back(entry);
  symbols_.push_back(point.symbol);
}

void CudaModule::unload() noexcept {
  context_.driver().release(context_.log(), "unload a kernel's code", context_.driver().module_unload, module_);
}

std::vector<EntryStatistics> CudaModule::statistics() const {
  std::vector<EntryStatistics> rows;
  rows.reserve(symbols_.size());
  for (const std::string& symbol : symbols_) rows.push_back({.symbol = symbol});
  return rows;
}

}  // namespace tack::cuda

// backends/gpu/module.h -- a loaded binary, and its kernels as the driver launches them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/groups.h"

namespace tack::gpu {

/// Lives no longer than its device.
template <class Api>
class Module final : public GroupedModule {
 public:
  struct Entry {
    Api::Function function = nullptr;
    Groups groups;
  };

  /// Throws Error(corrupt) for bytes that the driver does not take, Error(driver) for an entry whose groups are too large for it.
  /// `block`: threads of a group where an entry does not say.
  Module(const Api::Context& context, std::span<const std::byte> binary, const KernelSource& source, std::uint32_t block)
      : GroupedModule(source), context_(context) {
    const typename Api::Scope scope(context_);
    load(binary);
    try {
      for (const EntryPoint& point : source.entries) find(point, block);
    } catch (...) {
      unload();
      throw;
    }
  }
  ~Module() override {
    try {
      const typename Api::Scope scope(context_);
      unload();
    } catch (const std::exception& error) {
      Driver<Api>::log_failure(context_.log(), error);
    }
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const Entry& entry(std::uint32_t index) const noexcept { return entries_[index]; }

 private:
  using Result = Api::Result;

  void load(std::span<const std::byte> binary) {
    std::string words;
    const Result result = Api::load(context_.driver(), module_, binary, words);
    if (result == Result::success) return;
    while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
    refuse(text("load the code of kernel '", kernel(), '\''), result, context_.driver().module_load.symbol, Api::is_corrupt(result), words);
  }

  void find(const EntryPoint& point, std::uint32_t block) {
    const Driver<Api>& driver = context_.driver();
    Entry entry;
    entry.groups = Groups(point, block);
    const Result found = driver.module_function(&entry.function, module_, point.symbol.c_str());
    if (found != Result::success)
      refuse(text("find '", point.symbol, "' in the code of kernel '", kernel(), '\''), found, driver.module_function.symbol,
             found == Result::not_found, {});
    int most = 0;
    driver("ask how large a kernel's groups may be", driver.function_attribute, &most, Api::max_threads_per_block, entry.function);
    check_registers(entry.groups, static_cast<std::uint32_t>(most), Api::type, driver.function_attribute.symbol);
    entries_.push_back(entry);
  }

  [[noreturn]] void refuse(const std::string& what, Result result, const char* symbol, bool corrupt, std::string_view words) const {
    Error::Fields fields = context_.driver().error_of(what, result, symbol, words).fields();
    if (corrupt) fields.code = ErrorCode::corrupt;
    throw Error(std::move(fields));
  }

  void unload() noexcept { context_.driver().release(context_.log(), "unload a kernel's code", context_.driver().module_unload, module_); }

  const Api::Context& context_;
  Api::Module module_ = nullptr;
  std::vector<Entry> entries_;
};

}  // namespace tack::gpu

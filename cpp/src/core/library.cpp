// core/library.cpp -- opening shared libraries with the system's loader.
#include "core/library.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/native_function.h"
#include "core/text.h"

#if defined(_WIN32)
#  include <windows.h>
#else
#  include <dlfcn.h>
#endif

namespace tack {

namespace {

#if defined(_WIN32)
void* loaded_library(const std::string& name) {
  HMODULE module = nullptr;
  return GetModuleHandleExA(0, name.c_str(), &module) != 0 ? reinterpret_cast<void*>(module) : nullptr;
}
void* open_library(const std::string& name) { return reinterpret_cast<void*>(LoadLibraryA(name.c_str())); }
std::string loader_text(const std::string& name) { return text(name, ": error ", GetLastError()); }
#else
void* loaded_library(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }
void* open_library(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); }
std::string loader_text(const std::string& name) {
  const char* message = dlerror();
  return message == nullptr ? name + ": cannot be opened" : std::string(message);
}
#endif

}  // namespace

Library Library::open(std::string_view override_path, std::span<const std::string> names) {
  const std::string chosen(override_path);
  if (!chosen.empty()) names = {&chosen, 1};
  Library library;
  for (const std::string& name : names) {
    library.handle_ = loaded_library(name);
    if (library.handle_ == nullptr) continue;
    library.name_ = name;
    return library;
  }
  for (const std::string& name : names) {
    const bool in_folder = chosen.empty() && name.find('/') != std::string::npos;
    std::error_code ignored;
    if (in_folder && !std::filesystem::exists(name, ignored)) continue;
    library.handle_ = open_library(name);
    if (library.handle_ != nullptr) {
      library.name_ = name;
      return library;
    }
    if (!library.reason_.empty()) library.reason_ += '\n';
    library.reason_ += loader_text(name);
  }
  return library;
}

void* Library::find(const char* symbol) const noexcept {
  if (handle_ == nullptr) return nullptr;
#if defined(_WIN32)
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(handle_), symbol));
#else
  return dlsym(handle_, symbol);
#endif
}

std::string missing_text(const std::vector<std::string>& missing) {
  constexpr std::size_t shown = 3;
  std::string list;
  for (std::size_t i = 0; i < std::min(missing.size(), shown); ++i) list += text(i == 0 ? "" : ", ", missing[i]);
  if (missing.size() > shown) list += text(" and ", std::uint64_t{missing.size() - shown}, " more");
  return list;
}

}  // namespace tack

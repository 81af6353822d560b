// core/library.cpp -- opening shared libraries with the system's loader.
#include "core/library.h"

#include "core/text.h"

#if defined(_WIN32)
#  include <windows.h>
#else
#  include <dlfcn.h>
#endif

namespace tack {

namespace {

#if defined(_WIN32)
void* open_library(const std::string& name) { return reinterpret_cast<void*>(LoadLibraryA(name.c_str())); }
std::string loader_text(const std::string& name) { return text(name, ": error ", GetLastError()); }
#else
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

}  // namespace tack

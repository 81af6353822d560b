// core/library_posix.cpp -- opening shared libraries with dlopen.
#include <dlfcn.h>
#if defined(__linux__)
#  include <link.h>
#endif

#include "core/library.h"

namespace tack {

void* Library::find_loaded(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

void* Library::load(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); }

std::string Library::why_not(const std::string& name) {
  const char* message = dlerror();
  return message == nullptr ? name + ": cannot be opened" : std::string(message);
}

std::string Library::file_of([[maybe_unused]] void* handle) {
#if defined(__linux__)
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 && map != nullptr && map->l_name != nullptr) return map->l_name;
#endif
  return {};
}

void* Library::find(const char* symbol) const noexcept { return handle_ == nullptr ? nullptr : dlsym(handle_, symbol); }

}  // namespace tack

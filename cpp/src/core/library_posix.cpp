// core/library_posix.cpp -- opening shared libraries with dlopen.
#include <dlfcn.h>

#include "core/library.h"

namespace tack {

void* Library::find_loaded(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); }

void* Library::load(const std::string& name) { return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); }

std::string Library::why_not(const std::string& name) {
  const char* message = dlerror();
  return message == nullptr ? name + ": cannot be opened" : std::string(message);
}

void* Library::find(const char* symbol) const noexcept { return handle_ == nullptr ? nullptr : dlsym(handle_, symbol); }

}  // namespace tack

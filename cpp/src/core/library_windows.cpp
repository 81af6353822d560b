// core/library_windows.cpp -- opening shared libraries with LoadLibrary.
#include <windows.h>

#include <filesystem>
#include <system_error>

#include "core/library.h"

namespace tack {

void* Library::find_loaded(const std::string& name) {
  HMODULE module = nullptr;
  return GetModuleHandleExW(0, std::filesystem::path(name).c_str(), &module) != FALSE ? reinterpret_cast<void*>(module) : nullptr;
}

void* Library::load(const std::string& name) {
  // A library that is named with its folder finds those that it needs there, too.
  const std::filesystem::path path(name);
  const DWORD flags = path.is_absolute() ? LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR : 0;
  return reinterpret_cast<void*>(LoadLibraryExW(path.c_str(), nullptr, flags));
}

std::string Library::why_not(const std::string& name) {
  const auto number = static_cast<int>(GetLastError());
  return name + ": " + std::system_category().message(number) + " (error " + std::to_string(number) + ")";
}

std::string Library::file_of(void* handle) {
  std::wstring name(32768, L'\0');
  const DWORD length = GetModuleFileNameW(static_cast<HMODULE>(handle), name.data(), static_cast<DWORD>(name.size()));
  return std::filesystem::path(name.substr(0, length)).string();
}

void* Library::find(const char* symbol) const noexcept {
  if (handle_ == nullptr) return nullptr;
  return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle_), symbol));
}

}  // namespace tack

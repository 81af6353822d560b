// core/library.h -- a shared library opened at run time, with the loader's own words when it cannot be.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tack {

/// Movable handle to a shared library. Drivers start threads and keep process-wide state, so a library once opened stays loaded.
class Library {
 public:
  /// Opens the first of `names` that this process has loaded already, else the first that the system's loader finds; `override_path`,
  /// when not empty, is the only one that is tried. Names with a folder in front are left out where there is no such file.
  /// Never throws for a missing library: `loaded()` is false then and `reason()` has the loader's text for each name.
  static Library open(std::string_view override_path, std::span<const std::string> names);

  bool loaded() const noexcept { return handle_ != nullptr; }
  const std::string& name() const noexcept { return name_; }      ///< which of the names it was
  const std::string& reason() const noexcept { return reason_; }  ///< one line for each name that was tried and failed
  /// The file that was loaded, links resolved; the name where the system does not say.
  std::string path() const;
  /// The address of a symbol, or null.
  void* find(const char* symbol) const noexcept;

 private:
  // The system's loader: library_posix.cpp, library_windows.cpp. Handles are null when there is no such library; `why_not` explains the
  // last `load` of this thread.
  static void* find_loaded(const std::string& name);
  static void* load(const std::string& name);
  static std::string why_not(const std::string& name);
  // The file of a loaded library; empty where the system does not say.
  static std::string file_of(void* handle);

  void* handle_ = nullptr;
  std::string name_;
  std::string reason_;
};

}  // namespace tack

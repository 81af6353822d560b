// core/library.cpp -- the order in which shared libraries are looked for.
#include "core/library.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/native_function.h"
#include "core/text.h"

namespace tack {

Library Library::open(std::string_view override_path, std::span<const std::string> names) {
  const std::string chosen(override_path);
  if (!chosen.empty()) names = {&chosen, 1};
  Library library;
  for (const std::string& name : names) {
    library.handle_ = find_loaded(name);
    if (library.handle_ == nullptr) continue;
    library.name_ = name;
    return library;
  }
  for (const std::string& name : names) {
    const bool in_folder = chosen.empty() && name.find('/') != std::string::npos;
    std::error_code ignored;
    if (in_folder && !std::filesystem::exists(name, ignored)) continue;
    library.handle_ = load(name);
    if (library.handle_ != nullptr) {
      library.name_ = name;
      return library;
    }
    if (!library.reason_.empty()) library.reason_ += '\n';
    library.reason_ += why_not(name);
  }
  return library;
}

std::string Library::path() const {
  const std::string file = handle_ == nullptr ? std::string() : file_of(handle_);
  std::error_code failed;
  const std::filesystem::path resolved = std::filesystem::canonical(file, failed);
  return failed ? name_ : resolved.string();
}

std::string missing_text(const std::vector<std::string>& missing) {
  constexpr std::size_t shown = 3;
  std::string list;
  for (std::size_t i = 0; i < std::min(missing.size(), shown); ++i) list += text(i == 0 ? "" : ", ", missing[i]);
  if (missing.size() > shown) list += text(" and ", std::uint64_t{missing.size() - shown}, " more");
  return list;
}

}  // namespace tack

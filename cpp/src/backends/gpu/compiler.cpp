// backends/gpu/compiler.cpp -- options as words, and logs made short.
#include "backends/gpu/compiler.h"

#include <algorithm>

namespace tack::gpu {

namespace {
constexpr std::size_t shown_errors = 4, shown_lines = 24;
}

std::vector<std::string> words_of(std::string_view options) {
  std::vector<std::string> words;
  while (!options.empty()) {
    const std::size_t end = std::min(options.find(' '), options.size());
    if (end != 0) words.emplace_back(options.substr(0, end));
    options.remove_prefix(std::min(end + 1, options.size()));
  }
  return words;
}

std::string relevant_lines(std::string_view log) {
  std::vector<std::string_view> lines;
  for (std::string_view rest = log; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const auto has = [](std::string_view line, std::string_view word) { return line.find(word) != std::string_view::npos; };
  const auto is_error = [&](std::string_view line) { return has(line, "error:") || has(line, "error :") || has(line, "error #"); };
  std::string out;
  std::size_t errors = 0, shown = 0;
  bool inside = false;  // of a diagnostic that is shown; it ends at an empty line or at the next diagnostic
  for (const std::string_view line : lines) {
    const bool starts = is_error(line) || has(line, "warning:") || has(line, "warning #") || has(line, "remark");
    if (is_error(line)) {
      inside = errors < shown_errors;
      ++errors;
    } else if (starts || line.find_first_not_of(' ') == std::string_view::npos) {
      inside = false;
    }
    if (inside && shown++ < shown_lines) out += text("\n  ", line);
  }
  // No error in the usual form: the log as it is, shortened.
  for (std::size_t i = 0; errors == 0 && i < std::min(lines.size(), shown_lines); ++i) out += text("\n  ", lines[i]);
  if (errors > shown_errors) out += text("\n  ... and ", std::uint64_t{errors - shown_errors}, " more errors");
  return out;
}

}  // namespace tack::gpu

// core/unavailable.cpp -- the one form in which a device says that it cannot start.
#include "core/unavailable.h"

#include <string_view>

#include "core/text.h"

namespace tack {

namespace {

// Every line of `part`, indented; a loader's reason may have several.
void append_indented(std::string& message, std::string_view part, std::string_view indent) {
  while (!part.empty()) {
    const std::size_t end = part.find('\n');
    const std::string_view line = part.substr(0, end);
    if (!line.empty()) message += text('\n', indent, line);
    if (end == std::string_view::npos) return;
    part.remove_prefix(end + 1);
  }
}

}  // namespace

Error device_unavailable(const std::string& type, const std::string& problem, const std::string& reason, const std::string& requires_text,
                         const std::string& install) {
  std::string message = text("Cannot start the '", type, "' device: ", problem, '.');
  append_indented(message, reason, "  ");
  if (!requires_text.empty()) append_indented(message, text("Requires ", requires_text, install.empty() ? "." : ":"), "  ");
  append_indented(message, install, "    ");
  return Error({ErrorCode::unavailable, message, type, "start device", 0, {}});
}

}  // namespace tack

// engine/control.cpp -- settings from the environment, counters, trace and reports.
#include "control.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sim {
namespace {

std::string text_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

long number(const std::string& text) { return std::strtol(text.c_str(), nullptr, 0); }

long number_of(const char* name, long otherwise) {
  const std::string text = text_of(name);
  return text.empty() ? otherwise : number(text);
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

Settings read() {
  Settings s;
  s.devices = static_cast<int>(number_of("TACK_SIM_DEVICES", s.devices));
  for (const std::string& part : split(text_of("TACK_SIM_ARCH"), ',')) s.architectures.push_back(static_cast<int>(number(part)));
  s.memory = static_cast<std::size_t>(number_of("TACK_SIM_MEMORY", static_cast<long>(s.memory)));
  s.driver_version = static_cast<int>(number_of("TACK_SIM_DRIVER", s.driver_version));
  s.compiler_version = static_cast<int>(number_of("TACK_SIM_COMPILER_VERSION", s.compiler_version));
  const std::string order = text_of("TACK_SIM_ORDER");
  if (order == "delayed") s.order = Order::delayed;
  if (order == "record") s.order = Order::record;
  s.delay = std::chrono::microseconds(number_of("TACK_SIM_DELAY", s.delay.count()));
  s.timeout = number_of("TACK_SIM_TIMEOUT", s.timeout);
  s.check = number_of("TACK_SIM_CHECK", 1) != 0;
  s.undefined = number_of("TACK_SIM_UNDEFINED", 1) != 0;
  s.fail = text_of("TACK_SIM_FAIL");
  s.trace = text_of("TACK_SIM_TRACE");
  s.report = text_of("TACK_SIM_REPORT");
  s.cache = text_of("TACK_SIM_CACHE");
  s.compiler = text_of("TACK_SIM_CXX");
  s.support = text_of("TACK_SIM_SUPPORT");
  for (const std::string& part : split(text_of("TACK_SIM_ATTRIBUTES"), ',')) {
    const std::vector<std::string> sides = split(part, '=');
    if (sides.size() == 2) s.attributes[static_cast<int>(number(sides[0]))] = static_cast<int>(number(sides[1]));
  }
  return s;
}

void quote(std::ostringstream& out, std::string_view text) {
  out << '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      out << escaped;
    } else {
      out << c;
    }
  }
  out << '"';
}

template <class Map>
void object(std::ostringstream& out, const Map& map) {
  out << '{';
  const char* comma = "";
  for (const auto& [name, value] : map) {
    out << comma;
    quote(out, name);
    out << ": " << static_cast<long>(value);
    comma = ", ";
  }
  out << '}';
}

}  // namespace

int Settings::architecture(int device, int usual) const {
  const auto index = static_cast<std::size_t>(device);
  if (architectures.empty()) return usual;
  return index < architectures.size() ? architectures[index] : architectures.back();
}

const Settings& settings() {
  static const Settings* const all = new Settings(read());  // never destroyed: calls may come while the process ends
  return *all;
}

Control& Control::instance() {
  static Control* const control = new Control;
  return *control;
}

Control::Control() : tracing_(!settings().trace.empty()) {
  for (const std::string& wish : split(settings().fail, ',')) {
    const std::vector<std::string> parts = split(wish, ':');
    if (parts.size() == 3 && parts[0] == library_name) fail_at(number(parts[1]), static_cast<int>(number(parts[2])));
  }
}

CallSite::CallSite(const char* function) : name(function) {
  Control& control = Control::instance();
  const std::lock_guard lock(control.mutex_);
  control.sites_.push_back(this);
}

int Control::fail_now() {
  const std::lock_guard lock(mutex_);
  fail_at_ = 0;
  ++injected_;
  return fail_code_;
}

void Control::fail_at(long n, int code) {
  const std::lock_guard lock(mutex_);
  fail_code_ = code;
  fail_at_ = n == 0 ? 0 : total_ + n;
}

void Control::trace(std::string_view line) {
  if (!tracing_) return;
  const std::lock_guard lock(mutex_);
  if (settings().trace == "stderr") {
    std::fprintf(stderr, "%s: %.*s\n", library_name, static_cast<int>(line.size()), line.data());
  } else {
    std::ofstream(settings().trace, std::ios::app) << library_name << ' ' << getpid() << ": " << line << '\n';
  }
}

void Control::report(const std::string& text) {
  const std::lock_guard lock(mutex_);
  std::fprintf(stderr, "simulator of %s: %s\n", library_name, text.c_str());
  if (reports_.size() < 100) reports_.push_back(text);
}

std::atomic<long>& Control::counter(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return counters_.try_emplace(std::string(name), 0).first->second;
}

std::atomic<long>& Control::tally(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return tallies_.try_emplace(std::string(name), 0).first->second;
}

std::string Control::json() {
  const std::lock_guard lock(mutex_);
  std::map<std::string, long> calls;
  for (const CallSite* site : sites_) calls[site->name] += site->count;
  std::ostringstream out;
  out << "{\"library\": \"" << library_name << "\", \"pid\": " << getpid() << ", \"total\": " << total_ << ", \"injected\": " << injected_;
  out << ", \"calls\": ";
  object(out, calls);
  out << ", \"counters\": ";
  object(out, counters_);
  out << ", \"tallies\": ";
  object(out, tallies_);
  out << ", \"reports\": [";
  for (std::size_t i = 0; i < reports_.size(); ++i) {
    if (i > 0) out << ", ";
    quote(out, reports_[i]);
  }
  out << "]}";
  return out.str();
}

void Control::write_report() {
  if (settings().report.empty()) return;
  std::ofstream(settings().report + "/" + library_name + "-" + std::to_string(getpid()) + ".json") << json() << '\n';
}

}  // namespace sim

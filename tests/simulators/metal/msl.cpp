// metal/msl.cpp -- finds kernels, their parameters and their attributes in the text; comments and strings are blanked first.
#include "msl.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <vector>

namespace sim::metal {
namespace {

constexpr const char* name = "program_source";
constexpr int first_texture = 40;  // textures are numbered from here, as in msl_builtins.h

// Parameters that the hardware gives, by their attribute; what a kernel function is made of in msl_builtins.h has the same numbers.
const std::map<std::string, int>& places() {
  static const std::map<std::string, int> all{{"thread_position_in_threadgroup", 100},
                                              {"threadgroup_position_in_grid", 101},
                                              {"threads_per_threadgroup", 102},
                                              {"thread_position_in_grid", 103},
                                              {"threadgroups_per_grid", 104}};
  return all;
}

std::string at_line(const std::string& text, std::size_t at, const std::string& what) {
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
  return std::string(name) + ":" + std::to_string(line) + ":1: error: " + what + "\n";
}

void blank(std::string& text, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to && i < text.size(); ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

// The end of a list of parameters that starts at `open`, and the places of its commas.
std::size_t end_of_list(const std::string& text, std::size_t open, std::vector<std::size_t>& commas) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[' || c == '<') ++depth;
    if (c == ')' || c == ']' || c == '>') --depth;
    if (c == ',' && depth == 1) commas.push_back(i);
    if (depth == 0) return i;
  }
  return std::string::npos;
}

// The number of a parameter: its buffer's, or that of what the hardware gives; -1 for neither.
int place_of(const std::string& parameter) {
  static const std::regex attribute(R"(\[\[\s*(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*\]\])");
  std::smatch found;
  if (!std::regex_search(parameter, found, attribute)) return -1;
  if (found[1] == "buffer" && found[2].matched) return std::atoi(found[2].str().c_str());
  if (found[1] == "texture" && found[2].matched) return first_texture + std::atoi(found[2].str().c_str());
  const auto known = places().find(found[1]);
  return known == places().end() ? -1 : known->second;
}

// The kernels of the text, each with the C++ expression for a function that takes its buffers.
std::string find_kernels(const std::string& text, std::vector<Kernel>& kernels) {
  static const std::regex head(R"((?:\[\[\s*max_total_threads_per_threadgroup\s*\(\s*(\d+)\s*\)\s*\]\]\s*)?\bkernel\s+void\s+(\w+)\s*\()");
  for (std::sregex_iterator it(text.begin(), text.end(), head), end; it != end; ++it) {
    const auto at = static_cast<std::size_t>(it->position()), open = at + static_cast<std::size_t>(it->length()) - 1;
    Kernel kernel;
    kernel.name = (*it)[2];
    kernel.max_threads = (*it)[1].matched ? static_cast<unsigned>(std::atoi((*it)[1].str().c_str())) : 0;
    std::vector<std::size_t> ends;
    const std::size_t close = end_of_list(text, open, ends);
    if (close == std::string::npos) return at_line(text, at, "expected ')'");
    ends.push_back(close);
    kernel.function = "(__sim_entry<" + kernel.name;
    for (std::size_t from = open + 1; const std::size_t to : ends) {
      const std::string parameter = text.substr(from, to - from);
      from = to + 1;
      if (parameter.find_first_not_of(" \n") == std::string::npos) continue;
      const int place = place_of(parameter);
      if (place < 0) return at_line(text, from, "a kernel's parameter needs an attribute that says what it is: '" + parameter + "'");
      if (place > 30 && place < first_texture)
        return at_line(text, from, "'buffer' attribute parameter is out of bounds: must be between 0 and 30");
      kernel.function += ", " + std::to_string(place);
    }
    kernel.function += ">)";
    kernels.push_back(kernel);
  }
  return {};
}

// Functions that differ in the address spaces of their parameters alone are one function to the host: all but the first are blanked.
void blank_overloads(const std::string& code, std::string& text) {
  static const std::regex head(R"(\bstatic\s+inline\s+\w+\s+(\w+\([^)]*\))\s*\{)"), space(R"(\b(?:device|threadgroup|thread|constant)\s+)");
  std::set<std::string> seen;
  for (std::sregex_iterator it(code.begin(), code.end(), head), end; it != end; ++it) {
    if (seen.insert(std::regex_replace((*it)[1].str(), space, "")).second) continue;
    const auto at = static_cast<std::size_t>(it->position());
    std::size_t to = at + static_cast<std::size_t>(it->length());
    for (int depth = 1; depth > 0 && to < code.size(); ++to) depth += code[to] == '{' ? 1 : code[to] == '}' ? -1 : 0;
    blank(text, at, to);
  }
}

}  // namespace

Translated translate(std::string_view given, bool fast_math) {
  Translated out;
  std::string text(given);
  std::string code = blanked(given);  // has the same places
  out.problem = find_kernels(code, out.request.kernels);
  if (!out.problem.empty()) return out;
  // What Metal contracts unless it is told not to.
  const bool contract = fast_math || text.find("#pragma METAL fp contract(off)") == std::string::npos;
  static const std::regex library(R"(#include <metal_stdlib>)"), attribute(R"(\[\[[^\[\]]*\]\])");
  static const std::regex shared(R"(\bthreadgroup(\s+\w+\s+\w+\s*\[[^;]*;))");
  for (const std::regex& part : {library, attribute}) {
    for (std::sregex_iterator it(code.begin(), code.end(), part), end; it != end; ++it)
      blank(text, static_cast<std::size_t>(it->position()), static_cast<std::size_t>(it->position() + it->length()));
  }
  blank_overloads(code, text);
  out.request.text = mark_shared(std::regex_replace(text, shared, "__shared__$1"));
  out.request.name = name;
  out.request.builtins = "msl_builtins.h";
  if (contract) out.request.options.emplace_back("-fexpensive-optimizations");  // where GCC contracts
#if defined(__x86_64__)
  if (contract) out.request.options.emplace_back("-mfma");
#endif
  out.request.options.emplace_back(contract ? "-ffp-contract=fast" : "-ffp-contract=off");
  return out;
}

}  // namespace sim::metal

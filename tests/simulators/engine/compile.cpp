// engine/compile.cpp -- runs the host's compiler and linker.
#include "compile.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "control.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

// A fingerprint of 128 bits: two FNV-1a sums from different starts.
std::string digest(const std::string& text) {
  std::uint64_t a = 14695981039346656037ull, b = 0x9e3779b97f4a7c15ull;
  for (const char c : text) {
    a = (a ^ static_cast<unsigned char>(c)) * 1099511628211ull;
    b = (b ^ static_cast<unsigned char>(c)) * 0xd6e8feb86659fd93ull;
    b ^= b >> 32;
  }
  char out[40];
  std::snprintf(out, sizeof out, "%016llx%016llx", static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  return out;
}

// Runs a program; what it writes on both outputs is added to the log.
bool execute(const std::vector<std::string>& command, std::string& log) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  // The compiler runs in the plain locale and without what the process under test has preloaded.
  std::vector<char*> environment;
  std::string locale = "LC_ALL=C";
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string_view variable(*e);
    if (!variable.starts_with("LD_PRELOAD=") && !variable.starts_with("LC_ALL=")) environment.push_back(*e);
  }
  environment.push_back(locale.data());
  environment.push_back(nullptr);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environment.data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    log += command[0] + " cannot be started";
    return false;
  }
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::read(ends[0], buffer, sizeof buffer);
    if (n > 0) {
      log.append(buffer, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      break;
    }
  }
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::vector<std::string> flags(const CompileRequest& request) {
  std::vector<std::string> all{"-O1",
                               "-std=c++17",
                               "-fPIC",
                               "-undef",  // no macros of this machine or compiler
                               "-nostdinc",
                               "-fno-exceptions",
                               "-fno-rtti",
                               "-fno-gnu-unique",
                               "-fno-strict-aliasing",
                               "-fno-math-errno",
                               "-fno-asynchronous-unwind-tables",
                               "-fno-semantic-interposition",
                               "-fstack-clash-protection",  // whatever its size, a frame past the stack's end meets the guard
                               "-pedantic-errors",
                               "-Wno-unknown-pragmas",
                               "-fdiagnostics-color=never",
                               "-fno-diagnostics-show-caret",
                               "-fno-diagnostics-show-option"};
  if (settings().check) {
    all.insert(all.end(), {"-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0", "--param", "tsan-distinguish-volatile=1"});
  }
  if (settings().undefined) {
    all.insert(all.end(), {"-fsanitize=shift,signed-integer-overflow,integer-divide-by-zero,float-cast-overflow",
                           "-fsanitize-undefined-trap-on-error"});
  } else {
    all.emplace_back("-fwrapv");
  }
  all.insert(all.end(), request.options.begin(), request.options.end());
  return all;
}

std::string whole_text(const CompileRequest& request) {
  std::string text = "#line 1 \"" + request.name + "\"\n" + request.text + "\n#line 1 \"simulator\"\n";
  for (std::size_t i = 0; i < request.kernels.size(); ++i) {
    const Kernel& k = request.kernels[i];
    text += "SIM_KERNEL(" + std::to_string(i) + ", \"" + k.name + "\", " + k.function + ", " + std::to_string(k.max_threads) + ")\n";
  }
  return text;
}

// A folder that is gone with this object.
struct Scratch {
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "simulated-compile-XXXXXX").string();
    if (mkdtemp(pattern.data()) != nullptr) path = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path path;
};

std::size_t skip_blank(std::string_view text, std::size_t at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0) ++at;
  return at;
}

// The text after a balanced pair of parentheses that starts at `at`.
std::size_t skip_group(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == '(') ++depth;
    if (text[at] == ')' && --depth == 0) return at + 1;
  }
  return at;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view word(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_word(text[end])) ++end;
  return text.substr(at, end - at);
}

}  // namespace

std::string blanked(std::string_view text) {
  std::string out(text);
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < out.size(); ++i) {
      if (out[i] != '\n') out[i] = ' ';
    }
  };
  for (std::size_t i = 0; i + 1 < text.size();) {
    if (text[i] == '/' && text[i + 1] == '/') {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      blank(i, end);
      i = end;
    } else if (text[i] == '/' && text[i + 1] == '*') {
      const std::size_t found = text.find("*/", i + 2);
      const std::size_t end = found == std::string_view::npos ? text.size() : found + 2;
      blank(i, end);
      i = end;
    } else if (text[i] == '"') {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] != '"' && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      blank(i + 1, end);
      i = end + 1;
    } else {
      ++i;
    }
  }
  return out;
}

Compiled compile(const CompileRequest& request) {
  Compiled result;
  const fs::path support = settings().support;
  const std::string compiler = settings().compiler.empty() ? "g++" : settings().compiler;
  const std::string text = whole_text(request);
  std::string key = compiler + '\n' + settings().support + '\n' + request.builtins + '\n';
  for (const std::string& flag : flags(request)) key += flag + '\n';
  fs::path kept;
  if (!settings().cache.empty()) {
    kept = fs::path(settings().cache) / (digest(key + text) + ".so");
    result.object = read(kept);
    result.ok = !result.object.empty();
    if (result.ok) return result;
  }
  const Scratch scratch;
  const std::string source = (scratch.path / "text.cpp").string(), object = (scratch.path / "text.o").string();
  const std::string library = (scratch.path / "text.so").string();
  std::ofstream(source, std::ios::binary) << text;
  std::vector<std::string> command{compiler};
  for (const std::string& flag : flags(request)) command.push_back(flag);
  for (const std::string& part :
       {std::string("-include"), (support / request.builtins).string(), std::string("-c"), source, std::string("-o"), object}) {
    command.push_back(part);
  }
  if (!execute(command, result.log)) return result;
  std::string linking;
  if (!execute({"ld", "-shared", "-Bsymbolic", "--no-undefined", "-o", library, object, (support / "hooks.o").string(),
                (support / "libgcc.a").string(), "-lm", "-lc", "-L/usr/lib64", "-L/lib64"},
               linking)) {
    result.log += linking;
    return result;
  }
  result.object = read(library);
  result.ok = !result.object.empty();
  if (result.ok && !kept.empty()) {
    const std::string temporary = kept.string() + '.' + scratch.path.filename().string();
    std::ofstream(temporary, std::ios::binary).write(result.object.data(), static_cast<std::streamsize>(result.object.size()));
    std::error_code ignored;
    fs::rename(temporary, kept, ignored);
  }
  return result;
}

std::vector<Kernel> find_kernels(std::string_view given) {
  const std::string text = blanked(given);
  std::vector<Kernel> found;
  for (std::size_t at = text.find("__global__"); at != std::string::npos; at = text.find("__global__", at)) {
    at += 10;
    Kernel kernel;
    std::string last;
    for (std::size_t p = skip_blank(text, at); p < text.size(); p = skip_blank(text, p)) {
      const std::string_view w = word(text, p);
      if (w.empty()) {
        if (text[p] == '(' && !last.empty()) kernel.name = last;
        break;
      }
      p += w.size();
      if (w == "__launch_bounds__" || w == "__attribute__" || w == "__align__") {
        p = skip_blank(text, p);
        if (w == "__launch_bounds__") kernel.max_threads = static_cast<unsigned>(std::strtoul(text.c_str() + p + 1, nullptr, 0));
        p = skip_group(text, p);
      } else {
        last = w;
      }
    }
    kernel.function = kernel.name;
    // Only C's linkage keeps the plain name; others are found by name expressions.
    const std::string_view before = given.substr(0, at).substr(text.substr(0, at).find_last_of(";}") + 1);  // npos + 1 is the text's start
    if (before.find("extern \"C\"") == std::string_view::npos && given.find("extern \"C\" {") == std::string_view::npos) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Kernel& k) { return k.name == kernel.name; });
    if (!kernel.name.empty() && !known) found.push_back(kernel);
  }
  return found;
}

std::string mark_shared(std::string_view given) {
  const std::string text = blanked(given);
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = text.find("__shared__"); at != std::string::npos; at = text.find("__shared__", at)) {
    const std::size_t end = text.find(';', at);
    if (end == std::string::npos) break;
    // The names: each the last word before a '[', a ',' or the end, outside brackets.
    std::vector<std::string> names;
    std::string last;
    int depth = 0;
    for (std::size_t p = at + 10; p <= end;) {
      const char c = text[p];
      if (is_word(c)) {
        const std::string_view w = word(text, p);
        if (depth == 0) last = w;
        p += w.size();
        continue;
      }
      if (c == '(' || c == '{') ++depth;
      if (c == ')' || c == '}') --depth;
      if (depth == 0 && (c == '[' || c == ',' || c == ';') && !last.empty()) {
        names.push_back(last);
        last.clear();
      }
      if (c == '[') ++depth;
      if (c == ']') --depth;
      ++p;
    }
    // Is it `extern __shared__`?
    std::size_t before = at;
    while (before > 0 && std::isspace(static_cast<unsigned char>(text[before - 1])) != 0) --before;
    const bool dynamic = before >= 6 && text.compare(before - 6, 6, "extern") == 0;
    out.append(given.substr(copied, at - copied));
    if (dynamic) {
      out.append(given.substr(at + 10, end - at - 10)).append(" __asm__(\"sim_dynamic_shared\");");
    } else {
      out.append(given.substr(at, end + 1 - at));
      for (const std::string& name : names) out.append(" __sim_escape(").append(name).append(");");
    }
    copied = end + 1;
    at = end;
  }
  out.append(given.substr(copied));
  return out;
}

}  // namespace sim

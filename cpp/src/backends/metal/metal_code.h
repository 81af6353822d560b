// backends/metal/metal_code.h -- what the disk cache keeps of a kernel: an archive of Metal's, and the MSL text for where that is of no
// use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/metal/metal.h"
#include "core/log.h"
#include "tack/kernel.hpp"

namespace tack::metal {

/// Threads of an entry's groups.
std::uint32_t group_of(const EntryPoint& entry, std::uint32_t block) noexcept;

/// Compiles source.text and answers the archive and the text as one binary. Throws Error(compile) with the compiler's relevant lines.
std::vector<std::byte> compile(const Metal& metal, Log& log, abi::Object device, const KernelSource& source, std::uint32_t block);

/// The functions of a binary, and machine code for them. Lives while a kernel is loaded.
///
/// Takes the functions out of a binary's archive, or, where this system does not take that, compiles its text again. Throws Error(corrupt)
/// for bytes that `compile` has not made.
class Code {
 public:
  Code(const Metal& metal, Log& log, abi::Object device, std::span<const std::byte> binary, const std::string& kernel);
  /// The code of one entry for groups of `threads`.
  Ref pipeline(const std::string& symbol, std::uint32_t threads, abi::PipelineFacts& facts);

 private:
  bool open_archive(std::span<const std::byte> archive);
  void compile_text();
  const Metal& metal_;
  Log& log_;
  const abi::Object device_;
  const std::string& kernel_;
  std::string text_;
  bool fast_math_ = false;
  bool compiled_ = false;  // the library is the text's, not the archive's
  Ref library_, archive_;
};

}  // namespace tack::metal

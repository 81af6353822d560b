// core/kernel_source_io.h -- a KernelSource as bytes, read with every length checked; and the check of what a KernelSource says.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tack/error.hpp"
#include "tack/kernel.hpp"

namespace tack {

/// All of a kernel but its text, and the names of its binary and of the compiler that made it: what a later process needs for its first
/// launch. Kept in the disk cache under the front end's key.
struct FrontEntry {
  KernelSource source;   ///< without text
  std::string content;   ///< the digest under which the binary lies
  std::string compiler;  ///< Backend::compiler_version of then
};

std::vector<std::byte> write_front_entry(const KernelSource& source, const std::string& content, const std::string& compiler);
/// Throws Error(corrupt) for bytes that are damaged, of another version, or say something impossible. Never undefined behaviour.
FrontEntry read_front_entry(std::span<const std::byte> bytes);

std::vector<std::byte> write_kernel_source(const KernelSource& source);
KernelSource read_kernel_source(std::span<const std::byte> bytes);

/// How many operands an extent may have at a time.
inline constexpr std::size_t max_extent_depth = 64;

/// Checks that indices, ranks, types and extents fit together, so that whoever launches need not. Throws Error(code) with the place.
void validate(const KernelSource& source, ErrorCode code);

}  // namespace tack

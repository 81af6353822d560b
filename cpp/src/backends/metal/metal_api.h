// backends/metal/metal_api.h -- all that tack asks of Metal, as C functions over opaque objects: metal.def lists them, metal_api.mm
// implements them on Apple's systems, and tests bring a library of their own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tack::metal::abi {

/// A retained object of Metal's; null is none. Whoever gets one from a function releases it.
using Object = void*;

/// What a function answers: done, or not, and then its Problem is filled.
enum class Status : int { done = 0, failed = 1 };

/// Why something failed, as an NSError has it. An empty domain: Metal answered no object and no error.
struct Problem {
  std::int64_t code;
  char domain[64];
  char text[8000];  ///< cut to fit; never without its end
};

// NSErrors of Metal: X(constant, Apple's name, value); sources: MTLLibrary.h (MTLLibraryError) and MTLCommandBuffer.h
// (MTLCommandBufferError).
#define TACK_METAL_LIBRARY_ERRORS(X)                   \
  X(compile_failure, MTLLibraryErrorCompileFailure, 3) \
  X(compile_warning, MTLLibraryErrorCompileWarning, 4) \
  X(function_not_found, MTLLibraryErrorFunctionNotFound, 5)
#define TACK_METAL_COMMAND_ERRORS(X)                           \
  X(timeout, MTLCommandBufferErrorTimeout, 2)                  \
  X(page_fault, MTLCommandBufferErrorPageFault, 3)             \
  X(access_revoked, MTLCommandBufferErrorAccessRevoked, 4)     \
  X(not_permitted, MTLCommandBufferErrorNotPermitted, 7)       \
  X(out_of_memory, MTLCommandBufferErrorOutOfMemory, 8)        \
  X(invalid_resource, MTLCommandBufferErrorInvalidResource, 9) \
  X(stack_overflow, MTLCommandBufferErrorStackOverflow, 12)
#define X(constant, original, value) constant = (value),
enum class LibraryError : std::int64_t { TACK_METAL_LIBRARY_ERRORS(X) };
enum class CommandError : std::int64_t { TACK_METAL_COMMAND_ERRORS(X) };
#undef X
inline constexpr const char* library_domain = "MTLLibraryErrorDomain";
inline constexpr const char* command_domain = "MTLCommandBufferErrorDomain";

struct DeviceFacts {
  char name[128];
  std::uint32_t family;       ///< of Apple's own GPUs: 7 is M1, 8 M2, ...; 0: another maker's
  std::uint32_t max_threads;  ///< of a group
  std::uint64_t group_bytes;  ///< memory that a group's threads share
  std::uint32_t filters;      ///< 1: textures of 32-bit floats can be sampled between their texels
};

/// A kernel's code for one size of groups.
struct PipelineFacts {
  std::uint32_t max_threads;  ///< of a group that this code can have
};

struct Binding {
  Object buffer;
  std::size_t offset;
};

/// One launch. Buffers are bound to 0, 1, ...; behind them come the constants, if there are any. Textures have numbers of their own.
struct Dispatch {
  Object pipeline;
  const Binding* buffers;
  std::size_t count;
  const Object* textures;
  std::size_t texture_count;
  const void* constants;       ///< taken at the call
  std::size_t constant_bytes;  ///< at most `most_constant_bytes`; 0: none
  std::uint64_t groups;
  std::uint32_t threads;  ///< of a group
};

/// Where given work is.
enum class Progress : int { pending = 0, done = 1, failed = 2 };

inline constexpr std::size_t most_constant_bytes = 4096;  // of setBytes
inline constexpr std::size_t word_bytes = 4;              // of blit commands on macOS
inline constexpr std::uint32_t most_buffers = 31;         // that a kernel takes
inline constexpr std::uint32_t most_textures = 128;       // likewise
inline constexpr std::uint32_t most_texels = 2048;        // along each dimension of a 3-D texture

}  // namespace tack::metal::abi

// tack/error.hpp -- the one exception of libtack: what failed, where, and what to do next.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "tack/export.hpp"

namespace tack {

/// What kind of failure it is; the bindings turn each into one Python exception (named beside it).
enum class ErrorCode : std::uint8_t {
  invalid_argument,  ///< ValueError: unknown device or option, launch limit, shapes, two devices, read-only
  type_mismatch,     ///< TypeError: wrong argument kind, dtype or count
  overflow,          ///< OverflowError: an integer that does not fit its parameter
  out_of_memory,     ///< MemoryError: with the sizes; the device stays usable
  unavailable,       ///< RuntimeError: a device that cannot start
  unsupported,       ///< tack.UnsupportedError: a capability the backend lacks
  compile,           ///< tack.CompileError: the backend's compiler refused the source
  corrupt,           ///< RuntimeError: an object, bundle or cache entry that is damaged
  io,                ///< OSError: a file could not be read or written
  driver,            ///< RuntimeError: a native call failed
  internal,          ///< RuntimeError: a defect in tack
  index,             ///< IndexError: a kernel built with checks used an index outside of its array
  assertion,         ///< AssertionError: an assert of a kernel built with checks failed
};

/// Immutable and cheap to copy; `what()` is the whole message, ready to show.
class TACK_API Error : public std::exception {
 public:
  struct Fields {
    ErrorCode code = ErrorCode::internal;
    std::string message;    ///< what failed, with which value, and what to do next
    std::string backend;    ///< "cpu", "cuda", ... or empty
    std::string operation;  ///< the native call or the step, e.g. "cuMemAlloc_v2", "load object"
    std::int64_t native_code = 0;
    std::string native_name;  ///< e.g. "CUDA_ERROR_OUT_OF_MEMORY"
    bool queued = false;      ///< the failure is that of work queued earlier, not of the call that reports it
  };

  Error(ErrorCode code, std::string message);
  explicit Error(Fields fields);
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;
  ~Error() override;

  const char* what() const noexcept override;
  ErrorCode code() const noexcept;
  const Fields& fields() const noexcept;
  /// The same error with `context` ("Kernel 'k'") put in front of its message.
  Error with_context(const std::string& context) const;

 private:
  std::shared_ptr<const Fields> fields_;  // message in it is the whole text of what()
};

}  // namespace tack

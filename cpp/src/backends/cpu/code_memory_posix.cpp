// backends/cpu/code_memory_posix.cpp -- mmap and mprotect for machine code.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "backends/cpu/code_memory.h"
#include "tack/error.hpp"

namespace tack::cpu {

namespace {

Error system_error(ErrorCode code, const std::string& message, const char* call, int number) {
  Error::Fields fields;
  fields.code = code;
  fields.backend = "cpu";
  fields.operation = call;
  fields.native_code = number;
  fields.message = message + " (" + call + ": " + std::generic_category().message(number) + ").";
  return Error(std::move(fields));
}

}  // namespace

std::size_t CodeMemory::page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

CodeMemory::CodeMemory(std::size_t bytes) : size_((bytes + page_bytes() - 1) / page_bytes() * page_bytes()) {
  void* pages = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED)
    throw system_error(ErrorCode::out_of_memory, "No memory for " + std::to_string(size_) + " bytes of machine code", "mmap", errno);
  data_ = static_cast<std::byte*>(pages);
}

CodeMemory::~CodeMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

void CodeMemory::protect(std::size_t offset, std::size_t bytes, Access access) {
  const int protection = access == Access::execute ? PROT_READ | PROT_EXEC : PROT_READ;
  if (mprotect(data_ + offset, bytes, protection) != 0) {
    const bool code = access == Access::execute;
    throw system_error(ErrorCode::driver,
                       std::string("The system does not let this process make memory ") +
                           (code ? "executable; kernels on the CPU need that, so a policy that forbids it (SELinux execmem, "
                                   "systemd MemoryDenyWriteExecute) has to be lifted"
                                 : "read-only"),
                       "mprotect", errno);
  }
  if (access == Access::execute) {
    auto* begin = reinterpret_cast<char*>(data_ + offset);
    __builtin___clear_cache(begin, begin + bytes);
  }
}

CodeMemory::CodeMemory(CodeMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

}  // namespace tack::cpu

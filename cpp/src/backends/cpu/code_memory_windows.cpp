// backends/cpu/code_memory_windows.cpp -- VirtualAlloc and VirtualProtect for machine code.
#include <windows.h>

#include <string>
#include <system_error>
#include <utility>

#include "backends/cpu/code_memory.h"
#include "tack/error.hpp"

namespace tack::cpu {

namespace {

Error system_error(ErrorCode code, const std::string& message, const char* call) {
  const auto number = static_cast<int>(GetLastError());
  Error::Fields fields;
  fields.code = code;
  fields.backend = "cpu";
  fields.operation = call;
  fields.native_code = number;
  fields.message = message + " (" + call + ": " + std::system_category().message(number) + ").";
  return Error(std::move(fields));
}

}  // namespace

std::size_t CodeMemory::page_bytes() noexcept {
  static const auto bytes = [] {
    SYSTEM_INFO info{};
    GetSystemInfo(&info);
    return std::size_t{info.dwPageSize};
  }();
  return bytes;
}

CodeMemory::CodeMemory(std::size_t bytes) : size_((bytes + page_bytes() - 1) / page_bytes() * page_bytes()) {
  data_ = static_cast<std::byte*>(VirtualAlloc(nullptr, size_, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
  if (data_ == nullptr)
    throw system_error(ErrorCode::out_of_memory, "No memory for " + std::to_string(size_) + " bytes of machine code", "VirtualAlloc");
}

CodeMemory::~CodeMemory() {
  if (data_ != nullptr) VirtualFree(data_, 0, MEM_RELEASE);
}

void CodeMemory::protect(std::size_t offset, std::size_t bytes, Access access) {
  const bool code = access == Access::execute;
  DWORD before = 0;
  if (VirtualProtect(data_ + offset, bytes, code ? PAGE_EXECUTE_READ : PAGE_READONLY, &before) == FALSE) {
    throw system_error(ErrorCode::driver,
                       std::string("The system does not let this process make memory ") +
                           (code ? "executable; kernels on the CPU need that, so a policy that forbids it (arbitrary code guard) has to be "
                                   "lifted"
                                 : "read-only"),
                       "VirtualProtect");
  }
  if (code) FlushInstructionCache(GetCurrentProcess(), data_ + offset, bytes);
}

CodeMemory::CodeMemory(CodeMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

}  // namespace tack::cpu

// engine/module.h -- a loaded module of compiled kernels.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "../device/abi.h"

namespace sim {

// A shared object made by the compiler stand-in, loaded into this process; every load is a copy with variables of its own.
class Module {
 public:
  // Null, and why, where the bytes are no such object.
  static std::shared_ptr<Module> load(std::string_view object, std::string& why);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const SimKernel* find(std::string_view kernel) const;
  const SimModule& abi() const { return *abi_; }
  bool contains(unsigned long address) const { return address - image_ < image_size_; }
  // Bytes of shared memory that the module's kernels declare themselves.
  std::size_t shared_size() const { return static_cast<std::size_t>(abi_->shared_end - abi_->shared); }

 private:
  Module() = default;
  void* library_ = nullptr;
  const SimModule* abi_ = nullptr;
  unsigned long image_ = 0, image_size_ = 0;
};

}  // namespace sim

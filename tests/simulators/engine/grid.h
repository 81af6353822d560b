// engine/grid.h -- runs a kernel over a grid of blocks of threads, with barriers, checks and faults.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "module.h"

namespace sim {

struct Launch {
  std::shared_ptr<Module> module;
  const SimKernel* kernel = nullptr;
  std::vector<std::byte> arguments;  // each at a multiple of 16
  SimIndex grid{1, 1, 1}, block{1, 1, 1};
  std::size_t shared = 0;  // dynamic
  int device = 0;

  // Copies the arguments from what an array of pointers says.
  void take(void* const* parameters);
};

struct Fault {
  enum class Kind { address, misaligned, assertion, trap, timeout, failure } kind;
  std::string text;
};

// Runs it on the calling thread. A fault ends it, wherever it is.
std::optional<Fault> run(const Launch& launch);

}  // namespace sim

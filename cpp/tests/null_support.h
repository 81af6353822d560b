// null_support.h -- what tests on the null device share: a runtime without a cache, and a kernel of one argument.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "tack/array.hpp"
#include "tack/kernel.hpp"
#include "tack/runtime.hpp"

namespace tack::test {

inline std::shared_ptr<Runtime> quiet() {
  Config config;
  config.cache = false;
  return Runtime::create(config);
}

/// A kernel NAME of the null device whose entry takes the word `slot` of the f32 array `argument`, for each index of its first dimension.
inline KernelSource null_source(const std::string& name, ArgumentSpec argument, ParamSlot slot) {
  argument.dtype = f32;
  KernelSource source;
  source.name = name;
  source.target = "null";
  source.arch = "none";
  source.text = "this is no language";
  source.arguments.push_back(argument);
  EntryPoint entry;
  entry.symbol = name;
  entry.params = {slot};
  source.entries.push_back(entry);
  Step step;
  step.stop = {{{.op = ExtentOp::shape}}};
  source.steps.push_back(step);
  return source;
}

}  // namespace tack::test

// bench_object_loader.cpp -- how long it takes to load and free an object; run by hand: bench_object_loader FILE.o...
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/object_loader.h"

namespace {

using Clock = std::chrono::steady_clock;

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

void measure(const char* path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  std::vector<double> load, free;
  for (int i = 0; i < 1001; ++i) {
    const auto start = Clock::now();
    auto object = tack::cpu::load_object(bytes, tack::cpu::runtime_symbol, path);
    const auto loaded = Clock::now();
    object.reset();
    load.push_back(microseconds(loaded - start));
    free.push_back(microseconds(Clock::now() - loaded));
  }
  std::nth_element(load.begin(), load.begin() + 500, load.end());
  std::nth_element(free.begin(), free.begin() + 500, free.end());
  std::printf("%7zu bytes: load %5.1f us, free %5.1f us  %s\n", text.size(), load[500], free[500], path);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i) measure(argv[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

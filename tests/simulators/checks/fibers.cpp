// checks/fibers.cpp -- a program that switches between fibers and checks that each kept its registers and its stack.
#include <cmath>
#include <cstdio>
#include <vector>

#include "../engine/fiber.h"

namespace {

constexpr std::size_t count = 5;
sim::Fibers* fibers = nullptr;
std::size_t running = 0;
std::vector<double> results(count);

// Integers and floating-point numbers that live across switches, in registers and on the stack.
void body() {
  const std::size_t me = running;
  double sum = static_cast<double>(me), weights[64];
  long steps = static_cast<long>(me);
  for (int i = 0; i < 64; ++i) weights[i] = std::sqrt(static_cast<double>(i) + sum);
  for (int round = 0; round < 64; ++round) {
    sum += weights[round] * static_cast<double>(steps);
    steps += 3;
    fibers->back();
  }
  results[me] = sum;
}

double expected(std::size_t me) {
  double sum = static_cast<double>(me);
  const double offset = sum;
  long steps = static_cast<long>(me);
  for (int round = 0; round < 64; ++round) {
    sum += std::sqrt(static_cast<double>(round) + offset) * static_cast<double>(steps);
    steps += 3;
  }
  return sum;
}

}  // namespace

int main() {
  sim::Fibers all(body);
  fibers = &all;
  for (int turn = 0; turn < 2; ++turn) {  // the second time what is left of the first is forgotten
    results.assign(count, 0.0);
    for (int round = 0; round < (turn == 0 ? 10 : 65); ++round) {
      for (running = 0; running < count; ++running) all.resume(all.get(running));
    }
    if (turn == 0) all.reset();
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (results[i] != expected(i)) {
      std::printf("fiber %zu: %.17g, expected %.17g\n", i, results[i], expected(i));
      return 1;
    }
  }
  return 0;
}

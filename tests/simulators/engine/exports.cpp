// engine/exports.cpp -- what every stand-in library exports beside its driver's functions, for tests in the same process.
#include <cstring>
#include <string>

#include "control.h"

#pragma GCC visibility push(default)
extern "C" {

// The counters as JSON; the text lives until the thread asks again.
const char* tack_sim_counters_json() {
  thread_local std::string text;
  text = sim::Control::instance().json();
  return text.c_str();
}

// The n-th call from now on fails with the code; n = 0 takes it back.
void tack_sim_fail_at(long n, int code) { sim::Control::instance().fail_at(n, code); }
}
#pragma GCC visibility pop

namespace {

[[gnu::destructor]] void at_exit() { sim::Control::instance().write_report(); }

}  // namespace

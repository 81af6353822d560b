// core/thread_host_windows.cpp -- threads' names on Windows, which has neither fork nor signals that a thread could receive.
#include <windows.h>

#include "core/thread_host.h"

namespace tack::thread_host {

void at_fork_in_child(void (* /*f*/)()) {}

void name_this_thread(const std::string& name) noexcept {
  try {
    SetThreadDescription(GetCurrentThread(), std::wstring(name.begin(), name.end()).c_str());  // the pool's names are ASCII
  } catch (...) {                                                                              // a nameless thread works as well
  }
}

int this_processor() noexcept { return -1; }
int this_thread() noexcept { return 0; }
Processors allowed_processors(int /*thread*/) noexcept { return {}; }
void allow_processors(int /*thread*/, const Processors& /*processors*/) noexcept {}

struct SignalsBlocked::Before {};

SignalsBlocked::SignalsBlocked() = default;
SignalsBlocked::~SignalsBlocked() = default;

}  // namespace tack::thread_host

// backends/cpu/runtime_symbols_windows.cpp -- what code for Windows asks of the system itself.
#include <windows.h>

#include "backends/cpu/object_loader.h"

namespace tack::cpu {

std::vector<ImportedSymbol> system_symbols() {
  // Functions with large stack frames have it touch each page first, since Windows adds them to a stack in their order only.
  constexpr std::string_view probe = "__chkstk";
  HMODULE const system = GetModuleHandleW(L"ntdll.dll");
  const auto found = system == nullptr ? nullptr : GetProcAddress(system, probe.data());
  if (found == nullptr) return {};
  return {{probe, reinterpret_cast<void*>(found)}};
}

}  // namespace tack::cpu

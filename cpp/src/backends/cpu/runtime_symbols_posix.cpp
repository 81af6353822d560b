// backends/cpu/runtime_symbols_posix.cpp -- code for POSIX systems asks for nothing but the C library.
#include "backends/cpu/object_loader.h"

namespace tack::cpu {

std::vector<ImportedSymbol> system_symbols() { return {}; }

}  // namespace tack::cpu

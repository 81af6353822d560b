// backends/cpu/object_link.h -- the object loader's inside, for its tests: links an object of any known machine.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backends/cpu/elf_relocation.h"
#include "backends/cpu/object_loader.h"

namespace tack::cpu {

/// The machine that this process runs on, or null where the loader knows none.
const Machine* host_machine() noexcept;

/// As load_object, for `machine`; code of another machine than the host's can be inspected, not run.
std::unique_ptr<LoadedObject> link_object(const Machine& machine, std::span<const std::byte> object, SymbolResolver resolve,
                                          std::string_view name);

}  // namespace tack::cpu

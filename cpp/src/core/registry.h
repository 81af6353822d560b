// core/registry.h -- what is known of the backends by name, before any of them is asked.
#pragma once

#include <string>
#include <string_view>

#include "backend.h"

namespace tack {

/// How messages call a type of device: "CUDA" for "cuda". A type that is not in the list is called by its own name.
std::string title_of(std::string_view type);
/// Whether messages that list the devices name this type.
bool is_for_users(std::string_view type) noexcept;
/// Whether devices of this type take DeviceOptions::num_threads.
bool takes_num_threads(std::string_view type) noexcept;

}  // namespace tack

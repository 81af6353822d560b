// core/runtime_records.cpp -- the disk cache as a front end sees it: small records and the digest that keys are made of.
#include "core/disk_cache.h"
#include "core/runtime_impl.h"
#include "tack/runtime.hpp"

namespace tack {

std::optional<std::vector<std::byte>> Runtime::cache_get(std::string_view key) { return impl_->cache.get(key); }

void Runtime::cache_put(std::string_view key, std::span<const std::byte> value) { impl_->cache.put(key, value); }

std::string Runtime::cache_folder() const { return impl_->cache.root(); }

std::string Runtime::digest(std::span<const std::string_view> parts) { return tack::digest(parts); }

}  // namespace tack

// core/records.cpp -- the record buffer of a call: made before its launches, read after them, turned into prints and errors.
#include "core/records.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/runtime_impl.h"
#include "core/text.h"
#include "tack/error.hpp"

namespace tack {

RecordTable::RecordTable(const KernelSource& source) : kernel(source.name), sites(source.sites) {
  bool prints = false;
  for (const RecordSite& site : sites) {
    words = std::max(words, site.values.size() + 1);
    prints = prints || site.kind == RecordSite::Kind::print;
  }
  if (prints) fitting = print_buffer_bytes / (words * sizeof(std::uint64_t));
}

Records::Records(Device& device, std::shared_ptr<const RecordTable> table) : device_(&device), table_(std::move(table)) {
  const std::size_t records = static_cast<std::size_t>(table_->fitting) + 1;  // the failure's as well
  const std::size_t bytes = (header_words + records * table_->words) * sizeof(std::uint64_t);
  block_ = device_->queue().attributed([&] { return device_->allocator().allocate(bytes); });
  std::array<std::uint64_t, header_words> header{};
  header[fitting_word] = table_->fitting;
  try {
    device_->queue().upload(block_.pointer, header.data(), sizeof header);
  } catch (...) {
    device_->allocator().free(block_);
    throw;
  }
}

Records::~Records() {
  if (block_.pointer != nullptr) device_->allocator().free(block_);
}

Records::Records(Records&& other) noexcept
    : device_(other.device_), table_(std::move(other.table_)), block_(std::exchange(other.block_, {})) {}

Records& Records::operator=(Records&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(table_, other.table_);
  std::swap(block_, other.block_);
  return *this;
}

std::vector<std::uint64_t> Records::fetch(std::size_t first, std::size_t count) const {
  std::vector<std::uint64_t> words(count);
  const auto* source = static_cast<const std::byte*>(block_.pointer) + first * sizeof(std::uint64_t);
  device_->queue().download(words.data(), source, count * sizeof(std::uint64_t));
  return words;
}

const RecordSite* Records::site_of(std::uint64_t number) const noexcept {
  return number < table_->sites.size() ? &table_->sites[static_cast<std::size_t>(number)] : nullptr;
}

void Records::deliver() {
  const std::vector<std::uint64_t> header = fetch(0, header_words);
  if (header[printed_word] != 0) print(header[printed_word]);
  if (header[failed_word] != 0) fail();
}

void Records::print(std::uint64_t printed) const {
  const auto kept = static_cast<std::size_t>(std::min(printed, table_->fitting));
  const std::size_t size = table_->words;
  const std::vector<std::uint64_t> words = fetch(header_words + size, kept * size);
  const std::span<const std::uint64_t> all(words);
  std::string text_of_all;
  for (std::size_t at = 0; at < words.size(); at += size)
    if (const RecordSite* site = site_of(words[at])) text_of_all += said(*site, all.subspan(at + 1, site->values.size()));
  if (printed > kept) {
    if (!text_of_all.empty() && text_of_all.back() != '\n') text_of_all += '\n';
    text_of_all += text("[tack] Kernel '", table_->kernel, "' printed ", printed, " times in one call; ", printed - kept,
                        " were lost, as there is room for ", kept, ". Print less of it: if i == 0: print(...).\n");
  }
  device_->runtime()->impl().print(text_of_all);
}

void Records::fail() const {
  const std::vector<std::uint64_t> words = fetch(header_words, table_->words);
  const RecordSite* site = site_of(words[0]);
  if (site == nullptr)
    throw Error(ErrorCode::internal,
                text("Kernel '", table_->kernel, "' reported a failure at a place that it does not have. Please report this defect."));
  std::string message = text("Kernel '", table_->kernel, "': ", said(*site, std::span(words).subspan(1, site->values.size())));
  if (site->line != 0) message += text("\n  File \"", site->file, "\", line ", site->line);
  throw Error(site->kind == RecordSite::Kind::index ? ErrorCode::index : ErrorCode::assertion, std::move(message));
}

}  // namespace tack

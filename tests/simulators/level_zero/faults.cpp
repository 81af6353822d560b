// level_zero/faults.cpp -- gives pages to kernels that write where there is nothing, as long as they run.
#include "faults.h"

#include <sys/mman.h>

#include <array>
#include <atomic>

#include "../engine/memory.h"

namespace sim::level_zero {
namespace {

constexpr std::uintptr_t page_bytes = 4096, lowest = 1 << 16;  // what is below is a null pointer's

struct Page {
  std::uintptr_t start = 0;
  bool ours = false;  // mapped for this, and not only opened
};
std::array<Page, 4096> pages;
std::atomic<std::size_t> count{0};
std::atomic<std::uintptr_t> first_address{0};
struct sigaction before;

void* at(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

// Makes the address's page one that can be used. Threads may fault on one page at the same time: the second finds it there.
bool give_page(std::uintptr_t address) {
  const std::uintptr_t start = address & ~(page_bytes - 1);
  if (address < lowest || count >= pages.size()) return false;
  const void* const mapped = mmap(at(start), page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  const bool ours = mapped == at(start);
  if (!ours) {
    const std::size_t there = count;
    for (std::size_t i = 0; i < there; ++i)
      if (pages[i].start == start) return true;
    if (!Memory::instance().is_device_address(address) || mprotect(at(start), page_bytes, PROT_READ | PROT_WRITE) != 0) return false;
  }
  const std::size_t place = count++;
  if (place >= pages.size()) return false;
  pages[place] = {start, ours};
  std::uintptr_t none = 0;
  first_address.compare_exchange_strong(none, address);
  return true;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (give_page(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr)
    before.sa_sigaction(signal, info, context);
  else
    sigaction(signal, &before, nullptr);  // the instruction runs again, and somebody else is asked
}

}  // namespace

WildAccesses::WildAccesses() {
  count = 0;
  first_address = 0;
  struct sigaction mine{};
  mine.sa_sigaction = on_fault;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &mine, &before_);
  before = before_;
}

WildAccesses::~WildAccesses() {
  sigaction(SIGSEGV, &before_, nullptr);
  for (std::size_t i = 0; i < count && i < pages.size(); ++i) {
    if (pages[i].ours)
      munmap(at(pages[i].start), page_bytes);
    else
      mprotect(at(pages[i].start), page_bytes, PROT_NONE);
  }
}

std::uintptr_t WildAccesses::first() const { return first_address; }

}  // namespace sim::level_zero

// bench_disk_cache.cpp -- how long a hit, a miss and a put of the disk cache take; run by hand, optionally with the folder to measure in as
// argument.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "core/disk_cache.h"
#include "core/log.h"

namespace {

/// Median microseconds of a call.
template <class Call>
double median_us(Call call) {
  std::vector<double> samples;
  for (int i = 0; i < 501; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call(i);
    samples.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(samples.begin(), samples.begin() + 250, samples.end());
  return samples[250];
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path where = argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  const std::filesystem::path folder = where / "tack-bench-disk-cache";
  tack::Log log(tack::LogLevel::warning);
  tack::DiskCache cache(folder.string(), 1u << 30, log);
  for (const std::size_t size : {1'000u, 10'000u, 100'000u}) {
    const std::vector<std::byte> value(size, std::byte{42});
    const double put = median_us([&](int i) { cache.put("key" + std::to_string(i % 100), value); });
    const double hit = median_us([&](int i) { cache.get("key" + std::to_string(i % 100)); });
    const double miss = median_us([&](int i) { cache.get("absent" + std::to_string(i)); });
    std::printf("%7zu bytes: put %6.1f us, hit %6.1f us, miss %5.1f us\n", size, put, hit, miss);
  }
  std::filesystem::remove_all(folder);
  return 0;
}

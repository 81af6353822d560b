// fake_backend.h -- a backend for tests of the core: memory that the host cannot touch by accident, launches that are recorded.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend.h"
#include "core/runtime_impl.h"

namespace tack::test {

/// What a test sees and steers of a FakeBackend and its devices.
struct FakeState {
  std::string name = "fake";
  bool numbered = true;
  int devices = 2;
  bool host_addressable = false;
  bool queued = true;
  std::uint64_t max_iterations = 0;
  std::uint64_t memory_limit = std::uint64_t{1} << 40;  // bytes a device has
  std::string compiler = "fake compiler 1";
  std::string arch = "fake_1";
  int current = 0;
  std::uint32_t memory_space = 0x7000;
  std::int64_t short_below = 0;      // fewer iterations are launched directly, on a device that is not queued; 0: it offers no such way
  std::atomic<int> refuse_loads{0};  // so many binaries are refused as damaged
  std::chrono::milliseconds compile_time{0};
  std::function<void(const KernelSource&)> on_compile;  // may throw
  std::function<void(const LaunchCommand&)> on_launch;  // may throw
  std::function<void()> on_synchronize;                 // may throw

  struct Launch {
    std::uint32_t entry;
    std::vector<std::uint64_t> words;
    std::vector<std::int64_t> extents;
    std::int64_t iterations;
  };
  std::mutex mutex;
  std::vector<Launch> launches;
  std::atomic<std::uint64_t> allocated{0};  // bytes that the devices hold
  std::atomic<int> allocations{0}, frees{0}, compiles{0}, loads{0}, opens{0}, synchronizations{0}, modules{0};
};

/// Addresses of a device that the host cannot address have this bit set, which no processor follows.
inline constexpr std::uintptr_t device_bit = std::uintptr_t{1} << 62;

class FakeModule final : public ModuleImpl {
 public:
  FakeModule(FakeState& state, const std::string& kernel) : ModuleImpl(kernel), state_(state) { ++state_.modules; }
  ~FakeModule() override { --state_.modules; }
  double predict(std::uint32_t entry, std::int64_t iterations) const noexcept override {
    return static_cast<double>(iterations) * (entry + 1.0);
  }
  /// Records direct launches as entry 1000, with their words up to the first 0.
  DirectLaunch direct(std::uint32_t) noexcept override {
    if (state_.short_below == 0) return {};
    return {[](void* context, const std::uint64_t* words, std::int64_t iterations) noexcept {
              FakeState& state = *static_cast<FakeState*>(context);
              if (iterations >= state.short_below) return false;
              const std::lock_guard lock(state.mutex);
              FakeState::Launch launch{1000, {}, {}, iterations};
              while (*words != 0) launch.words.push_back(*words++);
              state.launches.push_back(launch);
              return true;
            },
            &state_};
  }

 private:
  FakeState& state_;
};

class FakeDevice final : public DeviceImpl {
 public:
  explicit FakeDevice(FakeState& state) : state_(state) {
    capabilities_.arch = state.arch;
    capabilities_.device_name = "a device that is not there";
    capabilities_.array_dtypes = 0x3ff;
    capabilities_.supports_f64 = true;
    capabilities_.queued = state.queued;
    capabilities_.host_addressable = state.host_addressable;
    capabilities_.max_iterations = state.max_iterations;
  }

  void* allocate(std::size_t bytes) override {
    if (state_.allocated + bytes > state_.memory_limit)
      throw Error({ErrorCode::out_of_memory, "no more", state_.name, "fakeAlloc", 2, "FAKE_NO_MEMORY"});
    state_.allocated += bytes;
    ++state_.allocations;
    return device(::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t{64}));
  }
  void free(void* pointer, std::size_t bytes) noexcept override {
    state_.allocated -= bytes;
    ++state_.frees;
    ::operator delete(host(pointer), std::align_val_t{64});
  }
  void upload(void* destination, const void* source, std::size_t bytes) override { std::memcpy(host(destination), source, bytes); }
  void download(void* destination, const void* source, std::size_t bytes) override { std::memcpy(destination, host(source), bytes); }
  void copy(void* destination, const void* source, std::size_t bytes) override { std::memcpy(host(destination), host(source), bytes); }
  void fill(void* destination, const void* element, std::size_t size, std::size_t count) override {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(static_cast<std::byte*>(host(destination)) + i * size, element, size);
  }
  std::unique_ptr<ModuleImpl> load(std::span<const std::byte> binary, const KernelSource& source) override {
    const std::string text(reinterpret_cast<const char*>(binary.data()), binary.size());
    if (state_.refuse_loads > 0) {
      --state_.refuse_loads;
      throw Error(ErrorCode::corrupt, "Kernel '" + source.name + "': this binary is refused.");
    }
    if (text.rfind("binary of ", 0) != 0) throw Error(ErrorCode::corrupt, "Kernel '" + source.name + "': these bytes are no binary.");
    ++state_.loads;
    return std::make_unique<FakeModule>(state_, source.name);
  }
  void launch(const LaunchCommand& command) override {
    {
      const std::lock_guard lock(state_.mutex);
      state_.launches.push_back({command.entry,
                                 {command.words.begin(), command.words.end()},
                                 {command.extents.begin(), command.extents.end()},
                                 command.iterations});
    }
    if (state_.on_launch) state_.on_launch(command);
  }
  void synchronize() override {
    ++state_.synchronizations;
    if (state_.on_synchronize) state_.on_synchronize();
  }

  /// The host's address of a device address.
  void* host(const void* pointer) const {
    auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (!state_.host_addressable) address &= ~device_bit;
    return reinterpret_cast<void*>(address);
  }

 private:
  void* device(void* pointer) const {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    return state_.host_addressable ? pointer : reinterpret_cast<void*>(address | device_bit);
  }
  FakeState& state_;
};

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(FakeState& state) : state_(state) {}

  std::string name() const override { return state_.name; }
  bool numbered() const override { return state_.numbered; }
  int device_count(RuntimeImpl& /*runtime*/) noexcept override { return state_.devices; }
  int current_index(RuntimeImpl& /*runtime*/) noexcept override { return state_.current; }
  std::unique_ptr<DeviceImpl> open(RuntimeImpl& /*runtime*/, int /*index*/, const DeviceOptions& /*options*/) override {
    ++state_.opens;
    return std::make_unique<FakeDevice>(state_);
  }
  std::uint32_t memory_space(int index) const override { return state_.memory_space + static_cast<std::uint32_t>(index); }
  std::vector<std::byte> compile(RuntimeImpl& /*runtime*/, const KernelSource& source) override {
    ++state_.compiles;
    std::this_thread::sleep_for(state_.compile_time);
    if (state_.on_compile) state_.on_compile(source);
    const std::string binary = "binary of " + source.text;
    const auto* bytes = reinterpret_cast<const std::byte*>(binary.data());
    return {bytes, bytes + binary.size()};
  }
  std::string compiler_version(RuntimeImpl& /*runtime*/) override { return state_.compiler; }

 private:
  FakeState& state_;
};

/// Settings that touch no disk and say nothing.
inline Config quiet() {
  Config config;
  config.cache = false;
  config.log_level = "error";
  return config;
}

/// A runtime with the backend "fake" beside the real ones. The state must outlive it.
inline std::shared_ptr<Runtime> fake_runtime(FakeState& state, Config config = quiet()) {
  auto runtime = Runtime::create(std::move(config));
  runtime->impl().add_backend(std::make_unique<FakeBackend>(state));
  return runtime;
}

}  // namespace tack::test

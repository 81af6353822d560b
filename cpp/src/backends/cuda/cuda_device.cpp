// backends/cuda/cuda_device.cpp -- memory, copies and launches on the context's default stream.
#include "backends/cuda/cuda_device.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cuda/cuda_module.h"
#include "core/text.h"

namespace tack::cuda {

namespace {

constexpr abi::Stream stream = nullptr;

constexpr std::size_t usual_words = 64;  // parameters of a launch up to this number lie on the stack

constexpr DTypeSet set_of(std::initializer_list<DType> types) noexcept {
  DTypeSet set = 0;
  for (std::size_t i = 0; i < array_dtypes.size(); ++i)
    if (std::find(types.begin(), types.end(), array_dtypes[i]) != types.end()) set = static_cast<DTypeSet>(set | 1u << i);
  return set;
}

abi::DevicePointer address(const void* pointer) noexcept { return reinterpret_cast<std::uintptr_t>(pointer); }

template <class Bits>
Bits bits_of(const void* element) noexcept {
  Bits bits;
  std::memcpy(&bits, element, sizeof bits);
  return bits;
}

abi::Device ordinal_of(const Driver& driver, int index) {
  abi::Device ordinal = 0;
  driver(text("find device ", index), driver.device_get, &ordinal, index);
  return ordinal;
}

int attribute(const Driver& driver, abi::Device ordinal, abi::DeviceAttribute which) {
  int value = 0;
  driver("ask the device what it can do", driver.device_attribute, &value, which, ordinal);
  return value;
}

}  // namespace

Capabilities capabilities_of(int major, int minor) {
  Capabilities can;
  can.arch = text("sm_", major, minor);
  can.device_name = text("an NVIDIA GPU of compute capability ", major, '.', minor);
  can.array_dtypes = set_of({i8, u8, i16, u16, i32, u32, i64, u64, f32, f64});
  can.atomic_dtypes = set_of({i32, u32, i64, u64, f32, f64});
  can.supports_f64 = true;
  can.supports_workgroups = true;
  can.supports_images = true;
  can.queued = true;
  can.block = 256;
  can.max_group = 1024;
  can.shared_bytes = std::uint64_t{48} << 10;
  can.max_iterations = std::uint64_t{std::numeric_limits<std::int32_t>::max()} * can.block;
  return can;
}

CudaDevice::CudaDevice(const Driver& driver, Log& log, int index)
    : context_(driver, log, ordinal_of(driver, index)), uploads_(context_), downloads_(context_) {
  const abi::Device ordinal = context_.ordinal();
  using Attribute = abi::DeviceAttribute;
  capabilities_ = capabilities_of(attribute(driver, ordinal, Attribute::compute_capability_major),
                                  attribute(driver, ordinal, Attribute::compute_capability_minor));
  std::array<char, 256> name{};
  driver("ask for the device's name", driver.device_name, name.data(), static_cast<int>(name.size()) - 1, ordinal);
  capabilities_.device_name = name.data();
  capabilities_.max_group = static_cast<std::uint32_t>(attribute(driver, ordinal, Attribute::max_threads_per_block));
  capabilities_.shared_bytes = static_cast<std::uint64_t>(attribute(driver, ordinal, Attribute::max_shared_memory_per_block));
  capabilities_.max_iterations = static_cast<std::uint64_t>(attribute(driver, ordinal, Attribute::max_grid_dim_x)) * capabilities_.block;
}

CudaDevice::~CudaDevice() {
  try {
    const ContextScope scope(context_);
    uploads_.release();
    downloads_.release();
  } catch (const std::exception& error) {
    context_.log_failure(error);
  }
}

void* CudaDevice::allocate(std::size_t bytes) {
  const ContextScope scope(context_);
  abi::DevicePointer pointer = 0;
  driver()("allocate memory", driver().memory_allocate, &pointer, bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
}

void CudaDevice::free(void* pointer, std::size_t /*bytes*/) noexcept {
  try {
    const ContextScope scope(context_);
    // Queued work may still use it. A failure of that work comes out again at the next wait.
    static_cast<void>(driver().stream_synchronize(stream));
    driver().release(context_.log(), "free memory", driver().memory_free, address(pointer));
  } catch (const std::exception& error) {
    context_.log_failure(error);
  }
}

void CudaDevice::upload(void* destination, const void* source, std::size_t bytes) {
  const ContextScope scope(context_);
  uploads_.upload(address(destination), source, bytes);
}

void CudaDevice::download(void* destination, const void* source, std::size_t bytes) {
  const ContextScope scope(context_);
  downloads_.download(destination, address(source), bytes);
}

void CudaDevice::copy(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  const ContextScope scope(context_);
  driver()("copy on the device", driver().copy, address(destination), address(source), bytes, stream);
}

void CudaDevice::fill(void* destination, const void* element, std::size_t size, std::size_t count) {
  if (count == 0) return;
  const ContextScope scope(context_);
  constexpr std::string_view what = "fill memory";
  switch (size) {
    case 1:
      return driver()(what, driver().fill_8, address(destination), bits_of<std::uint8_t>(element), count, stream);
    case 2:
      return driver()(what, driver().fill_16, address(destination), bits_of<std::uint16_t>(element), count, stream);
    case 4:
      return driver()(what, driver().fill_32, address(destination), bits_of<std::uint32_t>(element), count, stream);
    case 8:
      return fill_64(address(destination), element, count);
    default:
      throw Error(ErrorCode::internal,
                  text("fill on CUDA: elements of ", size, " bytes were given; 1, 2, 4 and 8 are known. Please report this."));
  }
}

/// The driver fills with 32 bits at most. Equal halves are twice as many of these; others are written half by half at the front, which is
/// slow, and then doubled by copies.
void CudaDevice::fill_64(abi::DevicePointer destination, const void* element, std::size_t count) const {
  constexpr std::string_view what = "fill memory";
  constexpr std::size_t size = 8, seed = 4096;
  const auto low = bits_of<std::uint32_t>(element);
  const auto high = bits_of<std::uint32_t>(static_cast<const std::byte*>(element) + 4);
  if (low == high) return driver()(what, driver().fill_32, destination, low, 2 * count, stream);
  std::size_t done = std::min(count, seed);
  driver()(what, driver().fill_rows_32, destination, size, low, std::size_t{1}, done, stream);
  driver()(what, driver().fill_rows_32, destination + 4, size, high, std::size_t{1}, done, stream);
  while (done != count) {
    const std::size_t piece = std::min(done, count - done);
    driver()(what, driver().copy, destination + done * size, destination, piece * size, stream);
    done += piece;
  }
}

std::unique_ptr<ModuleImpl> CudaDevice::load(std::span<const std::byte> binary, const KernelSource& source) {
  return std::make_unique<CudaModule>(context_, binary, source, capabilities_.block);
}

void CudaDevice::launch(const LaunchCommand& command) {
  const CudaModule::Entry& entry = static_cast<const CudaModule*>(command.module)->entry(command.entry);
  const std::int64_t groups = entry.whole_groups ? command.iterations : (command.iterations - 1) / entry.group + 1;
  // The driver reads as many bytes of each word as the parameter has; a parameter is at most 8 bytes long.
  std::array<void*, usual_words> pointers;
  std::vector<void*> more;
  void** parameters = pointers.data();
  if (command.words.size() > usual_words) [[unlikely]] {
    more.resize(command.words.size());
    parameters = more.data();
  }
  for (std::size_t i = 0; i < command.words.size(); ++i) parameters[i] = const_cast<std::uint64_t*>(&command.words[i]);
  const ContextScope scope(context_);
  driver()("launch it", driver().launch, entry.function, static_cast<unsigned int>(groups), 1u, 1u, entry.group, 1u, 1u, 0u, stream,
           parameters, nullptr);
}

bool CudaDevice::addresses(const void* pointer, std::size_t bytes) const noexcept {
  if (!driver().pointer_attribute) return true;
  try {
    const ContextScope scope(context_);
    for (const abi::DevicePointer end : {address(pointer), address(pointer) + bytes - 1}) {
      int ordinal = -1;
      if (driver().pointer_attribute(&ordinal, abi::PointerAttribute::device_ordinal, end) != abi::Result::success) return false;
      if (ordinal != context_.ordinal()) return false;
    }
  } catch (const Error&) {
    return true;  // no context: the call that follows says so
  }
  return true;
}

void CudaDevice::synchronize() {
  const ContextScope scope(context_);
  driver()("finish queued work", driver().stream_synchronize, stream);
}

}  // namespace tack::cuda

// backends/level_zero/ze_api.cpp -- finds the loader's functions and the GPUs, and says in words what results mean.
#include "backends/level_zero/ze_api.h"

#include "core/unavailable.h"

namespace tack::level_zero {

std::vector<std::string> abi::DriverFunctions::find_in(const Library& library) {
  constexpr bool required = true;  // as driver.def has them
  std::vector<std::string> missing;
#define X(need, member, symbol, ...) find_function(library, member, need, missing);
#include "backends/level_zero/driver.def"
#undef X
  return missing;
}

const char* Api::name_of(const Functions& /*driver*/, Result result) noexcept {
  switch (result) {
#define X(name, original, value, words) \
  case Result::name:                    \
    return #original;
    TACK_ZE_RESULTS(X)
#undef X
  }
  return nullptr;
}

const char* Api::text_of(const Functions& /*driver*/, Result result) noexcept {
  switch (result) {
#define X(name, original, value, words) \
  case Result::name:                    \
    return words;
    TACK_ZE_RESULTS(X)
#undef X
  }
  return nullptr;
}

std::string_view Api::advice_for(Result result) noexcept {
  switch (result) {
    case Result::device_lost:
    case Result::requires_reset:
      return "The GPU dropped this process's work: its arrays are lost and nothing runs on it any more until the process is started anew. "
             "tack.debug(True) finds indices outside of an array.";
    case Result::uninitialized:
      return "The driver does not survive fork(), and is gone when the process ends: start worker processes with 'spawn'.";
    case Result::insufficient_permissions:
      return "The user must be in the group that owns /dev/dri/renderD*, usually 'render'.";
    case Result::dependency_unavailable:
      return "Reinstall the driver: on Debian and Ubuntu, apt-get install --reinstall intel-opencl-icd libze1.";
    case Result::invalid_group_size:
      return "Give the kernel a smaller block=.";
    default:
      return {};
  }
}

Error Api::unavailable(const std::string& reason) {
  return device_unavailable("level_zero", "missing dependency", reason,
                            "an Intel GPU with its driver, the Level Zero loader and libocloc; on Debian and Ubuntu",
                            "apt-get install intel-opencl-icd libze1");
}

std::vector<Gpu> gpus(const Driver& driver) {
  std::uint32_t count = 0;
  driver("count the drivers", driver.drivers, &count, nullptr);
  std::vector<abi::Driver> drivers(count);
  driver("list the drivers", driver.drivers, &count, drivers.data());
  drivers.resize(count);
  std::vector<Gpu> found;
  for (const abi::Driver handle : drivers) {
    driver("count the devices", driver.devices, handle, &(count = 0), nullptr);
    std::vector<abi::Device> devices(count);
    driver("list the devices", driver.devices, handle, &count, devices.data());
    devices.resize(count);
    for (const abi::Device device : devices) {
      abi::DeviceProperties properties;
      driver("ask for a device's properties", driver.device_properties, device, &properties);
      if (properties.type == abi::device_type_gpu) found.push_back({handle, device});
    }
  }
  return found;
}

}  // namespace tack::level_zero

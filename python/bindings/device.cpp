// device.cpp -- Device: capabilities, `with` blocks per thread, compiling and loading kernels.
#include "tack/device.hpp"

#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>

#include "kernel_source.h"
#include "state.h"
#include "tack/kernel.hpp"

namespace tack::python {

namespace {

// Innermost first to last. Devices are kept by State, so plain pointers will do; `innermost` alone is read on the hot path.
thread_local Device* innermost = nullptr;
thread_local std::vector<Device*> entered;

void enter(Device& d) {
  entered.push_back(&d);
  innermost = &d;
  state().device_blocks.fetch_add(1, std::memory_order_relaxed);
}

/// Blocks may close out of order (generators, greenlets): the last entry of this device goes.
void leave(Device& d) {
  const auto last = std::find(entered.rbegin(), entered.rend(), &d);
  if (last == entered.rend()) return;
  entered.erase(std::next(last).base());
  state().device_blocks.fetch_sub(1, std::memory_order_relaxed);
  innermost = entered.empty() ? nullptr : entered.back();
}

nb::object names_of(DTypeSet set) {
  nb::list names;
  for (std::size_t i = 0; i < array_dtypes.size(); ++i)
    if ((set >> i & 1u) != 0) names.append(name_of(array_dtypes[i]));
  return nb::steal(PyList_AsTuple(names.ptr()));
}

/// A device that need not be there.
struct Target {
  std::string type;
  Capabilities capabilities;
};

KernelKey key_of(const nb::bytes& key) { return KernelKey{std::string(view_of(key))}; }

std::shared_ptr<Kernel> build(Device& d, nb::handle source, const nb::bytes& key) {
  const KernelSource converted = kernel_source_from(source);
  const KernelKey kernel_key = key_of(key);
  const ReleaseGil release;
  return d.build(converted, kernel_key);
}

const Capabilities& capabilities_of(const Device& device) { return device.capabilities(); }
const Capabilities& capabilities_of(const Target& target) { return target.capabilities; }

/// What a device can do, as attributes: the same ones on devices that are there and on those that are not.
template <class T>
void bind_capabilities(nb::class_<T>& cls) {
  const auto capability = [](auto member) { return [member](const T& object) { return capabilities_of(object).*member; }; };
  cls.def_prop_ro("arch", capability(&Capabilities::arch), "What code is compiled for.")
      .def_prop_ro("device_name", capability(&Capabilities::device_name), "As the driver or the operating system calls it.")
      .def_prop_ro(
          "array_dtypes", [](const T& object) { return names_of(capabilities_of(object).array_dtypes); },
          nb::sig("def array_dtypes(self) -> tuple[str, ...]"))
      .def_prop_ro(
          "atomic_dtypes", [](const T& object) { return names_of(capabilities_of(object).atomic_dtypes); },
          nb::sig("def atomic_dtypes(self) -> tuple[str, ...]"))
      .def_prop_ro("supports_f64", capability(&Capabilities::supports_f64))
      .def_prop_ro("supports_workgroups", capability(&Capabilities::supports_workgroups))
      .def_prop_ro("supports_images", capability(&Capabilities::supports_images))
      .def_prop_ro("f32_denormals", capability(&Capabilities::f32_denormals))
      .def_prop_ro("queued", capability(&Capabilities::queued), "Launches return before they are done.")
      .def_prop_ro("host_addressable", capability(&Capabilities::host_addressable))
      .def_prop_ro("max_iterations", capability(&Capabilities::max_iterations),
                   "A launch's limit with groups of `block` threads; 0 is none. With groups of N threads it is N / block of it.")
      .def_prop_ro("block", capability(&Capabilities::block), "Threads of a group where the kernel does not say.")
      .def_prop_ro("max_group", capability(&Capabilities::max_group), "The most threads a group may have; 0: the device has no groups.")
      .def_prop_ro("shared_bytes", capability(&Capabilities::shared_bytes), "Memory that a group's threads share.")
      .def_prop_ro(
          "max_image",
          [](const T& object) {
            const auto& largest = capabilities_of(object).max_image;
            return nb::make_tuple(largest[0], largest[1], largest[2]);
          },
          nb::sig("def max_image(self) -> tuple[int, int, int]"), "The largest (depth, height, width) of textures that hardware samples.")
      .def_prop_ro("max_buffers", capability(&Capabilities::max_buffers),
                   "What a kernel's arrays and its scalars, which together take one, may bind; 0 is no limit.")
      .def_prop_ro("vector_bits", capability(&Capabilities::vector_bits), "CPU: width of the SIMD registers.")
      .def_prop_ro("threads", capability(&Capabilities::threads), "CPU: how many threads a launch may use.");
}

}  // namespace

nb::object device_object(Device& device) {
  State& s = state();
  const nb::ft_lock_guard lock(s.mutex);
  for (const KnownDevice& known : s.devices)
    if (known.device.get() == &device) return known.object;
  KnownDevice known{device.shared_from_this(), {}, {}, {}};
  known.object = nb::cast(known.device);
  s.devices.push_back(known);
  return known.object;
}

Device& default_device_of_thread() {
  if (innermost != nullptr) return *innermost;
  Device* d = state().process_default;
  return d != nullptr ? *d : cpu_device();
}

void bind_device(nb::module_& m) {
  nb::class_<Target> target(m, "Target",
                            "What devices of a type and architecture can do, without one. The attributes of Device that say so.");
  target.def_prop_ro(
            "type", [](const Target& t) { return t.type; }, "\"cpu\", \"cuda\", ...")
      .def("__repr__", [](const Target& t) { return "<tack._runtime.Target " + t.type + ":" + t.capabilities.arch + ">"; });
  bind_capabilities(target);

  nb::class_<Device> device(m, "Device", nb::is_weak_referenceable(),
                            "Where arrays live and kernels run. One object per name and options, equal only to itself; thread-safe. As a "
                            "`with` block it is the default device of the thread.");
  bind_capabilities(device);
  device.def_prop_ro(
            "type", [](const Device& d) { return d.type(); }, "\"cpu\", \"cuda\", ...")
      .def_prop_ro("index", &Device::index)
      .def_prop_ro(
          "name", [](const Device& d) { return d.name(); }, "\"cpu\", \"cuda:1\", \"cpu(num_threads=1)\"")
      .def_prop_ro("memory_id", &Device::memory_id, "Devices with equal ids can address each other's arrays.")
      .def_prop_ro("compiled", &Device::compiled, "Kernels compiled so far.")
      .def_prop_ro("loaded", &Device::loaded, "Kernels loaded from the disk cache so far.")
      .def(
          "memory_stats",
          [](const Device& d) {
            const MemoryStatistics s = d.memory();
            nb::dict table;
            table["in_use"] = s.in_use;
            table["cached"] = s.cached;
            table["peak"] = s.peak;
            table["allocations"] = s.allocations;
            table["reused"] = s.reused;
            table["limit"] = s.limit;
            return table;
          },
          nb::sig("def memory_stats(self) -> dict[str, int]"),
          "What the device's arrays take: in_use, cached (freed, and kept for arrays to come), peak (the highest in_use) and limit (0: "
          "none) "
          "in bytes; allocations and, of these, reused ones. Memory of other libraries does not count.")
      .def(
          "set_memory_limit", [](Device& d, std::optional<std::uint64_t> bytes) { d.set_memory_limit(bytes.value_or(0)); },
          nb::arg("bytes").none(), nb::sig("def set_memory_limit(self, bytes: int | None) -> None"),
          "What arrays and cache may take together; None: all that there is. An array that does not fit is a MemoryError; those that are "
          "there stay.")
      .def("can_address", &Device::can_address, nb::arg("other"), "True if kernels here may use the other device's arrays.")
      .def(
          "addresses",
          // NOLINTNEXTLINE(performance-no-int-to-ptr): an address is what Python hands over
          [](const Device& d, std::uintptr_t address, std::size_t bytes) { return d.addresses(reinterpret_cast<void*>(address), bytes); },
          nb::arg("address"), nb::arg("bytes"),
          "Whether kernels here can use memory (at least 1 byte) that tack did not allocate; true where the device cannot tell.")
      .def("synchronize", &Device::synchronize, nb::call_guard<ReleaseGil>(),
           "Finishes all queued work, without the GIL, and raises the queue's first error.")
      .def(
          "wait_for_stream", &Device::wait_for_stream, nb::arg("stream"), nb::call_guard<ReleaseGil>(),
          "Waits, without the GIL, for what another library has put into a stream, given by the driver's handle (0 and 1: the default one, "
          "where tack's work lies as well). Does nothing on devices without streams.")
      .def(
          "synchronize_async", [](nb::handle self) { return nb::module_::import_("tack.waiting").attr("device_finished")(self); },
          nb::sig("def synchronize_async(self) -> collections.abc.Coroutine[None, None, None]"),
          "``await d.synchronize_async()``: as synchronize(), in a worker thread, while the event loop keeps running.")
      .def("trim", &Device::trim, nb::call_guard<ReleaseGil>(),
           "Gives memory that is cached for arrays to come back to the system; answers the bytes. Thread-safe; no array is touched.")
      .def(
          "load",
          [](Device& d, const nb::bytes& key) {
            const KernelKey kernel_key = key_of(key);
            const ReleaseGil release;
            return d.load(kernel_key);
          },
          nb::arg("key"), nb::sig("def load(self, key: bytes) -> Kernel | None"),
          "The kernel stored under ``key`` by this or an earlier process, or None. Compiles nothing.")
      .def("build", &build, nb::arg("source"), nb::arg("key"), nb::sig("def build(self, source: object, key: bytes) -> Kernel"),
           "Compiles (or finds in the disk cache) and loads; stores the result under ``key`` unless that is empty. Concurrent calls with "
           "one key "
           "compile once. The GIL is released.")
      .def(
          "__enter__",
          [](Device& d) {
            enter(d);
            return device_object(d);
          },
          nb::sig("def __enter__(self) -> Device"))
      .def(
          "__exit__", [](Device& d, const nb::args&) { leave(d); }, nb::sig("def __exit__(self, *exc: object) -> None"))
      .def("__str__", [](const Device& d) { return d.name(); })
      .def("__repr__", [](const Device& d) {
        const auto threads = d.options().num_threads;
        const std::string plain = d.name().substr(0, d.name().find('('));
        return "tack.device('" + plain + "'" + (threads ? ", num_threads=" + std::to_string(*threads) : std::string()) + ")";
      });

  m.def(
      "describe",
      [](const std::string& type, const std::string& arch) {
        const ReleaseGil release;
        return Target{type, state().runtime->describe(type, arch)};
      },
      nb::arg("type"), nb::arg("arch"),
      "What a device of a type and architecture (\"cuda\", \"sm_90\") can do, without one. ValueError for an unknown one.");
  m.def(
      "compile",
      [](nb::handle source) {
        const KernelSource converted = kernel_source_from(source);
        std::vector<std::byte> binary;
        {
          const ReleaseGil release;
          binary = state().runtime->compile(converted);
        }
        return to_bytes(binary);
      },
      nb::arg("source"), nb::sig("def compile(source: object) -> bytes"),
      "A KernelSource as a binary for its target and architecture. Needs no device, leaves the disk cache alone. The GIL is released.");
}

}  // namespace tack::python

// runtime.cpp -- devices by name, the process default, waiting for everything, and the records that the front end keeps on disk.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <exception>
#include <optional>
#include <span>

#include "state.h"

namespace tack::python {

// NOLINTNEXTLINE(bugprone-throwing-static-initialization): where there is no memory for it, nothing can be loaded
State* const detail::process_state = std::make_unique<State>().release();  // see State: never destroyed

nb::object int_tuple(std::span<const std::int64_t> values) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  if (!tuple.is_valid()) throw nb::python_error();
  for (std::size_t i = 0; i < values.size(); ++i) {
    PyObject* item = PyLong_FromLongLong(values[i]);
    if (item == nullptr || PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), item) != 0) throw nb::python_error();
  }
  return tuple;
}

nb::object attribute(nb::handle object, const char* name) {
  nb::object value = nb::steal(PyObject_GetAttrString(object.ptr(), name));
  if (!value.is_valid()) PyErr_Clear();
  return value;
}

namespace {

/// Starts (or finds) a device without the GIL, since a driver may take its time.
Device& started(std::string_view spec, const DeviceOptions& options) {
  std::shared_ptr<Device> device;
  {
    const ReleaseGil release;
    device = state().runtime->device(spec, options);
  }
  Device& found = *device;
  device_object(found);  // from here on it is known, and kept
  return found;
}

/// The exception that Python raises for a failure.
nb::python_error as_python(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    translate_current_exception();
  }
  return {};  // takes it from the error indicator
}

void finish_everything() {
  std::vector<DeviceFailure> failures;
  {
    const ReleaseGil release;
    failures = state().runtime->finish();
  }
  if (failures.empty()) return;
  nb::python_error first = as_python(failures.front().error);
  for (const DeviceFailure& failure : std::span(failures).subspan(1)) {
    const nb::python_error other = as_python(failure.error);
    first.value().attr("add_note")(
        nb::str("'{}' failed as well: {}: {}").format(failure.device->name(), other.type().attr("__name__"), other.value()));
  }
  first.restore();
  throw nb::python_error();
}

}  // namespace

Device& cpu_device() {
  State& s = state();
  if (s.cpu == nullptr) s.cpu = &started("cpu", {});
  return *s.cpu;
}

void bind_runtime(nb::module_& m) {
  state().runtime->set_package_folders([] {
    const AcquireGil gil;
    std::vector<std::string> folders;
    for (nb::handle folder : nb::module_::import_("sys").attr("path"))
      if (std::string path; nb::try_cast(folder, path) && !path.empty()) folders.push_back(path);
    return folders;
  });
  m.def(
      "device",
      [](const std::string& spec, std::optional<int> num_threads, std::uintptr_t context, std::uintptr_t device) {
        return device_object(started(spec, {.num_threads = num_threads, .native_context = context, .native_device = device}));
      },
      nb::arg("spec"), nb::arg("num_threads") = nb::none(), nb::arg("context") = 0, nb::arg("device") = 0,
      nb::sig("def device(spec: str, num_threads: int | None = None, context: int = 0, device: int = 0) -> Device"),
      "The device called ``spec`` (\"cpu\", \"cuda\", \"cuda:1\", ...); asked for twice, the same object. ``num_threads`` makes a separate "
      "CPU device; ``context`` and ``device``, handles of an application's, a Level Zero device there.\n\nValueError for an unknown name "
      "or option, RuntimeError when the device cannot start.");
  m.def(
      "device_count", [](const std::string& type) { return state().runtime->device_count(type); }, nb::arg("type"),
      nb::call_guard<ReleaseGil>(), "How many devices of a type there are; 0 without a driver. ValueError for an unknown type.");
  m.def("backend_names", [] { return state().runtime->backend_names(); }, "Names of all backends, in the order of the documentation.");
  m.def(
      "default_device", [] { return device_object(default_device()); }, nb::sig("def default_device() -> Device"),
      "The innermost `with` block's device on this thread, else the process default, else the CPU.");
  m.def(
      "set_default_device", [](Device& d) { state().process_default = &d; }, nb::arg("d"),
      "Makes ``d`` the process default. `with` blocks still win on their thread.");
  m.def("synchronize", &finish_everything,
        "Waits for every device, without the GIL, and raises the first error of their queues; those of other devices are its notes.");

  m.def(
      "cache_get",
      [](const nb::bytes& key) -> nb::object {
        std::optional<std::vector<std::byte>> found;
        {
          const ReleaseGil release;
          found = state().runtime->cache_get(view_of(key));
        }
        if (!found) return nb::none();
        return to_bytes(*found);
      },
      nb::arg("key"), nb::sig("def cache_get(key: bytes) -> bytes | None"),
      "A small record of the Python side from the disk cache, or None. Never raises for the disk's sake.");
  m.def(
      "cache_put",
      [](const nb::bytes& key, const nb::bytes& value) {
        const ReleaseGil release;
        state().runtime->cache_put(view_of(key), {static_cast<const std::byte*>(value.data()), value.size()});
      },
      nb::arg("key"), nb::arg("value"), "Stores a small record in the disk cache; does nothing when it cannot.");
  m.def(
      "cache_folder", [] { return state().runtime->cache_folder(); },
      "The folder that holds the disk cache's entries and nothing else; it may not exist yet. Empty where nothing is kept on disk.");
  m.def(
      "digest",
      [](const nb::args& parts) {
        std::vector<std::string_view> views;
        views.reserve(parts.size());
        for (nb::handle part : parts) {
          if (!nb::isinstance<nb::bytes>(part)) throw nb::type_error("digest(): every part must be bytes");
          views.push_back(view_of(nb::borrow<nb::bytes>(part)));
        }
        const std::string d = Runtime::digest(views);
        return nb::bytes(d.data(), d.size());
      },
      nb::sig("def digest(*parts: bytes) -> bytes"), "32 bytes that name the parts and their lengths: the same in every process.");
}

}  // namespace tack::python

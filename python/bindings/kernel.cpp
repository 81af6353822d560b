// kernel.cpp -- Kernel: launched by hand, and inspected.
#include "tack/kernel.hpp"

#include <nanobind/stl/string_view.h>

#include "arguments.h"
#include "kernel_source.h"
#include "state.h"

namespace tack::python {

namespace {

nb::object launch(const Kernel& kernel, const nb::sequence& args) {
  const nb::object fast = nb::steal(PySequence_Tuple(args.ptr()));
  if (!fast.is_valid()) throw nb::python_error();
  const auto count = static_cast<std::size_t>(PyTuple_Size(fast.ptr()));
  const KernelSource& source = kernel.source();
  if (count != source.arguments.size()) {
    throw Error(ErrorCode::type_mismatch, "Kernel '" + source.name + "' takes " + std::to_string(source.arguments.size()) +
                                              " arguments, but " + std::to_string(count) + " were given");
  }
  Arguments arguments(count);
  for (std::size_t i = 0; i < count; ++i) {
    PyObject* object = PyTuple_GetItem(fast.ptr(), static_cast<Py_ssize_t>(i));
    const std::string place = "Kernel '" + source.name + "': parameter '" + source.arguments[i].name + "'";
    switch (arguments.take(i, object)) {
      case Taken::yes:
        break;
      case Taken::no:
        throw Error(ErrorCode::type_mismatch, place + " cannot be a " + nb::type_name(nb::handle(object).type()).c_str());
      case Taken::too_large:
        throw Error(ErrorCode::overflow, place + " does not fit in 64 bits");
    }
  }
  kernel.check(arguments.values());
  if (kernel.has_atomics()) arguments.find_unshared();
  Result result;
  {
    const MaybeRelease release(kernel.predict(arguments.values()) > release_above_ns || kernel.waits(arguments.values()));
    result = kernel.launch_unchecked(arguments.values());
  }
  PyObject* answer = to_python(result);
  if (answer == nullptr) throw nb::python_error();
  return nb::steal(answer);
}

nb::object extent_terms(const Extent& extent) {
  nb::list terms;
  for (const ExtentTerm& t : extent) {
    const std::string_view op = extent_ops[static_cast<std::size_t>(t.op)];
    terms.append(nb::make_tuple(op, t.arg, t.dim, t.value));
  }
  return terms;
}

nb::list extents(const std::vector<Extent>& list) {
  nb::list result;
  for (const Extent& e : list) result.append(extent_terms(e));
  return result;
}

nb::dict schedule(const Kernel& kernel) {
  const KernelSource& source = kernel.source();
  nb::list entries;
  for (const EntryStatistics& s : kernel.statistics()) {
    nb::dict row;
    row["symbol"] = s.symbol;
    row["ns_per_iteration"] = s.ns_per_iteration;
    row["fan_out_ns"] = s.fan_out_ns;
    row["serial"] = s.serial;
    row["parallel"] = s.parallel;
    entries.append(row);
  }
  nb::list steps;
  for (const Step& s : source.steps) {
    nb::dict row;
    row["kind"] = step_kinds[static_cast<std::size_t>(s.kind)];
    row["entry"] = s.entry;
    row["start"] = extents(s.start);
    row["stop"] = extents(s.stop);
    row["step"] = extents(s.step);
    row["match"] = s.match;
    steps.append(row);
  }
  nb::dict table;
  table["threads"] = kernel.device()->capabilities().threads;
  table["entries"] = entries;
  table["steps"] = steps;
  return table;
}

}  // namespace

void bind_kernel(nb::module_& m) {
  nb::class_<Kernel>(m, "Kernel", nb::is_weak_referenceable(), "A loaded, launchable kernel of one device. Thread-safe.")
      .def_prop_ro("name", [](const Kernel& k) { return k.source().name; })
      .def_prop_ro(
          "device", [](const Kernel& k) { return device_object(*k.device()); }, nb::sig("def device(self) -> Device"))
      .def_prop_ro("from_cache", &Kernel::from_cache, "It was loaded from the disk cache, not compiled.")
      .def_prop_ro(
          "simd", [](const Kernel& k) { return k.source().simd; }, "Lanes that the CPU code was printed for.")
      .def("launch", &launch, nb::arg("args"),
           nb::sig("def launch(self, args: collections.abc.Sequence[object]) -> int | float | bool | None"),
           "Runs or queues it with arrays and scalars in parameter order; checks everything. TypeError, ValueError, OverflowError.")
      .def("schedule", &schedule, nb::sig("def schedule(self) -> dict[str, typing.Any]"),
           "{\"threads\", \"entries\": [{symbol, ns_per_iteration, fan_out_ns, serial, parallel}], \"steps\": [{kind, entry, start, stop, "
           "step, "
           "match}]}; negative times are not measured yet; extents are postfix terms (op, arg, dim, value).")
      .def("__repr__", [](const Kernel& k) { return "<tack._runtime.Kernel '" + k.source().name + "' on " + k.device()->name() + ">"; });
}

}  // namespace tack::python

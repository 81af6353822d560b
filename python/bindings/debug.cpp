// debug.cpp -- debug mode, and the prints of kernels through sys.stdout.
#include "state.h"

namespace tack::python {

namespace {

// Of the specialization that this thread is busy with: 0 none, else 1 + its mode.
thread_local int specializing = 0;

/// Writes as print() does: to whatever sys.stdout is now. None (a program without a console) takes nothing.
void write(std::string_view text) {
  const AcquireGil gil;
  try {
    PyObject* out = PySys_GetObject("stdout");  // borrowed
    if (out == nullptr || out == Py_None) return;
    const nb::object stream = nb::borrow(out);
    const nb::object decoded = nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass"));
    if (!decoded.is_valid()) throw nb::python_error();
    outliving([&] { stream.attr("write")(decoded); });
  } catch (nb::python_error& e) {
    throw PythonFailure(e);
  }
}

}  // namespace

bool debugging() noexcept { return specializing != 0 ? specializing == 2 : state().debugging.load(std::memory_order_relaxed); }

SpecializingMode::SpecializingMode(bool debug) noexcept : before_(std::exchange(specializing, debug ? 2 : 1)) {}
SpecializingMode::~SpecializingMode() { specializing = before_; }

void bind_debug(nb::module_& m) {
  state().debugging = state().runtime->config().debug;
  state().runtime->set_print_sink(write);
  m.def("debugging", &debugging, "Whether kernels that are specialized now check every index and every assert.");
  m.def(
      "set_debugging", [](bool on) { return state().debugging.exchange(on); }, nb::arg("on"),
      "Switches debug mode of the whole process; answers what it was.");
}

}  // namespace tack::python

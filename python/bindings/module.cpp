// module.cpp -- the module tack._runtime: one Runtime, made from the environment at import.
#include "state.h"
#include "tack/tack.h"

namespace py = tack::python;

// A setting that cannot be read makes the import an ImportError with the text that names it.
NB_MODULE(_runtime, m) {
  m.doc() = "The C++ runtime of tack. Use it through the package `tack`.";
  nanobind::set_leak_warnings(false);  // devices are kept for the life of the process, see State
  py::state().runtime = tack::Runtime::create();
  m.attr("VERSION") = TACK_VERSION;
  m.attr("ABI_VERSION") = TACK_ABI_VERSION;
  py::bind_error(m);
  py::bind_config(m);
  py::bind_device(m);
  py::bind_array(m);
  py::bind_texture(m);
  py::bind_dlpack(m);
  py::bind_kernel(m);
  py::bind_runtime(m);
  py::bind_cpu_compiler(m);
  py::bind_debug(m);
  py::bind_dispatcher(m);
  py::install_python_pool(m);
}

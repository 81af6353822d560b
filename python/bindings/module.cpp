// module.cpp -- the module tack._runtime: one Runtime, made from the environment at import.
#include "state.h"

namespace {

namespace py = tack::python;

std::shared_ptr<tack::Runtime> create_runtime() {
  try {
    return tack::Runtime::create();
  } catch (const tack::Error& e) {
    py::set_python_error(e);  // a setting that cannot be read: the message names it
    throw nanobind::python_error();
  }
}

}  // namespace

NB_MODULE(_runtime, m) {
  m.doc() = "The C++ runtime of tack. Use it through the package `tack`.";
  nanobind::set_leak_warnings(false);  // devices are kept for the life of the process, see State
  py::state().runtime = create_runtime();
  m.attr("VERSION") = TACK_VERSION_TEXT;
  m.attr("ABI_VERSION") = py::abi_version;
  py::bind_error(m);
  py::bind_config(m);
  py::bind_device(m);
  py::bind_array(m);
  py::bind_kernel(m);
  py::bind_runtime(m);
  py::bind_cpu_compiler(m);
  py::bind_dispatcher(m);
  py::install_python_pool(m);
}

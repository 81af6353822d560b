// cpu_compiler.cpp -- lets Python compile LLVM IR for libtack's CPU backend.
#include "state.h"

namespace tack::python {

namespace {

std::vector<std::byte> compile(nb::handle compiler, const CompileRequest& request) {
  const char* output = request.assembly ? "assembly" : request.optimized_ir ? "ir" : "object";
  const nb::object answer = outliving([&] { return compiler(request.name, request.text, request.arch, request.optimize, output); });
  std::string_view text;
  if (nb::isinstance<nb::bytes>(answer)) {
    text = view_of(nb::borrow<nb::bytes>(answer));
  } else {
    Py_ssize_t size = 0;
    const char* utf8 = nb::isinstance<nb::str>(answer) ? PyUnicode_AsUTF8AndSize(answer.ptr(), &size) : nullptr;
    if (utf8 == nullptr) {
      if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "the CPU compiler must answer bytes (or str, for text)");
      throw nb::python_error();
    }
    text = {utf8, static_cast<std::size_t>(size)};
  }
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace

void bind_cpu_compiler(nb::module_& m) {
  m.def(
      "set_cpu_compiler",
      [](nb::callable f) {
        auto shared = std::make_shared<Shared>(std::move(f));
        const ReleaseGil release;
        state().runtime->set_cpu_compiler([shared = std::move(shared)](const CompileRequest& request) {
          const AcquireGil gil;
          try {
            return compile(shared->get(), request);
          } catch (nb::python_error& e) {
            throw PythonFailure(e);  // libtack sees an Error; Device.build raises the exception itself, Ctrl-C included
          }
        });
      },
      nb::arg("f"), nb::sig("def set_cpu_compiler(f: collections.abc.Callable[[str, str, str, int, str], bytes | str]) -> None"),
      "``f(name, llvm_ir, arch, optimize, output)`` answers object code, or text when ``output`` is \"assembly\" or \"ir\". It may be "
      "called "
      "from any thread; what it raises is raised by Device.build.");
}

}  // namespace tack::python

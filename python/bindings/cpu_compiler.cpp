// cpu_compiler.cpp -- lets Python compile LLVM IR for libtack's CPU backend, and link what libtack does not load itself.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

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

LinkedObject link(nb::handle linker, const LinkRequest& request) {
  nb::list functions;
  for (const std::string& function : request.functions) functions.append(function);
  nb::dict imports;
  for (const ImportedSymbol& symbol : request.imports)
    imports[nb::str(symbol.name.data(), symbol.name.size())] = reinterpret_cast<std::uintptr_t>(symbol.address);
  const nb::object answer = outliving([&] { return linker(request.name, to_bytes(request.object), functions, imports); });
  std::pair<std::vector<std::uintptr_t>, nb::object> linked;
  if (!nb::try_cast(answer, linked)) {
    PyErr_SetString(PyExc_TypeError, "the linker must answer (addresses, owner): a list of ints, and an object that keeps the code");
    throw nb::python_error();
  }
  LinkedObject code{.functions = {}, .owner = std::make_shared<Shared>(std::move(linked.second))};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): they are addresses
  for (const std::uintptr_t address : linked.first) code.functions.push_back(reinterpret_cast<void*>(address));
  return code;
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
  m.def(
      "set_object_linker",
      [](nb::callable f) {
        auto shared = std::make_shared<Shared>(std::move(f));
        const ReleaseGil release;
        state().runtime->set_object_linker([shared = std::move(shared)](const LinkRequest& request) {
          const AcquireGil gil;
          try {
            return link(shared->get(), request);
          } catch (nb::python_error& e) {
            throw PythonFailure(e);
          }
        });
      },
      nb::arg("f"),
      nb::sig(
          "def set_object_linker(f: collections.abc.Callable[[str, bytes, list[str], dict[str, int]], tuple[list[int], object]]) -> None"),
      "``f(name, code, functions, imports)`` links an object that is not ELF into this process and answers the addresses of the functions, "
      "0 "
      "for one that is not there, and an object that keeps the code in memory: it is dropped with the kernel. ``imports`` are the symbols "
      "that the code may use. It may be called from any thread; what it raises is raised by Device.build or Device.load.");
}

}  // namespace tack::python

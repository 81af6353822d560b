// error.cpp -- tack::Error as Python exceptions, and Python exceptions on their way through libtack.
#include <new>

#include "state.h"

namespace tack::python {

namespace {

PyObject* exception_type(ErrorCode code) {
  const State& s = state();
  switch (code) {
    case ErrorCode::invalid_argument:
      return PyExc_ValueError;
    case ErrorCode::type_mismatch:
      return PyExc_TypeError;
    case ErrorCode::overflow:
      return PyExc_OverflowError;
    case ErrorCode::out_of_memory:
      return PyExc_MemoryError;
    case ErrorCode::io:
      return PyExc_OSError;
    case ErrorCode::unsupported:
      return s.unsupported_error.is_valid() ? s.unsupported_error.ptr() : PyExc_NotImplementedError;
    case ErrorCode::compile:
      return s.compile_error.is_valid() ? s.compile_error.ptr() : PyExc_RuntimeError;
    case ErrorCode::index:
      return PyExc_IndexError;
    case ErrorCode::assertion:
      return PyExc_AssertionError;
    case ErrorCode::unavailable:
    case ErrorCode::corrupt:
    case ErrorCode::driver:
    case ErrorCode::internal:
      break;
  }
  return PyExc_RuntimeError;
}

/// A compiler's or driver's text need not be UTF-8.
nb::object text_of(const char* text) {
  return nb::steal(PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(std::string_view(text).size()), "replace"));
}

void set_error(PyObject* type, const char* text) noexcept {
  const nb::object message = text_of(text);
  if (message.is_valid()) PyErr_SetObject(type, message.ptr());
}

}  // namespace

Shared::~Shared() {
  if (!object_.is_valid()) return;
  if (!nb::is_alive() || Py_IsInitialized() == 0) {
    object_.release();
    return;
  }
  const AcquireGil gil;
  object_.reset();
}

void set_python_error(const Error& error) noexcept {
  if (const auto* failure = dynamic_cast<const PythonFailure*>(&error)) {
    failure->restore();
    return;
  }
  set_error(exception_type(error.code()), error.what());
}

void translate_current_exception() noexcept {
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const Error& e) {
    set_python_error(e);
  } catch (const nb::builtin_exception& e) {
    set_error(e.type() == nb::exception_type::value_error ? PyExc_ValueError : PyExc_TypeError, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    set_error(PyExc_RuntimeError, e.what());
  } catch (...) {
    set_error(PyExc_RuntimeError, "an unknown C++ exception reached Python; please report this defect of tack");
  }
}

namespace {

/// Threads that wait for the same compile share its failure, but only one that would be theirs too: what interrupts one thread is
/// `internal`.
ErrorCode code_of(const nb::python_error& error) {
  return error.matches(PyExc_Exception) && !error.matches(PyExc_MemoryError) ? ErrorCode::compile : ErrorCode::internal;
}

}  // namespace

PythonFailure::PythonFailure(nb::python_error& error)
    : Error(Fields{.code = code_of(error), .message = error.what(), .backend = {}, .operation = "Python callback", .native_name = {}}),
      exception_(std::make_shared<Shared>(nb::borrow(error.value()))) {}

void PythonFailure::restore() const noexcept {
  PyObject* value = exception_->get().ptr();
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(value)), value);
}

void bind_error(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const Error& e) {
      set_python_error(e);
    }
  });
  m.def(
      "set_errors",
      [](nb::type_object compile_error, nb::type_object unsupported_error) {
        State& s = state();
        nb::handle(s.compile_error).dec_ref();
        nb::handle(s.unsupported_error).dec_ref();
        s.compile_error = compile_error.release();
        s.unsupported_error = unsupported_error.release();
      },
      nb::arg("compile_error"), nb::arg("unsupported_error"),
      "The exception classes of failed compiles and of lacking capabilities; each is constructed with the text alone.");
}

}  // namespace tack::python

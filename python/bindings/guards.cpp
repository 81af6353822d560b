// guards.cpp -- looks captured names up and compares them.
#include "guards.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "arguments.h"

namespace tack::python {

namespace {

/// Equal by value, as a kernel sees values: types are equal too. Only types whose comparison runs no Python code count.
bool same_value(PyObject* now, PyObject* expected) {
  if (now == expected) return true;
  PyTypeObject* type = Py_TYPE(now);
  if (type != Py_TYPE(expected)) return false;
  if (type == &PyFloat_Type) {
    const double a = PyFloat_AsDouble(now), b = PyFloat_AsDouble(expected);
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a != a && b != b);
  }
  if (type == &PyLong_Type || type == &PyUnicode_Type) return PyObject_RichCompareBool(now, expected, Py_EQ) == 1;
  if (type == &PyTuple_Type) {
    const Py_ssize_t size = PyTuple_Size(now);
    if (size != PyTuple_Size(expected)) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (!same_value(PyTuple_GetItem(now, i), PyTuple_GetItem(expected, i))) return false;
    return true;
  }
  if (const auto dtype = numpy_scalar_dtype(type)) {
    if (!dtype->is_float()) return PyObject_RichCompareBool(now, expected, Py_EQ) == 1;
    const double a = PyFloat_AsDouble(now), b = PyFloat_AsDouble(expected);
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a != a && b != b);
  }
  return false;
}

nb::object cell_contents(PyObject* cell) {
#if defined(Py_LIMITED_API)
  return nb::steal(PyObject_GetAttrString(cell, "cell_contents"));
#else
  return nb::steal(PyCell_Get(cell));  // null without an error for an empty cell
#endif
}

/// The type of closure cells, which the limited API does not name.
PyTypeObject* cell_type() {
  static PyObject* const type = nb::object(nb::module_::import_("types").attr("CellType")).release().ptr();
  return reinterpret_cast<PyTypeObject*>(type);
}

}  // namespace

nb::handle absent() {
  static PyObject* const object = [] {
    const nb::object type = nb::module_::import_("builtins").attr("type")("ABSENT", nb::make_tuple(), nb::dict());
    return type().release().ptr();
  }();
  return object;
}

Guard::Guard(nb::handle tuple) {
  if (PyTuple_Check(tuple.ptr()) == 0 || PyTuple_Size(tuple.ptr()) != 3)
    throw nb::type_error("a guard is a tuple (namespace or cell or object, name or None, expected value)");
  owner_ = nb::borrow(PyTuple_GetItem(tuple.ptr(), 0));
  key_ = nb::borrow(PyTuple_GetItem(tuple.ptr(), 1));
  expected_ = nb::borrow(PyTuple_GetItem(tuple.ptr(), 2));
  absent_ = expected_.ptr() == absent().ptr();
  if (Py_TYPE(owner_.ptr()) == cell_type()) {
    place_ = Place::cell;
    return;
  }
  if (PyUnicode_CheckExact(key_.ptr()) == 0) throw nb::type_error("a guard's name must be a str");
  PyObject* interned = key_.release().ptr();
  PyUnicode_InternInPlace(&interned);
  key_ = nb::steal(interned);
  if (PyDict_CheckExact(owner_.ptr()) != 0) return;
  place_ = Place::attribute;
  if (PyModule_CheckExact(owner_.ptr()) != 0) {  // a module's own names are a dictionary look-up; __getattr__ of a module is not
    PyObject* dict = PyModule_GetDict(owner_.ptr());
    if (PyDict_Contains(dict, key_.ptr()) == 1) {
      owner_ = nb::borrow(dict);
      place_ = Place::dict;
    }
  }
}

bool Guard::holds() const {
  PyObject* found = nullptr;
  nb::object owned;
  switch (place_) {
    case Place::dict:
#if defined(NB_FREE_THREADED)
      PyDict_GetItemRef(owner_.ptr(), key_.ptr(), &found);
      owned = nb::steal(found);
#else
      found = PyDict_GetItemWithError(owner_.ptr(), key_.ptr());
#endif
      break;
    case Place::cell:
      owned = cell_contents(owner_.ptr());
      found = owned.ptr();
      break;
    case Place::attribute:
      owned = nb::steal(PyObject_GetAttr(owner_.ptr(), key_.ptr()));
      found = owned.ptr();
      break;
  }
  if (found == expected_.ptr()) return true;
  if (found == nullptr) {
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    return absent_;
  }
  return same_value(found, expected_.ptr());
}

int Guard::traverse(visitproc visit, void* arg) const {
  Py_VISIT(owner_.ptr());
  Py_VISIT(key_.ptr());
  Py_VISIT(expected_.ptr());
  return 0;
}

Guards::Guards(nb::handle tuples) {
  for (nb::handle tuple : tuples) guards_.emplace_back(tuple);
#if TACK_DICT_VERSIONS
  for (std::size_t i = 0; i < guards_.size(); ++i) {
    PyObject* dict = guards_[i].dict();
    const auto place = std::find_if(seen_.begin(), seen_.end(), [&](const Seen& s) { return s.dict == dict || s.dict == nullptr; });
    if (dict == nullptr || place == seen_.end())
      others_.push_back(i);
    else
      place->dict = dict;
  }
#endif
}

bool Guards::look_up() const {
#if TACK_DICT_VERSIONS
  if (unchanged()) return std::all_of(others_.begin(), others_.end(), [&](std::size_t i) { return guards_[i].holds(); });
  // The versions before the look: whatever changes meanwhile counts as changed.
  auto seen = seen_;
  for (Seen& s : seen)
    if (s.dict != nullptr) s.version = version_of(s.dict);
  for (const Guard& guard : guards_)
    if (!guard.holds()) return false;
  seen_ = seen;
  return true;
#else
  return std::all_of(guards_.begin(), guards_.end(), [](const Guard& guard) { return guard.holds(); });
#endif
}

int Guards::traverse(visitproc visit, void* arg) const {
  for (const Guard& guard : guards_)
    if (const int result = guard.traverse(visit, arg); result != 0) return result;
  return 0;
}

void bind_guards(nb::module_& m) { m.attr("ABSENT") = absent(); }

}  // namespace tack::python

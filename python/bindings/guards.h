// guards.h -- captured values that a specialization was compiled with, compared with what they are now at every hit.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <vector>

// CPython 3.11 numbers the states of dictionaries; later ones, and the stable ABI, do not.
#if !defined(Py_LIMITED_API) && !defined(Py_GIL_DISABLED) && PY_VERSION_HEX < 0x030C0000
#  define TACK_DICT_VERSIONS 1
#else
#  define TACK_DICT_VERSIONS 0
#endif

namespace tack::python {

/// One captured value. Compared by identity first; numbers, bools, strings and tuples of them by value (-0.0 is not 0.0, NaN is NaN).
class Guard {
 public:
  /// From the tuple (dict, key, expected), (cell, None, expected) or (object, attribute, expected); ABSENT as `expected` means that the
  /// name is not there. Throws TypeError.
  explicit Guard(nanobind::handle tuple);
  /// True while the captured name still has the value. Never leaves a Python error behind: a name that is gone is a changed one.
  bool holds() const;
  /// The dictionary that the name is looked up in; null where it is none.
  PyObject* dict() const noexcept { return place_ == Place::dict ? owner_.ptr() : nullptr; }
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Place : unsigned char { dict, cell, attribute };
  Place place_ = Place::dict;
  bool absent_ = false;  // the name is expected not to be there
  nanobind::object owner_, key_, expected_;
};

/// All captured values of a specialization.
class Guards {
 public:
  /// From an iterable of such tuples. Throws TypeError.
  explicit Guards(nanobind::handle tuples);
  /// True while all of them hold. Names in dictionaries that have not changed since are not looked up again.
  bool hold() const {
#if TACK_DICT_VERSIONS
    if (guards_.empty() || (others_.empty() && unchanged())) return true;
#else
    if (guards_.empty()) return true;
#endif
    return look_up();
  }
  int traverse(visitproc visit, void* arg) const;

 private:
  bool look_up() const;

  std::vector<Guard> guards_;
#if TACK_DICT_VERSIONS
  struct Seen {
    PyObject* dict = nullptr;   // owned by a guard; null behind the last
    std::uint64_t version = 0;  // in which its guards held; no dictionary has version 0
  };
  static std::uint64_t version_of(PyObject* dict) noexcept { return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag; }
  bool unchanged() const noexcept {
    for (const Seen& seen : seen_) {
      if (seen.dict == nullptr) break;
      if (version_of(seen.dict) != seen.version) return false;
    }
    return true;
  }
  mutable std::array<Seen, 4> seen_;  // guarded by the GIL; a function's globals and a module or two
  std::vector<std::size_t> others_;   // positions of guards that look elsewhere
#endif
};

/// The one object that means "this name is not there" in a guard.
nanobind::handle absent();

void bind_guards(nanobind::module_& m);

}  // namespace tack::python

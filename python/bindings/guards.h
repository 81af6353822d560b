// guards.h -- captured values that a specialization was compiled with, compared with what they are now at every hit.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

namespace tack::python {

/// One captured value. Compared by identity first; numbers, bools, strings and tuples of them by value (-0.0 is not 0.0, NaN is NaN).
class Guard {
 public:
  /// From the tuple (dict, key, expected), (cell, None, expected) or (object, attribute, expected); ABSENT as `expected` means that the
  /// name is not there. Throws TypeError.
  explicit Guard(nanobind::handle tuple);
  /// True while the captured name still has the value. Never leaves a Python error behind: a name that is gone is a changed one.
  bool holds() const;
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Place : unsigned char { dict, cell, attribute };
  Place place_ = Place::dict;
  nanobind::object owner_, key_, expected_;
};

/// The one object that means "this name is not there" in a guard.
nanobind::handle absent();

void bind_guards(nanobind::module_& m);

}  // namespace tack::python

// kernel_source.cpp -- reads the Python compiler's KernelSource.
#include "kernel_source.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>

namespace tack::python {

namespace nb = nanobind;

namespace {

/// The attribute `name` of `object` as T; an error says where.
template <class T>
T field(nb::handle object, const char* name) {
  const nb::object value = object.attr(name);
  T result{};
  if (!nb::try_cast<T>(value, result)) {
    const std::string text = std::string("KernelSource: ") + nb::type_name(object.type()).c_str() + "." + name + " is " +
                             nb::repr(value).c_str() + ", which has the wrong type or does not fit";
    throw nb::value_error(text.c_str());
  }
  return result;
}

template <class Enum, std::size_t N>
Enum word(const std::string& text, const std::array<std::string_view, N>& words, const char* what) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found == words.end()) throw nb::value_error((std::string("KernelSource: '") + text + "' is no " + what).c_str());
  return static_cast<Enum>(found - words.begin());
}

template <class Enum, std::size_t N>
Enum word_field(nb::handle object, const char* name, const std::array<std::string_view, N>& words, const char* what) {
  return word<Enum>(field<std::string>(object, name), words, what);
}

/// Calls f for each item of a list or tuple.
template <class F>
void each(nb::handle object, const char* name, F&& f) {
  const nb::object list = object.attr(name);
  for (nb::handle item : list) f(item);
}

DType dtype_of(nb::handle dtype) { return dtype_from_name(field<std::string>(dtype, "name")); }

ParamSlot slot_from(nb::handle slot) {
  return {.kind = word_field<ParamKind>(slot, "kind", param_kinds, "parameter kind"),
          .dim = field<std::uint8_t>(slot, "dim"),
          .arg = field<std::uint16_t>(slot, "arg"),
          .type = dtype_from_name(field<std::string>(slot, "dtype"))};
}

Extent extent_from(nb::handle extent) {
  Extent terms;
  each(extent, "terms", [&](nb::handle term) {
    const auto fields = nb::cast<nb::tuple>(term);
    terms.push_back({.op = word<ExtentOp>(nb::cast<std::string>(fields[0]), extent_ops, "extent operation"),
                     .dim = nb::cast<std::uint8_t>(fields[2]),
                     .arg = nb::cast<std::uint16_t>(fields[1]),
                     .value = nb::cast<std::int64_t>(fields[3])});
  });
  return terms;
}

std::vector<Extent> extents_from(nb::handle step, const char* name) {
  std::vector<Extent> extents;
  each(step, name, [&](nb::handle e) { extents.push_back(extent_from(e)); });
  return extents;
}

/// A bound of an integer parameter: Python's may lie beyond 64 bits, which means no bound.
std::int64_t bound(nb::handle argument, const char* name) {
  const nb::object value = argument.attr(name);
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (v == -1 && overflow == 0 && PyErr_Occurred() != nullptr) throw nb::python_error();
  if (overflow > 0) return std::numeric_limits<std::int64_t>::max();
  if (overflow < 0) return std::numeric_limits<std::int64_t>::min();
  return v;
}

ArgumentSpec argument_from(nb::handle argument) {
  ArgumentSpec spec;
  spec.name = field<std::string>(argument, "name");
  spec.kind = word_field<ArgumentSpec::Kind>(argument, "kind", argument_kinds, "argument kind");
  if (const nb::object dtype = argument.attr("dtype"); !dtype.is_none()) spec.dtype = dtype_of(dtype);
  spec.rank = field<std::uint8_t>(argument, "rank");
  spec.layout = static_cast<Layout>(field<std::uint8_t>(argument, "layout"));
  spec.read_only = field<bool>(argument, "read_only");
  spec.written = field<bool>(argument, "written");
  spec.min = bound(argument, "min");
  spec.max = bound(argument, "max");
  spec.texture = field<std::uint8_t>(argument, "texture");
  return spec;
}

}  // namespace

KernelSource kernel_source_from(nb::handle source) {
  KernelSource s;
  s.name = field<std::string>(source, "name");
  s.target = field<std::string>(source, "target");
  s.arch = field<std::string>(source, "arch");
  s.text = field<std::string>(source, "text");
  s.options = field<std::string>(source, "options");
  each(source, "arguments", [&](nb::handle a) { s.arguments.push_back(argument_from(a)); });
  each(source, "entries", [&](nb::handle e) {
    EntryPoint entry{.symbol = field<std::string>(e, "symbol"),
                     .params = {},
                     .rank = field<std::uint8_t>(e, "rank"),
                     .cost_hint = field<double>(e, "cost_hint"),
                     .alone = field<std::string>(e, "alone"),
                     .locked_cost = field<double>(e, "locked_cost"),
                     .group = field<std::uint32_t>(e, "group"),
                     .whole_groups = field<bool>(e, "whole_groups")};
    each(e, "params", [&](nb::handle p) { entry.params.push_back(slot_from(p)); });
    s.entries.push_back(std::move(entry));
  });
  each(source, "steps", [&](nb::handle e) {
    s.steps.push_back({.kind = word_field<Step::Kind>(e, "kind", step_kinds, "step kind"),
                       .entry = field<std::uint32_t>(e, "entry"),
                       .start = extents_from(e, "start"),
                       .stop = extents_from(e, "stop"),
                       .step = extents_from(e, "step"),
                       .match = field<std::uint32_t>(e, "match")});
  });
  s.scratch_bytes = field<std::uint64_t>(source, "scratch_bytes");
  if (const nb::object type = source.attr("result_type"); !type.is_none()) s.result_type = dtype_of(type);
  s.result_offset = field<std::int64_t>(source, "result_offset");
  s.simd = field<std::uint32_t>(source, "simd");
  each(source, "sites", [&](nb::handle e) {
    RecordSite site{.kind = word_field<RecordSite::Kind>(e, "kind", site_kinds, "kind of record"),
                    .line = field<std::uint32_t>(e, "line"),
                    .file = field<std::string>(e, "file"),
                    .text = field<std::string>(e, "text"),
                    .values = {}};
    each(e, "values", [&](nb::handle type) { site.values.push_back(dtype_of(type)); });
    s.sites.push_back(std::move(site));
  });
  return s;
}

}  // namespace tack::python

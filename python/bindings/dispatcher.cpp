// dispatcher.cpp -- the object that a decorated kernel is: a call finds its kernel by the arguments' kinds and launches it. On a hit no
// Python runs. A hand-written type, because nanobind's functions cost more than the launch of a small kernel.
#include <nanobind/nanobind.h>

#include <cstddef>

#if PY_VERSION_HEX < 0x030C0000
#  include <structmember.h>
#endif

#include "arguments.h"
#include "specializations.h"
#include "state.h"

namespace tack::python {

namespace {

/// What a call needs besides its arguments.
class Dispatcher {
 public:
  Dispatcher(std::string name, const nb::tuple& parameters, nb::tuple defaults, nb::object miss, std::size_t positional_only,
             std::size_t keyword_only);

  PyObject* call(PyObject* self, PyObject* const* args, std::size_t positional, PyObject* keywords);
  void set_bad_call(nb::object f) { bad_call_ = std::move(f); }
  Specializations& specializations() noexcept { return specializations_; }
  const std::string& name() const noexcept { return name_; }
  int traverse(visitproc visit, void* arg) const;

 private:
  bool bind(std::span<PyObject*> slots, PyObject* const* args, std::size_t positional, PyObject* keywords) const;
  std::size_t parameter_index(PyObject* keyword, std::size_t guess) const;
  PyObject* run(PyObject* self, PyObject* const* slots, Arguments& arguments);
  SpecializationRef specialize(PyObject* self, PyObject* const* slots, Arguments& arguments, Device& device);
  [[noreturn]] void refuse(PyObject* const* args, std::size_t positional, PyObject* keywords) const;
  [[noreturn]] void refuse_devices(Arguments& arguments) const;
  std::string parameter(std::size_t i) const { return nb::cast<std::string>(parameters_[i]); }

  std::string name_;
  nb::tuple parameters_;          // interned names
  nb::tuple defaults_;            // of the last parameters; ABSENT for one of them that has none
  std::vector<PyObject*> names_;  // the items of parameters_
  std::size_t positional_only_;   // the first of them take no keyword
  std::size_t most_positional_;   // the last of them take nothing else
  nb::object miss_, bad_call_;
  Specializations specializations_;
};

Dispatcher::Dispatcher(std::string name, const nb::tuple& parameters, nb::tuple defaults, nb::object miss, std::size_t positional_only,
                       std::size_t keyword_only)
    : name_(std::move(name)), defaults_(std::move(defaults)), positional_only_(positional_only), miss_(std::move(miss)) {
  nb::list interned;
  for (nb::handle parameter : parameters) {
    if (PyUnicode_CheckExact(parameter.ptr()) == 0) throw nb::type_error("Dispatcher(): parameters must be a tuple of str");
    PyObject* item = parameter.inc_ref().ptr();
    PyUnicode_InternInPlace(&item);
    interned.append(nb::steal(item));
  }
  parameters_ = nb::tuple(interned);
  if (defaults_.size() > parameters_.size()) throw nb::value_error("Dispatcher(): more defaults than parameters");
  if (positional_only > parameters_.size() || keyword_only > parameters_.size() - positional_only)
    throw nb::value_error("Dispatcher(): more positional-only and keyword-only parameters than parameters");
  for (nb::handle parameter : parameters_) names_.push_back(parameter.ptr());
  most_positional_ = names_.size() - keyword_only;
}

PyObject* Dispatcher::call(PyObject* self, PyObject* const* args, std::size_t positional, PyObject* keywords) {
  const std::size_t count = names_.size();
  Arguments arguments(count);
  Scratch<PyObject*, 16> bound(count);
  PyObject* const* slots = args;
  if (positional != count || keywords != nullptr || most_positional_ != count) {
    if (!bind(bound.span(), args, positional, keywords)) refuse(args, positional, keywords);
    slots = bound.span().data();
  }
  for (std::size_t i = 0; i < count; ++i) {
    switch (arguments.take(i, slots[i])) {
      case Taken::yes:
        break;
      case Taken::no:
        refuse(args, positional, keywords);
      case Taken::too_large:
        throw Error(ErrorCode::overflow, "Kernel '" + name_ + "': parameter '" + parameter(i) + "' is " + nb::repr(slots[i]).c_str() +
                                             ", which does not fit in 64 bits; pass a float or split the number");
    }
  }
  return run(self, slots, arguments);
}

PyObject* Dispatcher::run(PyObject* self, PyObject* const* slots, Arguments& arguments) {
  Device* device = arguments.choose_device();
  if (device == nullptr) refuse_devices(arguments);
  SpecializationRef entry = specializations_.find(arguments.key());
  if (!entry) entry = specialize(self, slots, arguments, *device);
  const Kernel& kernel = entry->kernel();
  if (kernel.launch_unchecked_if_short(arguments.values())) return Py_NewRef(Py_None);
  if (kernel.has_atomics()) arguments.find_unshared();
  Result result;
  {
    // The decision reads no clock: the kernel's cost per iteration was measured by earlier launches.
    const MaybeRelease release(kernel.predict(arguments.values()) > release_above_ns || kernel.waits(arguments.values()));
    result = kernel.launch_unchecked(arguments.values());
  }
  return to_python(result);
}

std::size_t Dispatcher::parameter_index(PyObject* keyword, std::size_t guess) const {
  const std::size_t count = names_.size();
  // Names in calls are interned, so identity decides nearly always; keywords mostly come in the order of the parameters.
  if (guess < count && names_[guess] == keyword) return guess;
  for (std::size_t i = 0; i < count; ++i)
    if (names_[i] == keyword) return i;
  for (std::size_t i = 0; i < count; ++i)
    if (PyObject_RichCompareBool(names_[i], keyword, Py_EQ) == 1) return i;
  return count;
}

/// Fills the slots as Python binds arguments; false when they don't fit the parameters.
bool Dispatcher::bind(std::span<PyObject*> slots, PyObject* const* args, std::size_t positional, PyObject* keywords) const {
  const std::size_t count = slots.size();
  if (positional > most_positional_) return false;
  std::copy_n(args, positional, slots.begin());
  std::fill(slots.begin() + static_cast<std::ptrdiff_t>(positional), slots.end(), nullptr);
  std::size_t filled = positional;
  if (keywords != nullptr) {
    const auto given = static_cast<std::size_t>(PyTuple_Size(keywords));
    for (std::size_t k = 0; k < given; ++k) {
      const std::size_t i = parameter_index(PyTuple_GetItem(keywords, static_cast<Py_ssize_t>(k)), positional + k);
      if (i == count || i < positional_only_ || slots[i] != nullptr) return false;
      slots[i] = args[positional + k];
    }
    filled += given;
  }
  if (filled == count) return true;
  const std::size_t first_default = count - defaults_.size();
  for (std::size_t i = positional; i < count; ++i) {
    if (slots[i] != nullptr) continue;
    if (i < first_default) return false;
    slots[i] = PyTuple_GetItem(defaults_.ptr(), static_cast<Py_ssize_t>(i - first_default));
    if (slots[i] == absent().ptr()) return false;
  }
  return true;
}

SpecializationRef Dispatcher::specialize(PyObject* self, PyObject* const* slots, Arguments& arguments, Device& device) {
  nb::list items;
  for (std::size_t i = 0; i < names_.size(); ++i) items.append(nb::handle(slots[i]));
  const SpecializingMode mode(arguments.debug());
  const nb::object answer = outliving([&] { return miss_(nb::handle(self), nb::tuple(items), device_object(device)); });
  if (!nb::isinstance<nb::tuple>(answer) || nb::len(answer) != 2 || !nb::isinstance<Kernel>(answer[0]))
    throw Error(ErrorCode::internal, "Kernel '" + name_ + "': the miss callback must answer (Kernel, list of guards)");
  const nb::object kernel_object = answer[0];
  const Kernel& kernel = *nb::inst_ptr<Kernel>(kernel_object);
  if (kernel.device().get() != &device) {
    throw Error(ErrorCode::internal,
                "Kernel '" + name_ + "' was built for " + kernel.device()->name() + " but must run on " + device.name());
  }
  // Once is enough: a key stands for everything that these checks look at.
  if (kernel.source().arguments.size() != names_.size())
    throw Error(ErrorCode::internal, "Kernel '" + name_ + "' was built for another number of parameters");
  kernel.check(arguments.values());
  SpecializationRef entry(std::make_unique<Specialization>(arguments.key(), kernel_object, Guards(answer[1])));
  specializations_.insert(entry);
  return entry;
}

void Dispatcher::refuse(PyObject* const* args, std::size_t positional, PyObject* keywords) const {
  nb::list items;
  for (std::size_t i = 0; i < positional; ++i) items.append(nb::handle(args[i]));
  nb::dict named;
  const Py_ssize_t given = keywords != nullptr ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t k = 0; k < given; ++k)
    named[nb::handle(PyTuple_GetItem(keywords, k))] = nb::handle(args[positional + static_cast<std::size_t>(k)]);
  if (bad_call_.is_valid()) bad_call_(nb::tuple(items), named);
  throw Error(ErrorCode::type_mismatch, "Kernel '" + name_ + "': the arguments do not fit its parameters");
}

void Dispatcher::refuse_devices(Arguments& arguments) const {
  const auto [first, other] = arguments.conflict();
  const auto place = [&](std::size_t i) {
    std::string text("'");
    text += parameter(i);
    const ForeignArray* const foreign = arguments.foreign(i);
    text += foreign == nullptr ? "' (" : foreign->numpy ? "' (a NumPy array on " : "' (another library's on ";
    text += arguments.array(i).device().name();
    return text + ")";
  };
  const bool foreign = arguments.foreign(first) != nullptr || arguments.foreign(other) != nullptr;
  const std::string moved = parameter(arguments.foreign(other) != nullptr ? other : first);
  const std::string cure = foreign ? std::string("tack.array(").append(moved).append(", device=...)") : moved + ".to_device(...)";
  throw Error(ErrorCode::invalid_argument,
              "Kernel '" + name_ + "': arguments " + place(first) + " and " + place(other) + " are on two devices; move one with " + cure);
}

int Dispatcher::traverse(visitproc visit, void* arg) const {
  Py_VISIT(parameters_.ptr());
  Py_VISIT(defaults_.ptr());
  Py_VISIT(miss_.ptr());
  Py_VISIT(bad_call_.ptr());
  return specializations_.traverse(visit, arg);
}

// ---- the Python type ----

struct DispatcherObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* dict;
  PyObject* weakrefs;
  Dispatcher* impl;  // owned; null before __init__
};

DispatcherObject* object_of(PyObject* self) { return reinterpret_cast<DispatcherObject*>(self); }

Dispatcher& impl_of(PyObject* self) {
  Dispatcher* impl = object_of(self)->impl;
  if (impl == nullptr) throw nb::type_error("this Dispatcher was never initialised");
  return *impl;
}

PyObject* vectorcall(PyObject* self, PyObject* const* args, std::size_t nargsf, PyObject* keywords) noexcept {
  return guarded<PyObject*>(nullptr,
                            [&] { return impl_of(self).call(self, args, static_cast<std::size_t>(PyVectorcall_NARGS(nargsf)), keywords); });
}

PyObject* dispatcher_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject* self = PyType_GenericNew(type, args, kwargs);
  if (self != nullptr) object_of(self)->vectorcall = vectorcall;
  return self;
}

int dispatcher_init(PyObject* self, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"name", "parameters", "defaults", "miss", "positional_only", "keyword_only", nullptr};
  PyObject *name = nullptr, *parameters = nullptr, *defaults = nullptr, *miss = nullptr;
  Py_ssize_t positional_only = 0, keyword_only = 0;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "UO!O!O|nn:Dispatcher", const_cast<char**>(names), &name, &PyTuple_Type, &parameters,
                                  &PyTuple_Type, &defaults, &miss, &positional_only, &keyword_only) == 0)
    return -1;
  return guarded(-1, [&] {
    DispatcherObject* d = object_of(self);
    if (d->impl != nullptr) throw nb::type_error("Dispatcher.__init__() was called twice");
    auto impl = std::make_unique<Dispatcher>(nb::cast<std::string>(nb::handle(name)), nb::borrow<nb::tuple>(parameters),
                                             nb::borrow<nb::tuple>(defaults), nb::borrow(miss), static_cast<std::size_t>(positional_only),
                                             static_cast<std::size_t>(keyword_only));
    for (const char* attribute : {"__name__", "__qualname__"})
      if (PyObject_SetAttrString(self, attribute, name) != 0) throw nb::python_error();
    d->impl = impl.release();
    return 0;
  });
}

int dispatcher_traverse(PyObject* self, visitproc visit, void* arg) {
  const DispatcherObject* d = object_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(d->dict);
  return d->impl != nullptr ? d->impl->traverse(visit, arg) : 0;
}

int dispatcher_clear(PyObject* self) {
  DispatcherObject* d = object_of(self);
  Py_CLEAR(d->dict);
  std::unique_ptr<Dispatcher>(std::exchange(d->impl, nullptr)).reset();
  return 0;
}

void dispatcher_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (object_of(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  dispatcher_clear(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

PyObject* dispatcher_repr(PyObject* self) {
  return guarded<PyObject*>(nullptr, [&] { return PyUnicode_FromFormat("<tack.kernel %s>", impl_of(self).name().c_str()); });
}

/// A kernel in a class is a method: the instance is its first argument.
PyObject* dispatcher_get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return guarded<PyObject*>(nullptr, [&] {
    static PyObject* const method = nb::object(nb::module_::import_("types").attr("MethodType")).release().ptr();
    return PyObject_CallFunctionObjArgs(method, self, instance, nullptr);
  });
}

PyObject* dispatcher_set_bad_call(PyObject* self, PyObject* f) {
  return guarded<PyObject*>(nullptr, [&] {
    impl_of(self).set_bad_call(nb::borrow(f));
    return Py_NewRef(Py_None);
  });
}

PyObject* dispatcher_clear_method(PyObject* self, PyObject*) {
  return guarded<PyObject*>(nullptr, [&] {
    impl_of(self).specializations().clear();
    return Py_NewRef(Py_None);
  });
}

/// Pickled as functions are: by module and qualified name.
PyObject* dispatcher_reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

PyObject* dispatcher_specializations(PyObject* self, void*) {
  return guarded<PyObject*>(nullptr, [&] { return PyLong_FromSize_t(impl_of(self).specializations().size()); });
}

PyMethodDef methods[] = {{"set_bad_call", dispatcher_set_bad_call, METH_O,
                          "set_bad_call($self, f, /)\n--\n\nf(args, kwargs) is called when the arguments do not fit the parameters or are "
                          "of no kind that kernels "
                          "take; it must raise."},
                         {"clear", dispatcher_clear_method, METH_NOARGS, "clear($self, /)\n--\n\nForgets all specializations."},
                         {"__reduce__", dispatcher_reduce, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {{"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {"specializations", dispatcher_specializations, nullptr, "How many kernels it holds.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

#if PY_VERSION_HEX >= 0x030C0000
constexpr int offset_member = Py_T_PYSSIZET, read_only_member = Py_READONLY;
#else
constexpr int offset_member = T_PYSSIZET, read_only_member = READONLY;
#endif

PyMemberDef members[] = {{"__vectorcalloffset__", offset_member, offsetof(DispatcherObject, vectorcall), read_only_member, nullptr},
                         {"__dictoffset__", offset_member, offsetof(DispatcherObject, dict), read_only_member, nullptr},
                         {"__weaklistoffset__", offset_member, offsetof(DispatcherObject, weakrefs), read_only_member, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

template <class F>
void* slot(F* function) {
  return reinterpret_cast<void*>(function);
}

constexpr const char* doc =
    "Dispatcher(name, parameters, defaults, miss, positional_only=0, keyword_only=0)\n--\n\nA callable that finds the kernel for its "
    "arguments by their kinds and launches it. ``miss(dispatcher, args, device)`` answers (Kernel, guards) for arguments that are new; "
    "``defaults`` belong to the last parameters, ABSENT meaning that there is none. The first ``positional_only`` parameters take no "
    "keyword, the last ``keyword_only`` nothing else.";

}  // namespace

void bind_dispatcher(nb::module_& m) {
  PyType_Slot slots[] = {{Py_tp_doc, const_cast<char*>(doc)},
                         {Py_tp_new, slot(dispatcher_new)},
                         {Py_tp_init, slot(dispatcher_init)},
                         {Py_tp_call, slot(PyVectorcall_Call)},
                         {Py_tp_dealloc, slot(dispatcher_dealloc)},
                         {Py_tp_traverse, slot(dispatcher_traverse)},
                         {Py_tp_clear, slot(dispatcher_clear)},
                         {Py_tp_repr, slot(dispatcher_repr)},
                         {Py_tp_descr_get, slot(dispatcher_get)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, properties},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec{.name = "tack._runtime.Dispatcher",
                   .basicsize = sizeof(DispatcherObject),
                   .itemsize = 0,
                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                            Py_TPFLAGS_IMMUTABLETYPE,
                   .slots = slots};
  const nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  m.attr("Dispatcher") = type;
  bind_guards(m);
}

}  // namespace tack::python

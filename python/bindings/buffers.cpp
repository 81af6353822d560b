// buffers.cpp -- the buffer protocol in both directions.
#include "buffers.h"

#include <bit>
#include <limits>
#include <memory>
#include <string>

#include "state.h"

namespace tack::python {

std::optional<DType> BufferView::dtype() const noexcept {
  const char* f = view_.format != nullptr ? view_.format : "B";
  constexpr bool little = std::endian::native == std::endian::little;
  if (*f == '@' || *f == '=' || *f == (little ? '<' : '>') || (!little && *f == '!')) ++f;
  if (*f == '\0' || f[1] != '\0') return std::nullopt;
  // The letter says the kind; how many bits a long has differs, so the size is the item's.
  TypeCode code{};
  switch (*f) {
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      code = TypeCode::int_;
      break;
    case '?':
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      code = TypeCode::uint;
      break;
    case 'f':
    case 'd':
      code = TypeCode::float_;
      break;
    default:
      return std::nullopt;
  }
  if (view_.itemsize < 1 || view_.itemsize > 8) return std::nullopt;
  const DType type{code, static_cast<std::uint8_t>(view_.itemsize * 8)};
  return dtype_index(type) < 0 ? std::nullopt : std::optional(type);
}

ByteRange byte_range(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::size_t itemsize) {
  constexpr std::int64_t limit =
      std::numeric_limits<std::int64_t>::max() / (std::int64_t{2} * max_rank);  // so that the sum over all dimensions fits
  ByteRange range{0, static_cast<std::int64_t>(itemsize)};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] <= 0) return {};
    const std::int64_t steps = shape[d] - 1, stride = strides[d];
    if (shape.size() > max_rank || (steps > 0 && (stride > limit / steps || stride < -(limit / steps))))
      throw Error(ErrorCode::invalid_argument, "The shape and strides reach further than 64-bit addresses, or have more than 8 dimensions");
    (stride < 0 ? range.low : range.high) += steps * stride;
  }
  return range;
}

namespace {

/// struct's letter for each of tack's array dtypes, in their order.
constexpr const char* formats[] = {"b", "B", "h", "H", "i", "I", "q", "Q", "f", "d"};

/// What an exported Py_buffer points at besides the elements.
struct Exported {
  std::array<Py_ssize_t, max_rank + 1> shape, strides;
};

bool fortran_contiguous(const Array& a) {
  std::int64_t expected = static_cast<std::int64_t>(a.dtype().size());
  for (int d = 0; d < a.rank(); ++d) {
    if (a.shape(d) > 1 && a.stride(d) != expected) return false;
    expected *= a.shape(d);
  }
  return true;
}

int refuse(const char* why) {
  PyErr_SetString(PyExc_BufferError, why);
  return -1;
}

int export_array(PyObject* self, Py_buffer* view, int flags) {
  if (!nb::inst_ready(self)) return refuse("This tack.Array was never initialised");
  const Array& a = *nb::inst_ptr<Array>(self);
  const Capabilities& can = a.device().capabilities();
  if (!can.host_addressable) {
    const std::string text = "The array is on " + a.device().name() + ", whose memory the host cannot address; copy it with numpy() first";
    return refuse(text.c_str());
  }
  const auto asked = [flags](int what) { return (flags & what) == what; };
  if (asked(PyBUF_WRITABLE) && a.read_only()) return refuse("The array is read-only");
  // A contiguous array of size 0 or with unit dimensions is contiguous in both orders.
  const bool c = a.layout() == Layout::contiguous;
  if ((asked(PyBUF_C_CONTIGUOUS) || !asked(PyBUF_STRIDES)) && !c) return refuse("The array is not contiguous; copy it with numpy() first");
  if (asked(PyBUF_F_CONTIGUOUS) && !fortran_contiguous(a)) return refuse("The array is not contiguous in Fortran's order");
  if (asked(PyBUF_ANY_CONTIGUOUS) && !c && !fortran_contiguous(a)) return refuse("The array is not contiguous; copy it with numpy() first");
  if (can.queued) {
    a.buffer()->mark_shared();  // whoever holds the buffer does not know the queue
    const ReleaseGil release;
    a.device().synchronize();
  }

  auto exported = std::make_unique<Exported>();
  const int lanes = a.dtype().lanes;
  const DType scalar{a.dtype().code, a.dtype().bits};
  const auto rank = static_cast<std::size_t>(a.rank());
  for (std::size_t d = 0; d < rank; ++d) {
    exported->shape[d] = static_cast<Py_ssize_t>(a.shape()[d]);
    exported->strides[d] = static_cast<Py_ssize_t>(a.strides()[d]);
  }
  if (lanes > 1) {  // a vector's components are a last dimension
    exported->shape[rank] = lanes;
    exported->strides[rank] = static_cast<Py_ssize_t>(scalar.size());
  }
  const int format = dtype_index(scalar);
  if (format < 0) return refuse("The array's element type has no place in the buffer protocol");
  view->obj = Py_NewRef(self);
  view->buf = a.data();
  view->len = static_cast<Py_ssize_t>(a.bytes());
  view->itemsize = static_cast<Py_ssize_t>(scalar.size());
  view->readonly = a.read_only() ? 1 : 0;
  view->ndim = asked(PyBUF_ND) ? a.rank() + (lanes > 1 ? 1 : 0) : 1;
  view->format = asked(PyBUF_FORMAT) ? const_cast<char*>(formats[format]) : nullptr;
  view->shape = asked(PyBUF_ND) ? exported->shape.data() : nullptr;
  view->strides = asked(PyBUF_STRIDES) ? exported->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = exported.release();
  return 0;
}

}  // namespace

int array_getbuffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  return guarded(-1, [&] { return export_array(self, view, flags); });
}

void array_releasebuffer(PyObject*, Py_buffer* view) noexcept { std::unique_ptr<Exported>(static_cast<Exported*>(view->internal)).reset(); }

}  // namespace tack::python

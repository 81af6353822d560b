// core/kernel_source_io.cpp -- KernelSource to bytes and back: little endian, a version in front, each length before its items.
#include "core/kernel_source_io.h"

#include <bit>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "core/text.h"

namespace tack {

namespace {

constexpr std::string_view magic = "tack";
constexpr std::uint32_t version = 5;  // of this format; any other is refused, and a cache entry of it made anew

class Writer {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(std::byte{value}); }
  void u16(std::uint16_t value) { little(value, 2); }
  void u32(std::uint32_t value) { little(value, 4); }
  void u64(std::uint64_t value) { little(value, 8); }
  void i64(std::int64_t value) { little(static_cast<std::uint64_t>(value), 8); }
  void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
  void string(std::string_view value) {
    count(value.size());
    const auto* data = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), data, data + value.size());
  }
  void count(std::size_t value) {
    if (value > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorCode::invalid_argument, "A kernel of 2^32 items is too large to be stored.");
    u32(static_cast<std::uint32_t>(value));
  }
  template <class Item, class Write>
  void list(const std::vector<Item>& items, Write write) {
    count(items.size());
    for (const Item& item : items) write(item);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void little(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xff));
  }
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(little(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(little(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(little(4)); }
  std::uint64_t u64() { return little(8); }
  std::int64_t i64() { return static_cast<std::int64_t>(little(8)); }
  double f64() { return std::bit_cast<double>(u64()); }
  bool boolean() { return u8() != 0; }
  std::string string() {
    const std::size_t size = u32();
    const std::span<const std::byte> part = take(size);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  template <class Item, class Read>
  std::vector<Item> list(Read read) {
    const std::size_t size = u32();
    // Every item takes a byte at least, so that a forged count cannot ask for memory that the file does not justify.
    if (size > bytes_.size())
      throw Error(ErrorCode::corrupt, text("A stored kernel ends early: ", std::uint64_t{size}, " items are announced."));
    std::vector<Item> items;
    items.reserve(size);
    for (std::size_t i = 0; i < size; ++i) items.push_back(read());
    return items;
  }
  void finish() const {
    if (!bytes_.empty()) throw Error(ErrorCode::corrupt, text("A stored kernel has ", std::uint64_t{bytes_.size()}, " bytes too many."));
  }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (size > bytes_.size())
      throw Error(ErrorCode::corrupt, text("A stored kernel ends early: ", std::uint64_t{size - bytes_.size()}, " bytes are missing."));
    const std::span<const std::byte> part = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return part;
  }
  std::uint64_t little(int width) {
    const std::span<const std::byte> part = take(static_cast<std::size_t>(width));
    std::uint64_t value = 0;
    for (int i = 0; i < width; ++i) value |= std::to_integer<std::uint64_t>(part[static_cast<std::size_t>(i)]) << (8 * i);
    return value;
  }
  std::span<const std::byte> bytes_;
};

void write(Writer& out, DType type) {
  out.u8(static_cast<std::uint8_t>(type.code));
  out.u8(type.bits);
  out.u16(type.lanes);
}
DType read_dtype(Reader& in) {
  DType type;
  type.code = static_cast<TypeCode>(in.u8());
  type.bits = in.u8();
  type.lanes = in.u16();
  return type;
}

void write(Writer& out, const Extent& extent) {
  out.list(extent, [&](const ExtentTerm& term) {
    out.u8(static_cast<std::uint8_t>(term.op));
    out.u8(term.dim);
    out.u16(term.arg);
    out.i64(term.value);
  });
}
Extent read_extent(Reader& in) {
  return in.list<ExtentTerm>([&] {
    ExtentTerm term;
    term.op = static_cast<ExtentOp>(in.u8());
    term.dim = in.u8();
    term.arg = in.u16();
    term.value = in.i64();
    return term;
  });
}

void write(Writer& out, const ArgumentSpec& argument) {
  out.string(argument.name);
  out.u8(static_cast<std::uint8_t>(argument.kind));
  write(out, argument.dtype);
  out.u8(argument.rank);
  out.u8(static_cast<std::uint8_t>(argument.layout));
  out.u8(argument.read_only ? 1 : 0);
  out.u8(argument.written ? 1 : 0);
  out.u8(argument.texture);
  out.i64(argument.min);
  out.i64(argument.max);
}
ArgumentSpec read_argument(Reader& in) {
  ArgumentSpec argument;
  argument.name = in.string();
  argument.kind = static_cast<ArgumentSpec::Kind>(in.u8());
  argument.dtype = read_dtype(in);
  argument.rank = in.u8();
  argument.layout = static_cast<Layout>(in.u8());
  argument.read_only = in.boolean();
  argument.written = in.boolean();
  argument.texture = in.u8();
  argument.min = in.i64();
  argument.max = in.i64();
  return argument;
}

void write(Writer& out, const EntryPoint& entry) {
  out.string(entry.symbol);
  out.list(entry.params, [&](const ParamSlot& slot) {
    out.u8(static_cast<std::uint8_t>(slot.kind));
    out.u8(slot.dim);
    out.u16(slot.arg);
    write(out, slot.type);
  });
  out.u8(entry.rank);
  out.f64(entry.cost_hint);
  out.string(entry.alone);
  out.f64(entry.locked_cost);
  out.u32(entry.group);
  out.u8(entry.whole_groups ? 1 : 0);
}
EntryPoint read_entry(Reader& in) {
  EntryPoint entry;
  entry.symbol = in.string();
  entry.params = in.list<ParamSlot>([&] {
    ParamSlot slot;
    slot.kind = static_cast<ParamKind>(in.u8());
    slot.dim = in.u8();
    slot.arg = in.u16();
    slot.type = read_dtype(in);
    return slot;
  });
  entry.rank = in.u8();
  entry.cost_hint = in.f64();
  entry.alone = in.string();
  entry.locked_cost = in.f64();
  entry.group = in.u32();
  entry.whole_groups = in.boolean();
  return entry;
}

void write(Writer& out, const Step& step) {
  out.u8(static_cast<std::uint8_t>(step.kind));
  out.u32(step.entry);
  for (const std::vector<Extent>* extents : {&step.start, &step.stop, &step.step})
    out.list(*extents, [&](const Extent& extent) { write(out, extent); });
  out.u32(step.match);
}
Step read_step(Reader& in) {
  Step step;
  step.kind = static_cast<Step::Kind>(in.u8());
  step.entry = in.u32();
  for (std::vector<Extent>* extents : {&step.start, &step.stop, &step.step}) *extents = in.list<Extent>([&] { return read_extent(in); });
  step.match = in.u32();
  return step;
}

void write(Writer& out, const RecordSite& site) {
  out.u8(static_cast<std::uint8_t>(site.kind));
  out.u32(site.line);
  out.string(site.file);
  out.string(site.text);
  out.list(site.values, [&](DType type) { write(out, type); });
}
RecordSite read_site(Reader& in) {
  RecordSite site;
  site.kind = static_cast<RecordSite::Kind>(in.u8());
  site.line = in.u32();
  site.file = in.string();
  site.text = in.string();
  site.values = in.list<DType>([&] { return read_dtype(in); });
  return site;
}

void write(Writer& out, const KernelSource& source, std::string_view source_text) {
  out.string(source.name);
  out.string(source.target);
  out.string(source.arch);
  out.string(source_text);
  out.string(source.options);
  out.list(source.arguments, [&](const ArgumentSpec& argument) { write(out, argument); });
  out.list(source.entries, [&](const EntryPoint& entry) { write(out, entry); });
  out.list(source.steps, [&](const Step& step) { write(out, step); });
  out.u64(source.scratch_bytes);
  write(out, source.result_type);
  out.i64(source.result_offset);
  out.u32(source.simd);
  out.list(source.sites, [&](const RecordSite& site) { write(out, site); });
}
KernelSource read_source(Reader& in) {
  KernelSource source;
  source.name = in.string();
  source.target = in.string();
  source.arch = in.string();
  source.text = in.string();
  source.options = in.string();
  source.arguments = in.list<ArgumentSpec>([&] { return read_argument(in); });
  source.entries = in.list<EntryPoint>([&] { return read_entry(in); });
  source.steps = in.list<Step>([&] { return read_step(in); });
  source.scratch_bytes = in.u64();
  source.result_type = read_dtype(in);
  source.result_offset = in.i64();
  source.simd = in.u32();
  source.sites = in.list<RecordSite>([&] { return read_site(in); });
  validate(source, ErrorCode::corrupt);
  return source;
}

Writer begin() {
  Writer out;
  out.string(magic);
  out.u32(version);
  return out;
}
Reader begin(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.string() != magic) throw Error(ErrorCode::corrupt, "These bytes are no stored kernel.");
  if (const std::uint32_t found = in.u32(); found != version)
    throw Error(ErrorCode::corrupt, text("A stored kernel has format ", found, ", this version of tack reads ", version, "."));
  return in;
}

}  // namespace

std::vector<std::byte> write_front_entry(const KernelSource& source, const std::string& content, const std::string& compiler) {
  Writer out = begin();
  write(out, source, {});
  out.string(content);
  out.string(compiler);
  return out.take();
}

FrontEntry read_front_entry(std::span<const std::byte> bytes) {
  Reader in = begin(bytes);
  FrontEntry entry;
  entry.source = read_source(in);
  entry.content = in.string();
  entry.compiler = in.string();
  in.finish();
  return entry;
}

std::vector<std::byte> write_kernel_source(const KernelSource& source) {
  Writer out = begin();
  write(out, source, source.text);
  return out.take();
}

KernelSource read_kernel_source(std::span<const std::byte> bytes) {
  Reader in = begin(bytes);
  KernelSource source = read_source(in);
  in.finish();
  return source;
}

}  // namespace tack

// backends/metal/metal_module.cpp -- compiles MSL, writes and reads archives, which Metal takes as files only, and makes a pipeline of each
// entry.
#include "backends/metal/metal_module.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "backends/gpu/compiler.h"
#include "core/file.h"
#include "core/text.h"

namespace tack::metal {

namespace {

constexpr std::string_view fast_math_option = "-ffast-math";

/// How a binary starts. The text follows, then the archive.
struct Head {
  std::array<char, 16> magic;
  std::uint64_t fast_math, text_bytes, archive_bytes;
};
constexpr std::array<char, 16> magic{'t', 'a', 'c', 'k', ' ', 'M', 'S', 'L', ' ', 'c', 'o', 'd', 'e', ' ', '1', '\n'};

/// A new folder for this user alone, gone with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<unsigned> last{0};  // beside the process's number and the clock, so that threads get folders of their own
    std::error_code error;
    const std::string base = std::filesystem::temp_directory_path(error).string();
    path_ = text(base, "/tack-metal-", process_id(), '-', wall_clock(), '-', ++last);
    if (!error) make_folders(path_, error);
    if (error) throw Error(ErrorCode::io, text("The folder ", path_, " cannot be made: ", error.message(), '.'));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file() const { return path_ + "/code.metallib"; }

 private:
  std::string path_;
};

std::vector<std::byte> read_file(const std::string& path) {
  std::error_code error;
  const File file = File::open(path, error);
  std::vector<std::byte> bytes(error ? 0 : static_cast<std::size_t>(file.info(error).bytes));
  if (!error) bytes.resize(file.read(bytes, error));
  if (error) throw Error(ErrorCode::io, text("The file ", path, " cannot be read: ", error.message(), '.'));
  return bytes;
}

void write_file(const std::string& path, std::span<const std::byte> bytes) {
  std::error_code error;
  File file = File::create(path, error);
  if (!error) file.write({bytes}, error);
  if (!error) file.close(error);
  if (error) throw Error(ErrorCode::io, text("The file ", path, " cannot be written: ", error.message(), '.'));
}

/// Error(compile) with the lines that matter, or the failure that it was.
[[noreturn]] void fail_compile(const Metal& metal, const std::string& kernel, const abi::Problem& problem) {
  Error::Fields fields = metal.error_of("compile", problem, metal.compile.symbol).fields();
  const bool refused = fields.code == ErrorCode::compile;
  fields.message =
      text("Kernel '", kernel, "' cannot be compiled for Metal:", refused ? gpu::relevant_lines(problem.text) : text(' ', problem.text));
  throw Error(std::move(fields));
}

Ref compile_library(const Metal& metal, abi::Object device, const std::string& kernel, const std::string& source, bool fast_math) {
  Ref library(metal);
  abi::Problem problem;
  if (metal.compile(device, source.c_str(), fast_math ? 1 : 0, library.place(), &problem) != abi::Status::done)
    fail_compile(metal, kernel, problem);
  return library;
}

Place place_of(const ParamSlot& slot) noexcept {
  switch (slot.kind) {
    case ParamKind::pointer:
    case ParamKind::scratch:
    case ParamKind::records:
      return Place::buffer;
    case ParamKind::texture:
      return Place::texture;
    default:
      return Place::constant;
  }
}

/// The functions of a binary, and machine code for them.
class Code {
 public:
  Code(const Metal& metal, Log& log, abi::Object device, std::span<const std::byte> binary, const std::string& kernel);
  /// The code of one entry for groups of `threads`.
  Ref pipeline(const std::string& symbol, std::uint32_t threads, abi::PipelineFacts& facts);

 private:
  bool open_archive(std::span<const std::byte> archive);
  void compile_text();
  const Metal& metal_;
  Log& log_;
  const abi::Object device_;
  const std::string& kernel_;
  std::string text_;
  bool fast_math_ = false;
  bool compiled_ = false;  // the library is the text's, not the archive's
  Ref library_, archive_;
};

/// An archive with the machine code of all entries.
std::vector<std::byte> archive_of(const Metal& metal, abi::Object device, abi::Object library, const KernelSource& source,
                                  std::uint32_t block) {
  Ref archive(metal);
  metal("make an archive", metal.archive, device, nullptr, archive.place());
  for (const EntryPoint& entry : source.entries)
    metal(text("archive '", entry.symbol, '\''), metal.archive_add, archive.get(), library, entry.symbol.c_str(),
          gpu::Groups(entry, block).threads);
  const TemporaryFolder folder;
  metal("save an archive", metal.archive_save, archive.get(), folder.file().c_str());
  return read_file(folder.file());
}

Code::Code(const Metal& metal, Log& log, abi::Object device, std::span<const std::byte> binary, const std::string& kernel)
    : metal_(metal), log_(log), device_(device), kernel_(kernel), library_(metal), archive_(metal) {
  Head head{};
  if (binary.size() >= sizeof head) std::memcpy(&head, binary.data(), sizeof head);
  const std::size_t rest = binary.size() - std::min(binary.size(), sizeof head);
  if (head.magic != magic || head.text_bytes > rest || head.archive_bytes != rest - head.text_bytes)
    throw Error(ErrorCode::corrupt, text("The code of kernel '", kernel, "' is damaged: it is not what tack's Metal backend stores."));
  text_.assign(reinterpret_cast<const char*>(binary.data()) + sizeof head, static_cast<std::size_t>(head.text_bytes));
  fast_math_ = head.fast_math != 0;
  if (head.archive_bytes == 0 || !open_archive(binary.last(static_cast<std::size_t>(head.archive_bytes)))) compile_text();
}

bool Code::open_archive(std::span<const std::byte> archive) {
  try {
    const TemporaryFolder folder;  // Metal has read the file, or keeps it open
    write_file(folder.file(), archive);
    metal_("open an archive", metal_.archive, device_, folder.file().c_str(), archive_.place());
    metal_("take functions out of an archive", metal_.functions, device_, folder.file().c_str(), library_.place());
    return true;
  } catch (const Error& error) {
    log_.write(LogLevel::info, text("Kernel '", kernel_, "' is compiled from its text: ", error.what()));
    return false;
  }
}

void Code::compile_text() {
  library_ = compile_library(metal_, device_, kernel_, text_, fast_math_);
  compiled_ = true;
}

Ref Code::pipeline(const std::string& symbol, std::uint32_t threads, abi::PipelineFacts& facts) {
  for (;;) {
    try {
      Ref pipeline(metal_);
      metal_(text("make code of '", symbol, '\''), metal_.pipeline, device_, library_.get(), symbol.c_str(), archive_.get(), threads,
             pipeline.place(), &facts);
      return pipeline;
    } catch (const Error& error) {
      if (compiled_) throw;
      log_.write(LogLevel::info, text("Kernel '", kernel_, "' is compiled from its text: ", error.what()));
      compile_text();
    }
  }
}

}  // namespace

std::vector<std::byte> compile(const Metal& metal, Log& log, abi::Object device, const KernelSource& source, std::uint32_t block) {
  const bool fast_math = source.options.find(fast_math_option) != std::string::npos;
  const Ref library = compile_library(metal, device, source.name, source.text, fast_math);
  std::vector<std::byte> archive;
  try {
    archive = archive_of(metal, device, library.get(), source, block);
  } catch (const Error& error) {
    // The kernel runs all the same; a later process compiles it again.
    log.write(LogLevel::info, text("Kernel '", source.name, "': no archive was made: ", error.what()));
  }
  const Head head{magic, fast_math ? 1u : 0u, source.text.size(), archive.size()};
  std::vector<std::byte> binary(sizeof head + source.text.size() + archive.size());
  std::memcpy(binary.data(), &head, sizeof head);
  std::memcpy(binary.data() + sizeof head, source.text.data(), source.text.size());
  if (!archive.empty()) std::memcpy(binary.data() + sizeof head + source.text.size(), archive.data(), archive.size());
  return binary;
}

MetalModule::MetalModule(const Metal& metal, Log& log, abi::Object device, std::span<const std::byte> binary, const KernelSource& source,
                         std::uint32_t block)
    : GroupedModule(source) {
  Code code(metal, log, device, binary, kernel());
  for (const EntryPoint& point : source.entries) {
    Entry entry;
    entry.groups = gpu::Groups(point, block);
    for (const ParamSlot& slot : point.params) {
      entry.places.push_back(place_of(slot));
      if (entry.places.back() == Place::constant) ++entry.constants;
    }
    abi::PipelineFacts facts{};
    entry.pipeline = code.pipeline(point.symbol, entry.groups.threads, facts);
    check_registers(entry.groups, facts.max_threads, "metal", metal.pipeline.symbol);
    entries_.push_back(std::move(entry));
  }
}

}  // namespace tack::metal

// backends/gpu/compiler.h -- a compiler library (NVRTC, hipRTC), opened at run time: one compilation, its options and its log.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/library.h"
#include "core/native_function.h"
#include "core/text.h"
#include "tack/error.hpp"
#include "tack/kernel.hpp"

namespace tack::gpu {

/// The words of a line of options.
std::vector<std::string> words_of(std::string_view options);
/// The lines of a compiler's log that say what is wrong: the first few errors, without warnings and counts.
std::string relevant_lines(std::string_view log);

/// A loaded compiler. Immutable; thread-safe.
template <class Api>
class Compiler : public Api::CompilerFunctions {
 public:
  using Result = Api::CompileResult;

  /// Throws Error(unavailable) when the library has not all the functions that tack needs.
  explicit Compiler(Library library) : library_(std::move(library)) {
    const std::vector<std::string> missing = this->find_in(library_);
    if (!missing.empty())
      throw Api::unavailable(text(Api::compiler_name, " in ", library_.name(), " is too old: it lacks ", missing_text(missing), '.'));
  }

 protected:
  using SizeFunction = NativeFunction<Result, typename Api::Program, std::size_t*>;
  using BytesFunction = NativeFunction<Result, typename Api::Program, char*>;

  /// Compiles source.text with `options` and those of the source, and answers what the two functions give. Throws Error(compile) with the
  /// compiler's relevant lines.
  std::vector<std::byte> run(const KernelSource& source, std::vector<std::string> options, const SizeFunction& size_of,
                             const BytesFunction& bytes_of) const {
    for (std::string& word : words_of(source.options)) options.push_back(std::move(word));
    std::vector<const char*> given;
    given.reserve(options.size());
    for (const std::string& option : options) given.push_back(option.c_str());
    const Job job(*this, source);
    check(source, this->compile_program, job, static_cast<int>(given.size()), given.data());
    std::size_t size = 0;
    check(source, size_of, job, &size);
    std::vector<std::byte> binary(size);
    check(source, bytes_of, job, reinterpret_cast<char*>(binary.data()));
    return binary;
  }

  const Library& library() const noexcept { return library_; }

 private:
  /// One program of the compiler's.
  class Job {
   public:
    Job(const Compiler& compiler, const KernelSource& source) : compiler_(compiler) {
      const Result result =
          compiler.create_program(&program_, source.text.c_str(), text(source.name, Api::source_suffix).c_str(), 0, nullptr, nullptr);
      if (result != Result::success) compiler.fail(source, result, compiler.create_program.symbol, {});
    }
    ~Job() { compiler_.destroy_program(&program_); }
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    Api::Program program() const noexcept { return program_; }
    /// Empty when there is none.
    std::string log() const {
      std::size_t size = 0;
      if (compiler_.program_log_size(program_, &size) != Result::success || size == 0) return {};
      std::string log(size, '\0');
      if (compiler_.program_log(program_, log.data()) != Result::success) return {};
      log.resize(log.find_last_not_of('\0') + 1);
      return log;
    }

   private:
    const Compiler& compiler_;
    Api::Program program_ = nullptr;
  };

  template <class... Parameters>
  void check(const KernelSource& source, const NativeFunction<Result, typename Api::Program, Parameters...>& function, const Job& job,
             std::type_identity_t<Parameters>... arguments) const {
    const Result result = function(job.program(), arguments...);
    if (result != Result::success) fail(source, result, function.symbol, refused(result) ? job.log() : std::string());
  }

  static bool refused(Result result) noexcept { return result == Result::compilation || result == Result::invalid_option; }

  [[noreturn]] void fail(const KernelSource& source, Result result, const char* symbol, std::string_view log) const {
    Error::Fields fields;
    fields.code = refused(result) ? ErrorCode::compile : result == Result::out_of_memory ? ErrorCode::out_of_memory : ErrorCode::driver;
    fields.message = text("Kernel '", source.name, "' cannot be compiled for ", Api::title, " (", source.arch, ")", log.empty() ? "." : ":",
                          relevant_lines(log));
    fields.backend = Api::type;
    fields.operation = symbol;
    fields.native_code = static_cast<int>(result);
    const char* name = this->error_string(result);
    fields.native_name = name == nullptr ? "" : name;
    throw Error(std::move(fields));
  }

  const Library library_;
};

}  // namespace tack::gpu

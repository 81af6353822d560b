// core/runtime.cpp -- Runtime: starts devices by name and keeps them; holds what a host installs.
#include "tack/runtime.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <span>
#include <utility>

#include "core/config.h"
#include "core/device_data.h"
#include "core/kernel_source_io.h"
#include "core/registry.h"
#include "core/runtime_impl.h"
#include "core/text.h"

namespace tack {

namespace {

constexpr int max_num_threads = 4096;
constexpr std::uint32_t adopted_memory_space = 0x10000;  // beyond those of all backends

/// A host may have filled the fields by hand: every one goes through the check of its row.
Config checked(Config config) {
  for (const Setting& setting : Config::table()) config.set(setting.name, config.get(setting.name));
  return config;
}

std::string known_devices(const std::vector<std::unique_ptr<Backend>>& backends) {
  std::string known;
  for (const std::unique_ptr<Backend>& backend : backends)
    if (is_for_users(backend->name())) known += text(known.empty() ? "'" : ", '", backend->name(), "'");
  std::string numbered;
  for (const std::unique_ptr<Backend>& backend : backends)
    if (backend->numbered() && numbered.empty()) numbered = backend->name();
  return text("The devices are ", known, "; the numbered ones also take a number, as in '", numbered, ":1'.");
}

struct Spec {
  std::string type;
  std::string_view number;  // what follows the colon
  bool has_number = false;
};

Spec parse(std::string_view spec) {
  const std::size_t colon = spec.find(':');
  if (colon == std::string_view::npos) return {std::string(spec), {}, false};
  return {std::string(spec.substr(0, colon)), spec.substr(colon + 1), true};
}

/// The index in "cuda:1". Checked against what is there, unless nothing is: then opening the device says what is missing.
int checked_index(const Spec& spec, Backend& backend, RuntimeImpl& runtime) {
  if (!spec.has_number) return std::max(backend.current_index(runtime), 0);
  if (!backend.numbered())
    throw Error(ErrorCode::invalid_argument, text("'", spec.type, ':', spec.number, "' is no device: there is one '", spec.type,
                                                  "' device and it has no number. Use '", spec.type, "'."));
  int index = -1;
  const char* const end = spec.number.data() + spec.number.size();
  const auto [stop, error] = std::from_chars(spec.number.data(), end, index);
  if (error != std::errc{} || stop != end || index < 0)
    throw Error(ErrorCode::invalid_argument,
                text("'", spec.type, ':', spec.number, "' is no device: its number must be 0 or more, as in '", spec.type, ":0'."));
  const int count = backend.device_count(runtime);
  if (count > 0 && index >= count)
    throw Error(ErrorCode::invalid_argument,
                text("There is no '", spec.type, ':', index, "': this machine has ", count, ' ', title_of(spec.type),
                     count == 1 ? " device, '" : " devices, the last is '", spec.type, ':', count - 1, "'."));
  return index;
}

void check_options(const Spec& spec, const DeviceOptions& options) {
  if ((options.native_context == 0) != (options.native_device == 0))
    throw Error(ErrorCode::invalid_argument,
                "context= and device= go together: the handles of an application's context and of a device in it, neither of them 0.");
  if (options.native_context != 0 && spec.has_number)
    throw Error(ErrorCode::invalid_argument,
                text("'", spec.type, ':', spec.number, "' has a number, and device= says which one it is as well: leave the number out."));
  if (!options.num_threads) return;
  if (!takes_num_threads(spec.type))
    throw Error(ErrorCode::invalid_argument, text("The '", spec.type, "' device takes no num_threads; only 'cpu' does."));
  if (*options.num_threads < 1 || *options.num_threads > max_num_threads)
    throw Error(ErrorCode::invalid_argument,
                text("num_threads is ", *options.num_threads, "; it must be from 1 to ", max_num_threads, "."));
}

std::string full_name(const Backend& backend, int index, const DeviceOptions& options) {
  std::string name = backend.name();
  if (backend.numbered()) name += text(':', index);
  if (options.num_threads) name += text("(num_threads=", *options.num_threads, ')');
  if (options.native_context != 0) name += text("(context=", options.native_context, ", device=", options.native_device, ')');
  return name;
}

}  // namespace

RuntimeImpl::RuntimeImpl(Runtime& runtime, Config settings)
    : owner(runtime),
      config(checked(std::move(settings))),
      log(log_level(config)),
      cache(cache_folder(config), config.cache_size, log),
      backends_(make_backends()) {}

RuntimeImpl::~RuntimeImpl() = default;

void RuntimeImpl::add_backend(std::unique_ptr<Backend> backend) {
  const std::lock_guard lock(mutex_);
  backends_.push_back(std::move(backend));
}

Backend& RuntimeImpl::backend(std::string_view type) {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Backend>& candidate : backends_)
    if (candidate->name() == type) return *candidate;
  throw Error(ErrorCode::invalid_argument, text("Unknown device '", type, "'. ", known_devices(backends_)));
}

Device& RuntimeImpl::device(std::string_view text_spec, const DeviceOptions& options) {
  const Spec spec = parse(text_spec);
  Backend& kind = backend(spec.type);
  check_options(spec, options);
  const int index = options.native_context != 0 ? kind.adopted_index(*this, options) : checked_index(spec, kind, *this);
  const std::string name = full_name(kind, index, options);

  const auto find = [&]() -> Device* {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(name);
    return found == devices_.end() ? nullptr : found->second.get();
  };
  if (Device* known = find()) return *known;
  const std::lock_guard starting(start_mutex_);
  if (Device* known = find()) return *known;  // another thread has started it meanwhile

  std::unique_ptr<DeviceImpl> impl = kind.open(*this, index, options);
  if (impl->capabilities().queued) updates.never_alone();  // it works while the CPU does, maybe on the same memory
  auto data = std::make_unique<Device::Data>(owner, kind, *impl, name);
  data->type = spec.type;
  data->index = index;
  data->options = options;
  // Memory of an application's context is of no use outside of it.
  data->memory_id = options.native_context != 0 ? adopted_memory_space + adopted_++ : kind.memory_space(index);
  // The constructor is private to Device and RuntimeImpl, which make_unique is not.
  std::unique_ptr<Device> device(new Device(std::move(data), std::move(impl)));
  if (log.enabled(LogLevel::info))
    log.write(LogLevel::info, text("Started '", name, "': ", device->capabilities().device_name, ", ", device->capabilities().arch, "."));
  const std::lock_guard lock(mutex_);
  return *devices_.emplace(name, std::move(device)).first->second;
}

std::vector<Device*> RuntimeImpl::started() const {
  const std::lock_guard lock(mutex_);
  std::vector<Device*> devices;
  devices.reserve(devices_.size());
  for (const auto& [name, device] : devices_) devices.push_back(device.get());
  return devices;
}

std::vector<std::byte> RuntimeImpl::compile_cpu(const CompileRequest& request) {
  CpuCompiler compiler;
  {
    const std::lock_guard lock(mutex_);
    compiler = cpu_compiler_;
  }
  if (!compiler)
    throw Error(
        ErrorCode::unavailable,
        text("Kernel '", request.name,
             "' cannot be compiled for the CPU: no compiler is installed. In Python, pip install llvmlite; a C++ host installs one with "
             "Runtime::set_cpu_compiler."));
  return compiler(request);
}

LinkedObject RuntimeImpl::link_object(const LinkRequest& request, std::string_view format) {
  ObjectLinker linker;
  {
    const std::lock_guard lock(mutex_);
    linker = object_linker_;
  }
  if (!linker)
    throw Error(ErrorCode::unavailable,
                text("Kernel '", request.name, "' cannot be loaded: its machine code is in the ", format,
                     " format, which the runtime does not link itself, and no linker is installed. In Python, pip install llvmlite; a C++ "
                     "host installs one with Runtime::set_object_linker, or compiles to ELF."));
  LinkedObject code = linker(request);
  if (code.functions.size() != request.functions.size())
    throw Error(ErrorCode::internal, text("Kernel '", request.name, "': the installed linker answered ", code.functions.size(),
                                          " addresses for ", request.functions.size(), " functions."));
  return code;
}

ParallelFor RuntimeImpl::parallel_for() const {
  const std::lock_guard lock(mutex_);
  return parallel_for_;
}

ParallelFor RuntimeImpl::parallel_for_fallback() const {
  const std::lock_guard lock(mutex_);
  return parallel_for_fallback_;
}

std::vector<std::string> RuntimeImpl::package_folders() const {
  PackageFolders folders;
  {
    const std::lock_guard lock(mutex_);
    folders = package_folders_;
  }
  return folders ? folders() : std::vector<std::string>();
}

void RuntimeImpl::print(std::string_view text) {
  PrintSink sink;
  {
    const std::lock_guard lock(mutex_);
    sink = print_sink_;
  }
  if (sink)
    sink(text);
  else
    std::fwrite(text.data(), 1, text.size(), stdout);
}

std::shared_ptr<Runtime> Runtime::create(Config config) {
  // The constructor is private, which make_shared cannot call.
  return std::shared_ptr<Runtime>(new Runtime(std::move(config)));
}

Runtime::Runtime(Config config) : impl_(std::make_unique<RuntimeImpl>(*this, std::move(config))) {}

Runtime::~Runtime() {
  impl_->devices_.clear();  // while the rest that they use is still there
}

std::shared_ptr<Device> Runtime::device(std::string_view spec, const DeviceOptions& options) {
  Device& device = impl_->device(spec, options);
  device.impl().make_current();
  return device.shared_from_this();
}

int Runtime::device_count(std::string_view type) { return impl_->backend(type).device_count(*impl_); }

Capabilities Runtime::describe(std::string_view type, std::string_view arch) { return impl_->backend(type).describe(*impl_, arch); }

std::vector<std::byte> Runtime::compile(const KernelSource& source) {
  Backend& backend = impl_->backend(source.target);
  validate(source, ErrorCode::invalid_argument);
  return backend.compile(*impl_, source);
}

std::vector<std::string> Runtime::backend_names() const {
  const std::lock_guard lock(impl_->mutex_);
  std::vector<std::string> names;
  for (const std::unique_ptr<Backend>& backend : impl_->backends_)
    if (is_for_users(backend->name())) names.push_back(backend->name());
  return names;
}

std::vector<DeviceFailure> Runtime::finish() {
  std::vector<DeviceFailure> failures;
  for (Device* device : impl_->started()) {
    try {
      device->synchronize();
    } catch (...) {
      failures.push_back({device->shared_from_this(), std::current_exception()});
    }
  }
  return failures;
}

void Runtime::synchronize() {
  const std::vector<DeviceFailure> failures = finish();
  if (failures.empty()) return;
  for (const DeviceFailure& failure : std::span(failures).subspan(1)) {
    try {
      std::rethrow_exception(failure.error);
    } catch (const std::exception& error) {
      impl_->log.write(LogLevel::error, text("'", failure.device->name(), "' failed as well: ", error.what()));
    }
  }
  std::rethrow_exception(failures.front().error);
}

void Runtime::set_cpu_compiler(CpuCompiler compiler) {
  const std::lock_guard lock(impl_->mutex_);
  std::swap(impl_->cpu_compiler_, compiler);
}

void Runtime::set_object_linker(ObjectLinker linker) {
  const std::lock_guard lock(impl_->mutex_);
  std::swap(impl_->object_linker_, linker);
}

void Runtime::set_parallel_for(ParallelFor f) {
  const std::lock_guard lock(impl_->mutex_);
  std::swap(impl_->parallel_for_, f);
}

void Runtime::set_parallel_for_fallback(ParallelFor f) {
  const std::lock_guard lock(impl_->mutex_);
  std::swap(impl_->parallel_for_fallback_, f);
}

void Runtime::set_package_folders(PackageFolders folders) {
  const std::lock_guard lock(impl_->mutex_);
  std::swap(impl_->package_folders_, folders);
}

void Runtime::set_log_sink(LogSink sink) { impl_->log.set_sink(std::move(sink)); }

void Runtime::set_print_sink(PrintSink sink) {
  const std::lock_guard lock(impl_->mutex_);
  std::swap(impl_->print_sink_, sink);
}

const Config& Runtime::config() const noexcept { return impl_->config; }

}  // namespace tack

// metal/api.cpp -- the stand-in for Metal: devices, memory, libraries, archives and pipelines.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "../engine/signals.h"
#include "msl.h"
#include "objects.h"

namespace sim {
const char* const library_name = "libtackmetal";
}

namespace sim::metal {
namespace {

constexpr const char* archive_domain = "MTLBinaryArchiveDomain";
constexpr const char* none = "";  // Metal answers no object there, and no error
constexpr unsigned usual_family = 8, most_threads = 1024;
constexpr const char* archive_form = "simulated metal archive\n";

std::string checksum(const std::string& bytes) {
  std::uint64_t sum = 14695981039346656037ull;
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return std::to_string(sum);
}

// A line that says what it is, one with a sum over the rest, one for each function, an empty one, the object.
std::string encode(const LibraryObject& library) {
  std::string body;
  for (const auto& [name, threads] : library.functions) body += name + " " + std::to_string(threads) + "\n";
  body += "\n" + library.object;
  return archive_form + checksum(body) + "\n" + body;
}

bool decode(const std::string& path, LibraryObject& library) {
  std::ifstream in(path, std::ios::binary);
  std::string line, sum;
  if (!std::getline(in, line) || line + "\n" != archive_form || !std::getline(in, sum)) return false;
  std::ostringstream rest;
  rest << in.rdbuf();
  const std::string body = rest.str();
  if (checksum(body) != sum) return false;
  std::istringstream lines(body);
  while (std::getline(lines, line) && !line.empty()) {
    const std::size_t space = line.rfind(' ');
    library.functions.emplace_back(line.substr(0, space), static_cast<unsigned>(std::stoul(line.substr(space + 1))));
  }
  library.object = body.substr(static_cast<std::size_t>(lines.tellg()));
  return true;
}

const std::pair<std::string, unsigned>* function_of(const LibraryObject& library, const std::string& name) {
  const auto found = std::find_if(library.functions.begin(), library.functions.end(), [&](const auto& f) { return f.first == name; });
  return found == library.functions.end() ? nullptr : &*found;
}

Status no_function(Problem* problem, const std::string& name) {
  return fail(problem, abi::library_domain, static_cast<std::int64_t>(abi::LibraryError::function_not_found), "no function '" + name + "'");
}

}  // namespace

State& State::instance() {
  static State* const state = new State;  // never destroyed: calls may come while the process ends
  return *state;
}

BufferObject::~BufferObject() { Memory::instance().free(start, MemoryKind::shared); }

TextureObject::TextureObject(std::size_t width, std::size_t height, std::size_t depth) : texels(std::make_shared<TexelArray>()) {
  texels->width = width;
  texels->height = height;
  texels->depth = depth;
  texels->texels.assign(width * height * depth, -1.0e30f);
  for (std::size_t way = 0; way < ways; ++way) {
    auto made = std::make_shared<Texture>();
    made->array = texels;
    made->linear = way != 0;
    made->normalized = way == 2;
    if (way == 2) made->address.fill(AddressMode::wrap);
    objects[way] = add_texture(made);
  }
}

TextureObject::~TextureObject() {
  for (const std::uint64_t object : objects) remove_texture(object);
}

Status fail(Problem* problem, const char* domain, std::int64_t code, const std::string& text) {
  problem->code = code;
  std::snprintf(problem->domain, sizeof problem->domain, "%s", domain);
  std::snprintf(problem->text, sizeof problem->text, "%s", text.c_str());
  return Status::failed;
}

Status wrong(Problem* problem, const std::string& what) {
  Control::instance().report(what);
  return fail(problem, none, 0, what);
}

}  // namespace sim::metal

using namespace sim;
using namespace sim::metal;

namespace tack::metal::abi {

#pragma GCC visibility push(default)
extern "C" {

Status tack_metal_device(Object* device, DeviceFacts* facts, Problem* problem) {
  return call<"tack_metal_device">(problem, none, [&] {
    if (settings().devices == 0) return fail(problem, none, 0, "");
    install_signal_handlers();
    std::snprintf(facts->name, sizeof facts->name, "Simulated Apple GPU (no hardware)");
    facts->family = static_cast<std::uint32_t>(settings().architecture(0, usual_family));
    facts->max_threads = most_threads;
    facts->group_bytes = 32768;
    facts->filters = 1;
    return give(State::instance().devices, std::make_shared<DeviceObject>(), device);
  });
}

void tack_metal_release(Object object) {
  static CallSite site("tack_metal_release");
  ++site.count;
  State& all = State::instance();
  const std::uint64_t handle = address_of(object);
  const bool known = all.commands.remove(handle) != nullptr || all.buffers.remove(handle) != nullptr ||
                     all.pipelines.remove(handle) != nullptr || all.textures.remove(handle) != nullptr ||
                     all.libraries.remove(handle) != nullptr || all.archives.remove(handle) != nullptr ||
                     all.queues.remove(handle) != nullptr || all.devices.remove(handle) != nullptr;
  if (!known) Control::instance().report("an object is released that does not exist, or not any more");
}

Status tack_metal_buffer(Object device, std::size_t bytes, Object* buffer, void** contents, Problem* problem) {
  return call<"tack_metal_buffer">(problem, none, [&] {
    if (find(State::instance().devices, device) == nullptr || bytes == 0) return wrong(problem, "a buffer of no device or no size");
    const std::uintptr_t start = Memory::instance().allocate(0, bytes, MemoryKind::shared);
    if (start == 0) return fail(problem, none, 0, "");
    *contents = pointer_to(start);
    return give(State::instance().buffers, std::make_shared<BufferObject>(start, bytes), buffer);
  });
}

Status tack_metal_adopt(Object device, Object given, Object* buffer, void** contents, std::size_t* bytes, Problem* problem) {
  return call<"tack_metal_adopt">(problem, none, [&] {
    auto found = find(State::instance().buffers, given);
    if (find(State::instance().devices, device) == nullptr || found == nullptr) return wrong(problem, "an object that is no buffer");
    *contents = pointer_to(found->start);
    *bytes = found->size;
    return give(State::instance().buffers, std::move(found), buffer);
  });
}

Status tack_metal_texture(Object device, std::size_t width, std::size_t height, std::size_t depth, Object* texture, Problem* problem) {
  return call<"tack_metal_texture">(problem, none, [&] {
    const std::size_t largest = std::max({width, height, depth}), smallest = std::min({width, height, depth});
    if (find(State::instance().devices, device) == nullptr || smallest == 0 || largest > most_texels)
      return wrong(problem, "a texture of a size that there is not");
    if (width * height * depth * sizeof(float) > settings().memory - Memory::instance().used(0)) return fail(problem, none, 0, "");
    return give(State::instance().textures, std::make_shared<TextureObject>(width, height, depth), texture);
  });
}

Status tack_metal_compile(Object device, const char* text, int fast_math, Object* library, Problem* problem) {
  return call<"tack_metal_compile">(problem, library_domain, [&] {
    if (find(State::instance().devices, device) == nullptr) return wrong(problem, "a compile for no device");
    const auto refused = [&](const std::string& log) {
      return fail(problem, library_domain, static_cast<std::int64_t>(LibraryError::compile_failure), log);
    };
    const Translated translated = translate(text, fast_math != 0);
    if (!translated.problem.empty()) return refused(translated.problem);
    const Compiled compiled = sim::compile(translated.request);
    if (!compiled.ok) return refused(compiled.log);
    auto made = std::make_shared<LibraryObject>();
    made->object = compiled.object;
    for (const Kernel& kernel : translated.request.kernels) made->functions.emplace_back(kernel.name, kernel.max_threads);
    return give(State::instance().libraries, made, library);
  });
}

Status tack_metal_pipeline(Object device, Object library, const char* function, Object archive, std::uint32_t threads, Object* pipeline,
                           PipelineFacts* facts, Problem* problem) {
  return call<"tack_metal_pipeline">(problem, library_domain, [&] {
    const auto found = find(State::instance().libraries, library);
    if (find(State::instance().devices, device) == nullptr || found == nullptr) return wrong(problem, "a pipeline of no library");
    if (archive != nullptr && find(State::instance().archives, archive) == nullptr) return wrong(problem, "a pipeline with no archive");
    const auto* const code = function_of(*found, function);
    if (code == nullptr) return no_function(problem, function);
    if (code->second != 0 && threads > code->second) return wrong(problem, "groups of more threads than the kernel's attribute says");
    std::string why;
    auto made = std::make_shared<PipelineObject>();
    made->module = Module::load(found->object, why);
    made->kernel = made->module == nullptr ? nullptr : made->module->find(function);
    if (made->kernel == nullptr) return wrong(problem, "the code of '" + std::string(function) + "' cannot be loaded: " + why);
    made->threads = threads;
    facts->max_threads = most_threads;
    return give(State::instance().pipelines, made, pipeline);
  });
}

Status tack_metal_archive(Object device, const char* path, Object* archive, Problem* problem) {
  return call<"tack_metal_archive">(problem, archive_domain, [&] {
    if (find(State::instance().devices, device) == nullptr) return wrong(problem, "an archive of no device");
    auto made = std::make_shared<ArchiveObject>();
    if (path != nullptr && !decode(path, made->kept)) return fail(problem, archive_domain, 1, "the file is no archive");
    return give(State::instance().archives, made, archive);
  });
}

Status tack_metal_archive_add(Object archive, Object library, const char* function, std::uint32_t, Problem* problem) {
  return call<"tack_metal_archive_add">(problem, archive_domain, [&] {
    const auto to = find(State::instance().archives, archive);
    const auto from = find(State::instance().libraries, library);
    if (to == nullptr || from == nullptr) return wrong(problem, "no archive, or nothing to add to it");
    const auto* const code = function_of(*from, function);
    if (code == nullptr) return no_function(problem, function);
    const std::lock_guard lock(to->mutex);
    if (!to->kept.object.empty() && to->kept.object != from->object) return fail(problem, archive_domain, 4, "one library to an archive");
    to->kept.object = from->object;
    to->kept.functions.push_back(*code);
    return Status::done;
  });
}

Status tack_metal_archive_save(Object archive, const char* path, Problem* problem) {
  return call<"tack_metal_archive_save">(problem, archive_domain, [&] {
    const auto found = find(State::instance().archives, archive);
    if (found == nullptr) return wrong(problem, "no archive is saved");
    const std::lock_guard lock(found->mutex);
    const std::string bytes = encode(found->kept);
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    return out ? Status::done : fail(problem, archive_domain, 4, std::string(path) + " cannot be written");
  });
}

Status tack_metal_functions(Object device, const char* path, Object* library, Problem* problem) {
  return call<"tack_metal_functions">(problem, library_domain, [&] {
    if (find(State::instance().devices, device) == nullptr) return wrong(problem, "a library of no device");
    auto made = std::make_shared<LibraryObject>();
    if (!decode(path, *made)) return fail(problem, library_domain, 6, "the file is no library");
    return give(State::instance().libraries, made, library);
  });
}
}
#pragma GCC visibility pop

}  // namespace tack::metal::abi

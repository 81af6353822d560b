// metal/commands.cpp -- the stand-in for Metal: command buffers, which run when something waits for them or late, in the order of commits.
#include <algorithm>
#include <cstring>
#include <utility>

#include "objects.h"

namespace sim::metal {
namespace {

constexpr const char* none = "";
constexpr std::size_t sim_textures = 8;  // of a kernel; msl_builtins.h has the same number

// A buffer's bytes from an offset on, for a step of commands.
struct Part {
  std::shared_ptr<BufferObject> buffer;
  std::uintptr_t start = 0;
};

std::string part_of(const abi::Binding* binding, std::size_t bytes, Part& part) {
  part.buffer = find(State::instance().buffers, binding->buffer);
  if (part.buffer == nullptr) return "a buffer that does not exist";
  if (binding->offset > part.buffer->size || bytes > part.buffer->size - binding->offset) return "bytes past the end of a buffer";
  part.start = part.buffer->start + binding->offset;
  return {};
}

// The same for copies and fills, which take whole words.
std::string words_of(const abi::Binding* binding, std::size_t bytes, Part& part) {
  if (binding->offset % abi::word_bytes != 0 || bytes % abi::word_bytes != 0) return "bytes that are no whole words";
  return part_of(binding, bytes, part);
}

std::int64_t code_of(Fault::Kind kind) {
  using abi::CommandError;
  switch (kind) {
    case Fault::Kind::address:
    case Fault::Kind::misaligned:
      return static_cast<std::int64_t>(CommandError::page_fault);
    case Fault::Kind::timeout:
      return static_cast<std::int64_t>(CommandError::timeout);
    default:
      return static_cast<std::int64_t>(CommandError::invalid_resource);
  }
}

void end(CommandsObject& commands, std::int64_t code, const std::string& text) {
  commands.code = code;
  commands.text = text;
  commands.progress = code == 0 ? abi::Progress::done : abi::Progress::failed;
}

abi::Progress progress_of(const CommandsObject& commands, Problem* problem) {
  const abi::Progress progress = commands.progress;
  if (progress == abi::Progress::failed) fail(problem, abi::command_domain, commands.code, commands.text);
  return progress;
}

// The commands, if they may still be filled.
std::shared_ptr<CommandsObject> open_commands(Object handle) {
  const auto found = find(State::instance().commands, handle);
  return found == nullptr || found->committed ? nullptr : found;
}

struct Made {
  Launch launch;
  std::vector<std::shared_ptr<BufferObject>> buffers;  // alive until it has run
  std::vector<std::shared_ptr<TextureObject>> textures;
  std::uintptr_t constants = 0;  // memory of the host's, for as long as the launch waits
  ~Made() {
    if (constants != 0) Memory::instance().free(constants, MemoryKind::pinned);
  }
};

void run_launch(const Made& made, CommandsObject& commands) {
  if (commands.code != 0) return;
  const std::optional<Fault> fault = run(made.launch);
  if (!fault) return;
  Control::instance().report(fault->text);
  commands.code = code_of(fault->kind);
  commands.text = fault->text;
}

}  // namespace
}  // namespace sim::metal

using namespace sim;
using namespace sim::metal;

namespace tack::metal::abi {

#pragma GCC visibility push(default)
extern "C" {

Status tack_metal_queue(Object device, Object* queue, Problem* problem) {
  return call<"tack_metal_queue">(problem, none, [&] {
    if (find(State::instance().devices, device) == nullptr) return wrong(problem, "a queue of no device");
    return give(State::instance().queues, std::make_shared<QueueObject>(), queue);
  });
}

Status tack_metal_commands(Object queue, const char* label, Object* commands, Problem* problem) {
  return call<"tack_metal_commands">(problem, none, [&] {
    const auto on = find(State::instance().queues, queue);
    if (on == nullptr) return wrong(problem, "commands of no queue");
    auto made = std::make_shared<CommandsObject>();
    made->queue = on;
    made->label = label;
    return give(State::instance().commands, made, commands);
  });
}

Status tack_metal_dispatch(Object commands, const Dispatch* dispatch, Problem* problem) {
  return call<"tack_metal_dispatch">(problem, none, [&] {
    const auto found = open_commands(commands);
    const auto pipeline = find(State::instance().pipelines, dispatch->pipeline);
    if (found == nullptr || pipeline == nullptr) return wrong(problem, "a dispatch of no pipeline, or behind the commit");
    if (dispatch->count + (dispatch->constant_bytes == 0 ? 0 : 1) > most_buffers || dispatch->constant_bytes > most_constant_bytes)
      return wrong(problem, "a dispatch with more than 31 buffers, or more than 4096 bytes of constants");
    if (dispatch->threads == 0 || dispatch->threads > pipeline->threads || dispatch->groups == 0 || dispatch->groups > 0xffffffffu)
      return wrong(problem, "a dispatch of no groups, or of larger ones than its pipeline's");
    static std::atomic<long>& launches = Control::instance().tally("launches");
    ++launches;
    if (settings().order == Order::record) return Status::done;
    auto made = std::make_shared<Made>();
    std::array<std::uintptr_t, most_buffers> addresses{};
    for (std::size_t i = 0; i < dispatch->count; ++i) {
      Part part;
      const std::string problem_of_part = part_of(&dispatch->buffers[i], 0, part);
      if (!problem_of_part.empty()) return wrong(problem, problem_of_part);
      addresses[i] = part.start;
      made->buffers.push_back(std::move(part.buffer));
    }
    if (dispatch->constant_bytes != 0) {
      made->constants = Memory::instance().allocate_pinned(dispatch->constant_bytes);
      if (made->constants == 0) return fail(problem, none, 0, "");
      std::memcpy(pointer_to(made->constants), dispatch->constants, dispatch->constant_bytes);
      addresses[dispatch->count] = made->constants;
    }
    // Behind the buffers, the kernel's textures: three words of each.
    if (dispatch->texture_count > sim_textures) return wrong(problem, "a dispatch with more textures than the stand-in has");
    std::array<std::uint64_t, sim_textures * TextureObject::ways> objects{};
    for (std::size_t i = 0; i < dispatch->texture_count; ++i) {
      auto texture = find(State::instance().textures, dispatch->textures[i]);
      if (texture == nullptr) return wrong(problem, "a texture that does not exist");
      std::copy(texture->objects.begin(), texture->objects.end(), objects.begin() + static_cast<std::ptrdiff_t>(i * TextureObject::ways));
      made->textures.push_back(std::move(texture));
    }
    std::array<void*, most_buffers + objects.size()> parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i)
      parameters[i] = i < most_buffers ? static_cast<void*>(&addresses[i]) : &objects[i - most_buffers];
    made->launch.module = pipeline->module;
    made->launch.kernel = pipeline->kernel;
    made->launch.grid = {static_cast<unsigned>(dispatch->groups), 1, 1};
    made->launch.block = {dispatch->threads, 1, 1};
    made->launch.take(parameters.data());
    found->steps.emplace_back([made](CommandsObject& running) { run_launch(*made, running); });
    return Status::done;
  });
}

Status tack_metal_copy(Object commands, const Binding* from, const Binding* to, std::size_t bytes, Problem* problem) {
  return call<"tack_metal_copy">(problem, none, [&] {
    const auto found = open_commands(commands);
    Part source, target;
    std::string wrongly = words_of(from, bytes, source);
    if (wrongly.empty()) wrongly = words_of(to, bytes, target);
    if (found == nullptr || !wrongly.empty()) return wrong(problem, "a copy of " + wrongly);
    if (source.buffer == target.buffer && source.start < target.start + bytes && target.start < source.start + bytes)
      return wrong(problem, "a copy to where it comes from");
    found->steps.emplace_back([=](CommandsObject&) { std::memcpy(pointer_to(target.start), pointer_to(source.start), bytes); });
    return Status::done;
  });
}

Status tack_metal_fill(Object commands, const Binding* to, std::size_t bytes, std::uint8_t value, Problem* problem) {
  return call<"tack_metal_fill">(problem, none, [&] {
    const auto found = open_commands(commands);
    Part target;
    const std::string wrongly = words_of(to, bytes, target);
    if (found == nullptr || !wrongly.empty()) return wrong(problem, "a fill of " + wrongly);
    found->steps.emplace_back([=](CommandsObject&) { std::memset(pointer_to(target.start), value, bytes); });
    return Status::done;
  });
}

Status tack_metal_texels(Object commands, const Binding* from, Object texture, std::size_t width, std::size_t height, std::size_t depth,
                         Problem* problem) {
  return call<"tack_metal_texels">(problem, none, [&] {
    const auto found = open_commands(commands);
    const auto to = find(State::instance().textures, texture);
    const std::size_t bytes = width * height * depth * sizeof(float);
    Part source;
    const std::string wrongly = words_of(from, bytes, source);
    if (found == nullptr || !wrongly.empty() || to == nullptr || to->texels->texels.size() * sizeof(float) != bytes)
      return wrong(problem, "a copy of texels, " + wrongly);
    found->steps.emplace_back([=](CommandsObject&) { std::memcpy(to->texels->texels.data(), pointer_to(source.start), bytes); });
    return Status::done;
  });
}

// What a test makes fail here are the commands themselves, when they are waited for.
void tack_metal_commit(Object commands) {
  static CallSite site("tack_metal_commit");
  const int injected = Control::instance().enter(site);
  const auto found = open_commands(commands);
  const auto on = found == nullptr ? nullptr : found->queue.lock();
  if (on == nullptr) return Control::instance().report("commands are committed that do not exist, or twice, or whose queue is gone");
  found->committed = true;
  if (Control::instance().tracing()) Control::instance().trace("tack_metal_commit '" + found->label + "'");
  Queue& queue = on->work;
  found->task = queue.submit(*queue.legacy(), [found = found.get(), alive = found, injected] {
    if (injected != 0) return end(*found, injected, "the commands were made to fail");
    for (const auto& step : found->steps) step(*found);
    found->steps.clear();
    end(*found, found->code, found->text);
  });
}

Progress tack_metal_progress(Object commands, Problem* problem) {
  static CallSite site("tack_metal_progress");
  ++site.count;
  const auto found = find(State::instance().commands, commands);
  return found == nullptr ? Progress::done : progress_of(*found, problem);
}

Progress tack_metal_wait(Object commands, Problem* problem) {
  static CallSite site("tack_metal_wait");
  ++site.count;
  const auto found = find(State::instance().commands, commands);
  const auto on = found == nullptr ? nullptr : found->queue.lock();
  if (on == nullptr || found->task == nullptr) {
    Control::instance().report("a wait for commands that were never committed would not end");
    return Progress::done;
  }
  on->work.wait(found->task);
  return progress_of(*found, problem);
}
}
#pragma GCC visibility pop

}  // namespace tack::metal::abi

// metal/objects.h -- what the Metal stand-in's handles stand for, and the frame that every call runs in.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../engine/address.h"
#include "../engine/control.h"
#include "../engine/grid.h"
#include "../engine/memory.h"
#include "../engine/module.h"
#include "../engine/queue.h"
#include "../engine/table.h"
#include "../engine/texture.h"
#include "backends/metal/metal_api.h"

namespace sim::metal {

namespace abi = tack::metal::abi;
using abi::Object, abi::Problem, abi::Status;

struct DeviceObject {};

// Memory that host and kernels share; given back when nothing uses it.
struct BufferObject {
  BufferObject(std::uintptr_t address, std::size_t bytes) : start(address), size(bytes) {}
  ~BufferObject();
  BufferObject(const BufferObject&) = delete;
  BufferObject& operator=(const BufferObject&) = delete;
  const std::uintptr_t start;
  const std::size_t size;
};

// A volume of floats. What kernels get is one object of the engine's for each way of sampling, in the order of `ways`.
struct TextureObject {
  TextureObject(std::size_t width, std::size_t height, std::size_t depth);
  ~TextureObject();
  TextureObject(const TextureObject&) = delete;
  TextureObject& operator=(const TextureObject&) = delete;
  static constexpr std::size_t ways = 3;  // as the samplers of msl_builtins.h have them: nearest, linear, repeat
  std::shared_ptr<TexelArray> texels;
  std::array<std::uint64_t, ways> objects{};
};

// A compiled text.
struct LibraryObject {
  std::string object;                                       // the shared object
  std::vector<std::pair<std::string, unsigned>> functions;  // names, and the most threads of a group
};

struct ArchiveObject {
  std::mutex mutex;
  LibraryObject kept;
};

struct PipelineObject {
  std::shared_ptr<Module> module;
  const SimKernel* kernel = nullptr;
  unsigned threads = 0;
};

struct QueueObject {
  Queue work{0};
};

struct CommandsObject {
  std::weak_ptr<QueueObject> queue;
  std::string label;
  std::vector<std::function<void(CommandsObject&)>> steps;  // each holds what it uses
  bool committed = false;
  TaskPtr task;
  std::atomic<abi::Progress> progress{abi::Progress::pending};
  std::int64_t code = 0;  // of the failure, written before the progress
  std::string text;
};

struct State {
  static State& instance();
  Table<DeviceObject> devices{"devices", 0x5d01};
  Table<BufferObject> buffers{"buffers", 0x5d02};
  Table<LibraryObject> libraries{"libraries", 0x5d03};
  Table<ArchiveObject> archives{"archives", 0x5d04};
  Table<PipelineObject> pipelines{"pipelines", 0x5d05};
  Table<TextureObject> textures{"volumes", 0x5d08};
  Table<QueueObject> queues{"queues", 0x5d06};
  Table<CommandsObject> commands{"command buffers", 0x5d07};
};

// Fills the problem.
Status fail(Problem* problem, const char* domain, std::int64_t code, const std::string& text);

template <class T>
Status give(Table<T>& table, std::shared_ptr<T> object, Object* out) {
  *out = pointer_to(table.add(std::move(object)));
  return Status::done;
}
template <class T>
std::shared_ptr<T> find(const Table<T>& table, Object handle) {
  return table.find(address_of(handle));
}

// The frame of a call that answers a status. The body does it, unless the test wants it to fail: then with an error of the domain given.
template <Name name, class F>
Status call(Problem* problem, const char* domain, F body) {
  static CallSite site(name.text);
  const int injected = Control::instance().enter(site);
  const Status status = injected == 0 ? body() : fail(problem, domain, injected, std::string(name.text) + " was made to fail");
  if (Control::instance().tracing())
    Control::instance().trace(std::string(name.text) + (status == Status::done ? " -> done" : std::string(" -> ") + problem->text));
  return status;
}

// What a wrong handle is answered with; a program that passes one is wrong.
Status wrong(Problem* problem, const std::string& what);

}  // namespace sim::metal

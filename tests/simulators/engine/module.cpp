// engine/module.cpp -- loads a module from memory.
#include "module.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace sim {
namespace {

struct Image {
  const link_map* map;
  unsigned long low = ~0ul, high = 0;
};

int measure(dl_phdr_info* info, std::size_t, void* data) {
  Image& image = *static_cast<Image*>(data);
  if (info->dlpi_addr != image.map->l_addr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const unsigned long start = info->dlpi_addr + segment.p_vaddr;
    if (start < image.low) image.low = start;
    if (start + segment.p_memsz > image.high) image.high = start + segment.p_memsz;
  }
  return 1;
}

}  // namespace

std::shared_ptr<Module> Module::load(std::string_view object, std::string& why) {
  // A file of its own: the loader takes equal paths, and equal files, for the same library.
  std::string path = (std::filesystem::temp_directory_path() / "simulated-module-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) {
    why = path + ": " + std::strerror(errno);
    return nullptr;
  }
  close(file);
  std::ofstream(path, std::ios::binary).write(object.data(), static_cast<std::streamsize>(object.size()));
  std::shared_ptr<Module> module(new Module);
  module->library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module->library_ == nullptr) why = dlerror();
  std::filesystem::remove(path);
  if (module->library_ == nullptr) return nullptr;
  module->abi_ = static_cast<const SimModule*>(dlsym(module->library_, "sim_module"));
  if (module->abi_ == nullptr || module->abi_->version != SIM_ABI_VERSION) {
    why = "it was not made by this simulator";
    return nullptr;
  }
  Image image{};
  void* map = nullptr;
  if (dlinfo(module->library_, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0) {
    image.map = static_cast<const link_map*>(map);
    dl_iterate_phdr(measure, &image);
    module->image_ = image.low;
    module->image_size_ = image.high - image.low;
  }
  return module;
}

Module::~Module() {
  if (library_ != nullptr) dlclose(library_);
}

const SimKernel* Module::find(std::string_view kernel) const {
  for (const SimKernel* k = abi_->kernels; k != abi_->kernels_end; ++k) {
    if (kernel == k->name) return k;
  }
  return nullptr;
}

}  // namespace sim

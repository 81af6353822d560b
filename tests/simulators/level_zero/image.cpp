// level_zero/image.cpp -- the Level Zero stand-in: images of three dimensions and samplers, which are those of the OpenCL runtime.
#include "driver.h"

namespace sim::level_zero {

ImageObject::~ImageObject() { cl::Runtime::instance().release_memory(handle); }
SamplerObject::~SamplerObject() { cl::Runtime::instance().release_sampler(handle); }

namespace {

constexpr abi::ImageFormat one_float;

}  // namespace
}  // namespace sim::level_zero

using namespace sim;
using namespace sim::level_zero;

#pragma GCC visibility push(default)
extern "C" {

Result zeImageCreate(abi::Context handle, abi::Device device, const abi::ImageDesc* desc, abi::Image* image) {
  static CallSite site("zeImageCreate");
  const ContextPtr context = Driver::instance().contexts.find(bits(handle));
  return call(site, context, [&] {
    const int number = number_of(device);
    if (context == nullptr || number < 0) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::ImageDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    if (!model_of(number).images) return misuse(site.name, Result::unsupported_feature, "the device has no images");
    if (desc->flags != 0 || desc->type != abi::image_3d || desc->array_levels != 0 || desc->mip_levels != 0)
      return misuse(site.name, Result::unsupported_enumeration, "the stand-in has images of three dimensions that are read only");
    if (desc->format.layout != one_float.layout || desc->format.type != one_float.type || desc->format.x != one_float.x)
      return Result::unsupported_image_format;
    for (const std::uint64_t extent : {desc->width, std::uint64_t{desc->height}, std::uint64_t{desc->depth}})
      if (extent == 0 || extent > largest_image) return misuse(site.name, Result::unsupported_size, "no image has such an extent");
    if (desc->width * desc->height * desc->depth > settings().memory / sizeof(float)) return Result::out_of_memory;
    const cl::Runtime& runtime = cl::Runtime::instance();
    auto made = std::make_shared<ImageObject>();
    made->context = context;
    made->width = desc->width;
    made->height = desc->height;
    made->depth = desc->depth;
    cl::ImageDesc description;
    description.width = made->width;
    description.height = made->height;
    description.depth = made->depth;
    const cl::ImageFormat format;
    cl::Int failed = 0;
    made->handle = runtime.create_image(runtime.context, cl::read_only, &format, &description, nullptr, &failed);
    if (failed != 0) return misuse(site.name, Result::unknown, "OpenCL makes no image: " + std::to_string(failed));
    *image = handle_of<abi::Image>(Driver::instance().images.add(std::move(made)));
    return Result::success;
  });
}

Result zeImageDestroy(abi::Image handle) {
  static CallSite site("zeImageDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    const auto image = Driver::instance().images.remove(bits(handle));
    return image == nullptr ? Result::invalid_null_handle : idle(site.name, *image->context);
  });
}

Result zeSamplerCreate(abi::Context handle, abi::Device device, const abi::SamplerDesc* desc, abi::Sampler* sampler) {
  static CallSite site("zeSamplerCreate");
  const ContextPtr context = Driver::instance().contexts.find(bits(handle));
  return call(site, context, [&] {
    if (context == nullptr || number_of(device) < 0) return Result::invalid_null_handle;
    if (desc->stype != abi::StructureType::SamplerDesc) return misuse(site.name, Result::invalid_argument, "wrong stype");
    const bool repeats = desc->address == abi::address_repeat;
    if ((!repeats && desc->address != abi::address_clamp) || desc->filter > abi::filter_linear) return Result::invalid_enumeration;
    if (repeats && desc->normalized == 0)
      return misuse(site.name, Result::invalid_argument, "what repeats is addressed by normalized coordinates");
    const cl::Runtime& runtime = cl::Runtime::instance();
    auto made = std::make_shared<SamplerObject>();
    made->context = context;
    cl::Int failed = 0;
    made->handle = runtime.create_sampler(runtime.context, desc->normalized, repeats ? cl::repeat : cl::clamp_to_edge,
                                          desc->filter == abi::filter_linear ? cl::linear : cl::nearest, &failed);
    if (failed != 0) return misuse(site.name, Result::unknown, "OpenCL makes no sampler: " + std::to_string(failed));
    *sampler = handle_of<abi::Sampler>(Driver::instance().samplers.add(std::move(made)));
    return Result::success;
  });
}

Result zeSamplerDestroy(abi::Sampler handle) {
  static CallSite site("zeSamplerDestroy");
  return call<Failing::afterwards>(site, nullptr, [&] {
    const auto sampler = Driver::instance().samplers.remove(bits(handle));
    return sampler == nullptr ? Result::invalid_null_handle : idle(site.name, *sampler->context);
  });
}

Result zeCommandListAppendImageCopyFromMemory(abi::CommandList list_handle, abi::Image handle, const void* from,
                                              const abi::ImageRegion* region, abi::Event signal, std::uint32_t waits, abi::Event*) {
  static CallSite site("zeCommandListAppendImageCopyFromMemory");
  const auto list = Driver::instance().lists.find(bits(list_handle));
  return call(site, list == nullptr ? nullptr : list->context, [&] {
    const auto image = Driver::instance().images.find(bits(handle));
    if (list == nullptr || image == nullptr) return Result::invalid_null_handle;
    if (waits != 0) return misuse(site.name, Result::unsupported_feature, "the stand-in has no wait events");
    if (region->x != 0 || region->y != 0 || region->z != 0 || region->width != image->width || region->height != image->height ||
        region->depth != image->depth)
      return misuse(site.name, Result::invalid_argument, "the stand-in copies whole images");
    if (!in_context(site.name, *list->context, from, image->width * image->height * image->depth * sizeof(float)))
      return Result::invalid_argument;
    const Alone alone(list->busy, site.name, "command list");
    list->append(
        [image, from] {
          const Memory::Opened source(Memory::instance(), address_of(from));
          const cl::Runtime& runtime = cl::Runtime::instance();
          const std::size_t origin[3] = {}, extent[3] = {image->width, image->height, image->depth};
          const cl::Int failed = runtime.write_image(runtime.queue, image->handle, 1, origin, extent, 0, 0, from, 0, nullptr, nullptr);
          if (failed != 0) misuse(site.name, Result::unknown, "OpenCL writes no image: " + std::to_string(failed));
        },
        signal);
    return Result::success;
  });
}
}
#pragma GCC visibility pop

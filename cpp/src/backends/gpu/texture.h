// backends/gpu/texture.h -- a volume in the form that texture units read: an array of the driver's, and the object that samples it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <tuple>
#include <type_traits>

#include "backend.h"
#include "backends/gpu/driver.h"

namespace tack::gpu {

/// What the parameters of a driver's function point to.
template <class Function>
struct Pointees;
template <class Result, class... Parameters>
struct Pointees<NativeFunction<Result, Parameters...>> {
  template <std::size_t number>
  using at = std::remove_cv_t<std::remove_pointer_t<std::tuple_element_t<number, std::tuple<Parameters...>>>>;
};

/// Lives no longer than its device. The driver's types for it are those that its functions take; `Api::Images` has what these do not say.
template <class Api>
class Texture final : public TextureImpl {
 public:
  /// `shape`: depth, height, width.
  Texture(const Api::Context& context, std::array<std::size_t, 3> shape, Sampling sampling) : context_(context), shape_(shape) {
    const typename Api::Scope scope(context_);
    ArrayDescription description{};
    description.width = shape_[2];
    description.height = shape_[1];
    description.depth = shape_[0];
    description.format = decltype(description.format)::f32;
    description.channels = 1;
    driver()("make a texture's array", driver().array_create, &array_, &description);
    try {
      make_object(sampling);
    } catch (...) {
      release_array();
      throw;
    }
  }
  ~Texture() override {
    try {
      const typename Api::Scope scope(context_);
      // Queued work may still use it. A failure of that work comes out again at the next wait.
      static_cast<void>(driver().stream_synchronize(stream));
      driver().release(context_.log(), "free a texture", driver().texture_destroy, object_);
      release_array();
    } catch (const std::exception& error) {
      Driver<Api>::log_failure(context_.log(), error);
    }
  }
  Texture(const Texture&) = delete;
  Texture& operator=(const Texture&) = delete;

  std::uint64_t handle() const noexcept override { return std::bit_cast<std::uint64_t>(object_); }

  void update(const void* texels) override {
    const typename Api::Scope scope(context_);
    const auto copy = Images::copy_of(texels, array_, shape_);
    driver()("copy to a texture", driver().copy_3d, &copy, stream);
  }

 private:
  using Images = Api::Images;
  using ArrayTypes = Pointees<decltype(Api::Functions::array_create)>;
  using Array = ArrayTypes::template at<0>;
  using ArrayDescription = ArrayTypes::template at<1>;
  using ObjectTypes = Pointees<decltype(Api::Functions::texture_create)>;
  using Object = ObjectTypes::template at<0>;
  using ResourceDescription = ObjectTypes::template at<1>;
  using TextureDescription = ObjectTypes::template at<2>;
  static constexpr Api::Stream stream = nullptr;  // see gpu/device.h

  const Driver<Api>& driver() const noexcept { return context_.driver(); }

  void make_object(Sampling sampling) {
    const bool repeat = sampling == Sampling::repeat;
    ResourceDescription resource{};
    resource.kind = decltype(resource.kind)::array;
    resource.content.array = array_;
    TextureDescription texture{};
    using AddressMode = std::remove_extent_t<decltype(texture.address)>;
    using FilterMode = decltype(texture.filter);
    for (AddressMode& mode : texture.address) mode = repeat ? AddressMode::wrap : AddressMode::clamp;
    texture.filter = sampling == Sampling::nearest ? FilterMode::point : FilterMode::linear;
    texture.flags = repeat ? Images::normalized_coordinates : 0;
    driver()("make a texture", driver().texture_create, &object_, &resource, &texture, nullptr);
  }
  void release_array() noexcept { driver().release(context_.log(), "free a texture's array", driver().array_destroy, array_); }

  const Api::Context& context_;
  const std::array<std::size_t, 3> shape_;
  Array array_{};
  Object object_{};
};

}  // namespace tack::gpu

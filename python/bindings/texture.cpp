// texture.cpp -- Texture: a volume that kernels sample, and what the package tells users of it.
#include "texture.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "buffers.h"
#include "state.h"

namespace tack::python {

namespace {

constexpr std::array<std::string_view, 2> interps{"linear", "nearest"};
constexpr std::array<std::string_view, 3> wraps{"clamp", "repeat", "mirror"};

/// The number of a word, which is an enum's.
template <class Enum, std::size_t N>
Enum number_of(const std::array<std::string_view, N>& words, const std::string& given, const char* what) {
  const auto found = std::find(words.begin(), words.end(), given);
  if (found != words.end()) return static_cast<Enum>(found - words.begin());
  std::string known;
  for (const std::string_view word : words) known += (known.empty() ? "'" : ", '") + std::string(word) + "'";
  throw Error(ErrorCode::invalid_argument, std::string("tack.texture3d() has no ") + what + " '" + given + "'; there are " + known);
}

void make(HeldTexture* self, Device& device, const Array& texels, const std::string& interp, const std::string& wrap) {
  const auto how = number_of<Interp>(interps, interp, "interp");
  const auto beyond = number_of<Wrap>(wraps, wrap, "wrap");
  std::construct_at(self);
  const MaybeRelease release(texels.bytes() > release_above_bytes || queued(texels) || device.capabilities().queued);
  try {
    self->texture.emplace(device.shared_from_this(), texels, how, beyond);
    finish_shared(texels);
  } catch (...) {
    std::destroy_at(self);  // nanobind takes it for never made
    throw;
  }
}

void update(HeldTexture& self, const Array& texels) {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it is empty only while it is made or freed
  Texture& texture = *self.texture;
  const MaybeRelease release(texels.bytes() > release_above_bytes || queued(texels) || queued(texture.texels()));
  texture.update(texels);
  finish_shared(texels);
}

}  // namespace

void bind_texture(nb::module_& m) {
  nb::class_<HeldTexture> cls(m, "Texture", nb::is_weak_referenceable(),
                              "A copy of a volume of f32 on a device, and how kernels read it between its texels.");
  cls.def("__init__", &make, nb::arg("device"), nb::arg("texels"), nb::arg("interp"), nb::arg("wrap"),
          "Copies ``texels``, indexed [z, y, x], in the order of the device's work.")
      .def("update", &update, nb::arg("texels"), "Copies other texels of the same shape, in the order of the device's work.")
      .def_prop_ro(
          "texels", [](const HeldTexture& t) { return t.texture->texels(); },
          "The copy, in the device's ordinary memory. Not to be written.")
      .def_prop_ro("interp", [](const HeldTexture& t) { return std::string(interps[static_cast<std::size_t>(t.texture->interp())]); })
      .def_prop_ro("wrap", [](const HeldTexture& t) { return std::string(wraps[static_cast<std::size_t>(t.texture->wrap())]); })
      .def_prop_ro(
          "hardware", [](const HeldTexture& t) { return t.texture->hardware(); }, "Whether the device's texture units sample it.")
      .def_prop_ro(
          "device", [](const HeldTexture& t) { return device_object(t.texture->texels().device()); }, nb::sig("def device(self) -> Device"))
      .def_prop_ro(
          "shape", [](const HeldTexture& t) { return int_tuple(t.texture->texels().shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"));
  state().texture_base = reinterpret_cast<PyTypeObject*>(nb::object(cls).release().ptr());
}

}  // namespace tack::python

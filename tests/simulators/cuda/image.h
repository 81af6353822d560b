// cuda/image.h -- the form in which the NVRTC stand-in gives compiled code to the driver stand-in.
#pragma once

#include <string>
#include <string_view>

namespace sim::cuda {

// What the driver must know of an image. A cubin runs on devices of its architecture's major number and at least its minor number
// (with a letter behind the number: on that architecture alone); PTX on all that are not older.
struct Image {
  bool ptx = false;
  int architecture = 0;   // 90
  bool specific = false;  // sm_90a
  int compiler = 0;       // version of NVRTC as 1000 * major + 10 * minor
  std::string object;     // the shared object
};

std::string encode(const Image& image);
enum class Reading { ok, damaged };
// Reads from memory whose length is not known: the image says it.
Reading decode(const void* data, Image& image);

}  // namespace sim::cuda

// cuda/image.cpp -- a line of text that says what it is, then the object: bytes in a cubin, hexadecimal digits in PTX, which is text.
#include "image.h"

#include <cstdint>
#include <cstdio>
#include <cstring>

namespace sim::cuda {
namespace {

constexpr const char* cubin_form = "simulated cubin sm_%d%c compiler %d size %zu sum %x\n";
constexpr const char* ptx_form = "// simulated PTX compute_%d%c compiler %d size %zu sum %x\n";

unsigned checksum(std::string_view bytes) {
  std::uint32_t sum = 2166136261u;
  for (const char c : bytes) sum = (sum ^ static_cast<unsigned char>(c)) * 16777619u;
  return sum;
}

int digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

}  // namespace

std::string encode(const Image& image) {
  char line[160];
  const char letter = image.specific ? 'a' : ' ';
  std::snprintf(line, sizeof line, image.ptx ? ptx_form : cubin_form, image.architecture, letter, image.compiler, image.object.size(),
                checksum(image.object));
  std::string out = line;
  if (!image.ptx) return out + image.object;
  static constexpr char digits[] = "0123456789abcdef";
  for (const char c : image.object) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4];
    out += digits[byte & 15u];
  }
  return out;
}

Reading decode(const void* data, Image& image) {
  const char* text = static_cast<const char*>(data);
  char letter = ' ';
  std::size_t size = 0;
  unsigned sum = 0;
  image.ptx = std::strncmp(text, "// simulated PTX ", 17) == 0;
  if (!image.ptx && std::strncmp(text, "simulated cubin ", 16) != 0) return Reading::damaged;
  if (std::sscanf(text, image.ptx ? ptx_form : cubin_form, &image.architecture, &letter, &image.compiler, &size, &sum) != 5)
    return Reading::damaged;
  image.specific = letter == 'a';
  const char* body = std::strchr(text, '\n');
  if (body == nullptr) return Reading::damaged;
  ++body;
  image.object.clear();
  if (image.ptx) {
    for (std::size_t i = 0; i < size; ++i) {
      const int high = digit(body[2 * i]), low = high < 0 ? -1 : digit(body[2 * i + 1]);
      if (low < 0) return Reading::damaged;
      image.object += static_cast<char>(high * 16 + low);
    }
  } else {
    image.object.assign(body, size);
  }
  return checksum(image.object) == sum ? Reading::ok : Reading::damaged;
}

}  // namespace sim::cuda

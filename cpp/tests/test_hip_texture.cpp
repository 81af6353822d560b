// test_hip_texture.cpp -- textures on the HIP stand-ins: what is sampled, that all is given back, and every call of the runtime failing.
#include "fault_support.h"
#include "hip_support.h"
#include "texture_support.h"

using namespace tack;
using namespace tack::test;

TEST_CASE("textures are sampled as they are made, and given back") { check_textures(hip_kind, StandInRuntime()); }

TEST_CASE("the n-th call of the runtime by a program with a texture fails") {
  long thrown = 0;
  constexpr int out_of_memory = 2;  // hipErrorOutOfMemory
  const long calls = fail_each_texture_call(hip_kind, StandInRuntime(), out_of_memory, false, [&](const Error& error) {
    ++thrown;
    CHECK((error.code() == ErrorCode::out_of_memory || error.code() == ErrorCode::unavailable));
  });
  CHECK(calls > 50);
  CHECK(thrown > 25);
}

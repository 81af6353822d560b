// test_cuda_texture.cpp -- textures on the CUDA stand-ins: what is sampled, that all is given back, and every driver call failing in turn.
#include "cuda_support.h"
#include "fault_support.h"
#include "texture_support.h"

using namespace tack;
using namespace tack::test;

TEST_CASE("textures are sampled as they are made, and given back") { check_textures(cuda_kind, StandInDriver()); }

TEST_CASE("the n-th driver call of a program with a texture fails") {
  constexpr int invalid_value = 1, out_of_memory = 2, launch_failed = 719;
  for (const int code : {invalid_value, out_of_memory, launch_failed}) {
    long thrown = 0;
    const long calls = fail_each_texture_call(cuda_kind, StandInDriver(), code, code == launch_failed, [&](const Error& error) {
      ++thrown;
      const ErrorCode expected = code == out_of_memory ? ErrorCode::out_of_memory : ErrorCode::driver;
      CHECK((error.code() == expected || error.code() == ErrorCode::unavailable));
    });
    CHECK(calls > 50);
    CHECK(thrown > 30);
  }
}

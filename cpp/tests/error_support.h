// error_support.h -- what tests of failures share.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "tack/error.hpp"

namespace tack::test {

/// What `body` throws, which must be an Error.
template <class Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return Error(ErrorCode::internal, "");
}

/// The message of the Error with this code that `body` throws; "" when it throws none.
template <class Body>
std::string message_of(ErrorCode code, Body body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace tack::test

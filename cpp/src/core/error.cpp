// core/error.cpp -- Error: the message with the native call's name and code behind it.
#include "tack/error.hpp"

#include <utility>

#include "core/text.h"

namespace tack {

namespace {

// The native call is part of what() so that whoever shows only the message loses nothing.
Error::Fields with_native_call(Error::Fields fields) {
  if (fields.native_code == 0 && fields.native_name.empty()) return fields;
  std::string call = fields.operation.empty() ? std::string("native call") : fields.operation;
  call += ": ";
  call += fields.native_name.empty() ? text("error ", fields.native_code) : text(fields.native_name, " (", fields.native_code, ")");
  if (fields.message.find(call) == std::string::npos) fields.message += "\n  " + call;
  return fields;
}

}  // namespace

Error::Error(ErrorCode code, std::string message) : Error(Fields{code, std::move(message), {}, {}, 0, {}}) {}

Error::Error(Fields fields) : fields_(std::make_shared<const Fields>(with_native_call(std::move(fields)))) {}

Error::~Error() = default;

const char* Error::what() const noexcept { return fields_->message.c_str(); }

ErrorCode Error::code() const noexcept { return fields_->code; }

const Error::Fields& Error::fields() const noexcept { return *fields_; }

Error Error::with_context(const std::string& context) const {
  Fields fields = *fields_;
  fields.message = context + ": " + fields.message;
  return Error(std::move(fields));
}

}  // namespace tack

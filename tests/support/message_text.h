#ifndef SLIPSTREAM_TESTS_SUPPORT_MESSAGE_TEXT_H_
#define SLIPSTREAM_TESTS_SUPPORT_MESSAGE_TEXT_H_

#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include <string>

namespace slipstream {

/// Returns a message with these bytes.
inline grpc::ByteBuffer Message(const std::string& text) {
  const grpc::Slice slice(text);
  return {&slice, 1};
}

/// Returns the bytes of a message.
inline std::string Text(const grpc::ByteBuffer& message) {
  grpc::Slice slice;
  EXPECT_TRUE(message.DumpToSingleSlice(&slice).ok());
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_MESSAGE_TEXT_H_

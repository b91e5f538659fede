#ifndef SLIPSTREAM_COMMON_WIRE_MESSAGE_NOTES_H_
#define SLIPSTREAM_COMMON_WIRE_MESSAGE_NOTES_H_

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"
#include "common/files/file_descriptor.h"
#include "common/local/local_notes.h"

namespace slipstream {

/// Functions that send a stream's messages as notes over a local socket, and take them out of
/// notes.

/// Sends a message; fails like SendNote. REQUIRES: at most LocalNote::kTextBytesMax bytes.
inline absl::Status SendMessage(const FileDescriptor& socket, const grpc::ByteBuffer& message) {
  grpc::Slice text;
  if (!message.DumpToSingleSlice(&text).ok()) return absl::InternalError("a message has no bytes");
  return SendMessageNote(socket, {reinterpret_cast<const char*>(text.begin()), text.size()});
}

/// Returns the message that a kMessage note brought.
inline grpc::ByteBuffer MessageOf(const ReceivedNote& note) {
  const grpc::Slice text(note.text);
  return {&text, 1};
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_MESSAGE_NOTES_H_

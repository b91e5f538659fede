#ifndef SLIPSTREAM_COMMON_WIRE_MESSAGE_NOTES_H_
#define SLIPSTREAM_COMMON_WIRE_MESSAGE_NOTES_H_

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"
#include "common/files/file_descriptor.h"
#include "common/local/local_notes.h"

namespace slipstream {

/// Messages of a stream as the notes that bring them over a local socket, and back.

/// Fails as SendNote does. REQUIRES: a message of at most LocalNote::kTextBytesMax bytes.
inline absl::Status SendMessage(const FileDescriptor& socket, const grpc::ByteBuffer& message) {
  grpc::Slice text;
  if (!message.DumpToSingleSlice(&text).ok()) return absl::InternalError("a message has no bytes");
  return SendMessageNote(socket, {reinterpret_cast<const char*>(text.begin()), text.size()});
}

/// What a kMessage brought.
inline grpc::ByteBuffer MessageOf(const ReceivedNote& note) {
  const grpc::Slice text(note.text);
  return {&text, 1};
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_WIRE_MESSAGE_NOTES_H_

#ifndef SLIPSTREAM_COMMON_LOCAL_LOCAL_NOTES_H_
#define SLIPSTREAM_COMMON_LOCAL_LOCAL_NOTES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// A note between a server and a worker that share memory. Notes have a local socket of their own
/// (common/local/local_socket.h, kMessages), and each is one message of it. Files and texts travel
/// with notes.
struct LocalNote {
  enum class Kind : uint32_t {
    // Sent by the worker, before anything else.
    kArena = 7,  // The file that holds the worker's gradients.

    // Sent by the server.
    kTaken = 2,     // `number` chunks in the arena have been read since the stream began.
    kBuffer = 3,    // A file that holds versions of weights from now on; `number` names it.
    kForget = 4,    // Buffer `number` is no longer used.
    kOnStream = 6,  // The messages of the next answer come over the stream itself.

    // Sent by either.
    kMessage = 5,  // The text is a message of the stream; `number` is its size in bytes.
  };

  /// Upper bound of a text, in bytes. The largest message without values is smaller.
  static constexpr size_t kTextBytesMax = 1024;

  Kind kind = Kind::kTaken;
  uint64_t number = 0;
};

/// A note and, if any came with it, a file and a text.
struct ReceivedNote {
  LocalNote note;
  FileDescriptor file;
  std::string text;
};

/// Sends a note without waiting. `file` may be null; the receiver gets a descriptor of its own.
/// UNAVAILABLE if the other end is gone, RESOURCE_EXHAUSTED if it does not read its notes.
absl::Status SendNote(const FileDescriptor& socket, const LocalNote& note,
                      const FileDescriptor* file = nullptr);

/// Sends `text` as a kMessage, like SendNote. REQUIRES: at most kTextBytesMax bytes.
absl::Status SendMessageNote(const FileDescriptor& socket, std::string_view text);

/// Returns the next note; nothing if none comes within `timeout`. UNAVAILABLE if the other end is
/// gone, INTERNAL if the bytes that came are no note.
absl::StatusOr<std::optional<ReceivedNote>> ReceiveNote(const FileDescriptor& socket,
                                                        absl::Duration timeout);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_LOCAL_NOTES_H_

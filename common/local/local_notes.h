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

/// What a server and a worker that share memory tell each other, each note a message of a local
/// socket of its own (common/local/local_socket.h, kMessages). Files and texts travel with notes.
struct LocalNote {
  enum class Kind : uint32_t {
    // From the worker, before anything else.
    kArena = 7,  // The file that gradients lie in.

    // From the server.
    kTaken = 2,     // `number` chunks in the arena have been read since the stream began.
    kBuffer = 3,    // A file that holds versions of weights from now on; `number` names it.
    kForget = 4,    // Buffer `number` is no longer used.
    kOnStream = 6,  // The messages of the next answer come over the stream itself.

    // From either.
    kMessage = 5,  // The text is a message of the stream; `number` is its size in bytes.
  };

  /// More than the largest message without values takes.
  static constexpr size_t kTextBytesMax = 1024;

  Kind kind = Kind::kTaken;
  uint64_t number = 0;
};

/// A note with the file and the text that came with it, if any.
struct ReceivedNote {
  LocalNote note;
  FileDescriptor file;
  std::string text;
};

/// Does not wait. `file` may be null; the receiver gets a descriptor of its own. UNAVAILABLE if the
/// other end is gone, RESOURCE_EXHAUSTED if it does not read what it is sent.
absl::Status SendNote(const FileDescriptor& socket, const LocalNote& note,
                      const FileDescriptor* file = nullptr);

/// The same for a kMessage. REQUIRES: at most kTextBytesMax bytes.
absl::Status SendMessageNote(const FileDescriptor& socket, std::string_view text);

/// The next note; nothing if none comes within `timeout`. UNAVAILABLE if the other end is gone,
/// INTERNAL if what came is no note.
absl::StatusOr<std::optional<ReceivedNote>> ReceiveNote(const FileDescriptor& socket,
                                                        absl::Duration timeout);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_LOCAL_NOTES_H_

#ifndef SLIPSTREAM_COMMON_LOCAL_LOCAL_NOTES_H_
#define SLIPSTREAM_COMMON_LOCAL_LOCAL_NOTES_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/files/file_descriptor.h"

namespace slipstream {

/// What a server tells a worker of shared memory, each note a message of a local socket of its own
/// (common/local/local_socket.h, kMessages). Files travel with notes.
struct LocalNote {
  enum class Kind : uint32_t {
    kWindow = 1,  // The file that payloads of pushes go through; `number` is its size in bytes.
    kTaken = 2,   // `number` pieces of the window have been read since the stream began.
    kBuffer = 3,  // A file that holds versions of weights from now on; `number` names it.
    kForget = 4,  // Buffer `number` is no longer used.
  };
  Kind kind = Kind::kTaken;
  uint64_t number = 0;
};

/// A note with the file that came with it, if any.
struct ReceivedNote {
  LocalNote note;
  FileDescriptor file;
};

/// Does not wait. `file` may be null; the receiver gets a descriptor of its own. UNAVAILABLE if the
/// other end is gone, RESOURCE_EXHAUSTED if it does not read what it is sent.
absl::Status SendNote(const FileDescriptor& socket, const LocalNote& note,
                      const FileDescriptor* file = nullptr);

/// The next note; nothing if none comes within `timeout`. UNAVAILABLE if the other end is gone,
/// INTERNAL if what came is no note.
absl::StatusOr<std::optional<ReceivedNote>> ReceiveNote(const FileDescriptor& socket,
                                                        absl::Duration timeout);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOCAL_LOCAL_NOTES_H_

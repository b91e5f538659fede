#include "server/data_plane/shared_memory_channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/limits.h"
#include "common/local/local_socket.h"
#include "common/settings/shards.h"
#include "common/wire/message_notes.h"

namespace slipstream {
namespace {

// How many buffers of so many values a worker may have: those that the pool keeps, for however many
// workers, and those being made, published and copied. Each stays mapped in the worker, so they are
// bounded.
size_t ShownMax(size_t values) {
  return 4 + BufferPool::kIdleMax + VersionsReused(values, kWorkersMax);
}

SharedMemoryReply Refused(std::string why) { return {.socket = {}, .refusal = std::move(why)}; }

}  // namespace

SharedMemoryChannel::~SharedMemoryChannel() { Detach(); }

SharedMemoryReply SharedMemoryChannel::Open() {
  if (!name_.empty()) return Refused("shared memory was opened before");
  std::string name = NewLocalName();
  absl::StatusOr<FileDescriptor> listening = ListenLocally(name, LocalSocketKind::kMessages);
  if (!listening.ok()) return Refused(std::string(listening.status().message()));
  listening_ = *std::move(listening);
  name_ = std::move(name);
  return {.socket = name_, .refusal = {}};
}

SharedMemoryReply SharedMemoryChannel::Attach() {
  if (!listening_.is_open()) return Refused("shared memory was not opened, or attached to before");
  const FileDescriptor listening = std::move(listening_);
  // The worker connected before it asked for this, so there is nothing to wait for.
  absl::StatusOr<FileDescriptor> socket = AcceptLocally(listening);
  if (!socket.ok()) return Refused("nobody has connected to the socket");
  if (const absl::Status user = CheckSameUser(*socket); !user.ok()) {
    return Refused(std::string(user.message()));
  }
  if (const absl::Status taken = TakeArena(*socket); !taken.ok()) {
    return Refused(std::string(taken.message()));
  }
  socket_ = *std::move(socket);
  return {};
}

void SharedMemoryChannel::Detach() {
  socket_ = FileDescriptor();
  arena_.reset();
  memory_use_.GiveBack(std::exchange(kept_bytes_, 0));
}

absl::Status SharedMemoryChannel::TakeArena(const FileDescriptor& socket) {
  const auto note = ReceiveNote(socket, absl::ZeroDuration());
  if (!note.ok()) return note.status();
  if (!note->has_value() || (*note)->note.kind != LocalNote::Kind::kArena) {
    return absl::InvalidArgumentError("no arena has come over the local socket");
  }
  absl::StatusOr<ForeignArena> arena = ForeignArena::Open((*note)->file);
  if (!arena.ok()) return arena.status();
  arena_ = *std::move(arena);
  if (memory_use_.Keep(arena_->size())) {
    kept_bytes_ = arena_->size();
  } else {
    arena_->DropCopied();
  }
  return absl::OkStatus();
}

absl::StatusOr<UnreadValues> SharedMemoryChannel::Find(const SharedValues& values) {
  constexpr uint64_t kCountMax = kChunkBytesMax / sizeof(float);
  const uint64_t values_max = arena_->size() / sizeof(float);
  if (values.count == 0 || values.count > std::min(values_max, kCountMax) ||
      values.begin % sizeof(float) != 0 ||
      values.begin / sizeof(float) > values_max - values.count) {
    return absl::InvalidArgumentError(fmt::format(
        "shared: {} values from byte {} on are not in the arena of {} bytes, or too many",
        values.count, values.begin, arena_->size()));
  }
  ++found_;
  return UnreadValues{&*arena_, values.begin, values.count};
}

absl::Status SharedMemoryChannel::TellTaken() {
  return SendNote(socket_, {LocalNote::Kind::kTaken, found_});
}

std::optional<SharedWeights> SharedMemoryChannel::Show(const Weights& weights) {
  const std::shared_ptr<const SharedBuffer> buffer = weights->shared();
  if (!is_attached() || buffer == nullptr) return std::nullopt;
  if (!IsKnown(*buffer)) {
    if (!DropOldest(ShownMax(weights->values().size())).ok()) return std::nullopt;
    const LocalNote note = {LocalNote::Kind::kBuffer, buffer->number};
    if (!SendNote(socket_, note, &buffer->memory.file).ok()) return std::nullopt;
    shown_.push_back({buffer->number, buffer});
  }
  return SharedWeights{buffer->number, buffer->filling};
}

absl::StatusOr<std::optional<grpc::ByteBuffer>> SharedMemoryChannel::Receive() {
  const auto received = ReceiveNote(socket_, absl::ZeroDuration());
  if (absl::IsInternal(received.status())) {
    return absl::InvalidArgumentError(received.status().message());
  }
  if (!received.ok()) return received.status();
  if (!received->has_value()) return std::nullopt;
  const ReceivedNote& note = **received;
  if (note.note.kind != LocalNote::Kind::kMessage) {
    return absl::InvalidArgumentError("shared memory: a worker sends messages alone");
  }
  return MessageOf(note);
}

absl::Status SharedMemoryChannel::Send(const grpc::ByteBuffer& answer) {
  return SendMessage(socket_, answer);
}

absl::Status SharedMemoryChannel::SendOnStream() {
  return SendNote(socket_, {LocalNote::Kind::kOnStream, 0});
}

bool SharedMemoryChannel::IsKnown(const SharedBuffer& buffer) {
  const auto known = std::find_if(shown_.begin(), shown_.end(), [&](const Shown& shown) {
    return shown.number == buffer.number;
  });
  if (known == shown_.end()) return false;
  std::rotate(known, known + 1, shown_.end());
  return true;
}

absl::Status SharedMemoryChannel::DropOldest(size_t shown_max) {
  for (auto shown = shown_.begin(); shown != shown_.end();) {
    const bool is_oldest_of_all = shown == shown_.begin() && shown_.size() >= shown_max;
    if (!shown->buffer.expired() && !is_oldest_of_all) {
      ++shown;
      continue;
    }
    if (absl::Status s = SendNote(socket_, {LocalNote::Kind::kForget, shown->number}); !s.ok()) {
      return s;
    }
    shown = shown_.erase(shown);
  }
  return absl::OkStatus();
}

}  // namespace slipstream

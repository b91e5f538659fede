#include "server/service/shared_path.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/local/local_socket.h"
#include "common/wire/message_notes.h"

namespace slipstream {
namespace {

// As many versions as are in turn for one worker: those being made, published and copied. Each
// stays mapped in the worker, so they are bounded.
constexpr size_t kShownMax = 8;

SharedMemoryReply Refused(std::string why) { return {.socket = {}, .refusal = std::move(why)}; }

}  // namespace

SharedPath::~SharedPath() {
  for (const auto& [number, arena] : arenas_) room_.GiveBack(arena.kept_bytes);
}

SharedMemoryReply SharedPath::Open() {
  if (!name_.empty()) return Refused("shared memory was opened before");
  std::string name = NewLocalName();
  absl::StatusOr<FileDescriptor> listening = ListenLocally(name, LocalSocketKind::kMessages);
  if (!listening.ok()) return Refused(std::string(listening.status().message()));
  listening_ = *std::move(listening);
  name_ = std::move(name);
  return {.socket = name_, .refusal = {}};
}

SharedMemoryReply SharedPath::Attach() {
  if (!listening_.is_open()) return Refused("shared memory was not opened, or attached to before");
  const FileDescriptor listening = std::move(listening_);
  // It was connected to before this was asked for, so there is nothing to wait for.
  absl::StatusOr<FileDescriptor> socket = AcceptLocally(listening);
  if (!socket.ok()) return Refused("nobody has connected to the socket");
  if (const absl::Status user = CheckSameUser(*socket); !user.ok()) {
    return Refused(std::string(user.message()));
  }
  socket_ = *std::move(socket);
  return {};
}

absl::Status SharedPath::TakeArena(const ReceivedNote& note) {
  const uint64_t number = note.note.number;
  if (arenas_.contains(number) || arenas_.size() >= kArenasMax) {
    return absl::InvalidArgumentError("shared memory: an arena that was there, or too many");
  }
  absl::StatusOr<ForeignArena> values = ForeignArena::Open(note.file);
  if (absl::IsFailedPrecondition(values.status())) {
    return absl::InvalidArgumentError(values.status().message());
  }
  if (!values.ok()) return values.status();
  const uint64_t size = values->size();
  if (!room_.Keep(size)) {
    values->DropCopied();
    arenas_.emplace(number, Arena{*std::move(values), 0});
  } else {
    arenas_.emplace(number, Arena{*std::move(values), size});
  }
  return absl::OkStatus();
}

absl::StatusOr<UnreadValues> SharedPath::Find(const SharedValues& values) {
  const auto found = arenas_.find(values.arena);
  if (found == arenas_.end()) {
    return absl::InvalidArgumentError(fmt::format("shared: there is no arena {}", values.arena));
  }
  const ForeignArena& arena = found->second.values;
  const uint64_t room = arena.size() / sizeof(float);
  if (values.count == 0 || values.count > room || values.begin % sizeof(float) != 0 ||
      values.begin / sizeof(float) > room - values.count) {
    return absl::InvalidArgumentError(
        fmt::format("shared: {} values from byte {} on are not in the arena of {} bytes",
                    values.count, values.begin, arena.size()));
  }
  ++found_;
  return UnreadValues{&arena, values.begin, values.count};
}

absl::Status SharedPath::TellTaken() {
  return SendNote(socket_, {LocalNote::Kind::kTaken, found_});
}

std::optional<SharedWeights> SharedPath::Show(const Weights& weights) {
  const std::shared_ptr<const SharedBuffer> buffer = weights->shared();
  if (!is_attached() || buffer == nullptr) return std::nullopt;
  if (!IsKnown(*buffer)) {
    if (!MakeRoom().ok()) return std::nullopt;
    const LocalNote note = {LocalNote::Kind::kBuffer, buffer->number};
    if (!SendNote(socket_, note, &buffer->memory.file).ok()) return std::nullopt;
    shown_.push_back({buffer->number, buffer});
  }
  return SharedWeights{buffer->number, buffer->generation};
}

absl::StatusOr<std::optional<grpc::ByteBuffer>> SharedPath::Receive() {
  for (;;) {
    const auto received = ReceiveNote(socket_, absl::ZeroDuration());
    if (absl::IsInternal(received.status())) {
      return absl::InvalidArgumentError(received.status().message());
    }
    if (!received.ok()) return received.status();
    if (!received->has_value()) return std::nullopt;
    const ReceivedNote& note = **received;
    if (note.note.kind == LocalNote::Kind::kMessage) return MessageOf(note);
    if (note.note.kind != LocalNote::Kind::kArena) {
      return absl::InvalidArgumentError("shared memory: a worker sends messages and arenas alone");
    }
    // Only so many times, as there may not be more.
    if (const absl::Status taken = TakeArena(note); !taken.ok()) return taken;
  }
}

absl::Status SharedPath::Send(const grpc::ByteBuffer& answer) {
  return SendMessage(socket_, answer);
}

absl::Status SharedPath::SendOnStream() {
  return SendNote(socket_, {LocalNote::Kind::kOnStream, 0});
}

bool SharedPath::IsKnown(const SharedBuffer& buffer) {
  const auto known = std::find_if(shown_.begin(), shown_.end(), [&](const Shown& shown) {
    return shown.number == buffer.number;
  });
  if (known == shown_.end()) return false;
  std::rotate(known, known + 1, shown_.end());
  return true;
}

absl::Status SharedPath::MakeRoom() {
  for (auto shown = shown_.begin(); shown != shown_.end();) {
    const bool is_oldest_of_all = shown == shown_.begin() && shown_.size() >= kShownMax;
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

#include "server/data_plane/push_receiver.h"

#include <string>
#include <utility>

#include "common/base/limits.h"
#include "common/protocol/composite_push.h"

namespace slipstream {
namespace {

// The most bytes of a message beside its values. A chunk keeps the whole message, and admission
// counts only the values; a header has no text, so this is many times what it takes. So it is for
// each part of a header. The trailer, of which a push has one, has a bit for each tensor besides.
constexpr size_t kFramingBytesMax = 1024;
constexpr size_t kPartBytesMax = 1024;

size_t FramingBytesMax(const PushChunk& chunk) {
  const size_t parts = chunk.header.has_value() ? chunk.header->parts.size() : 0;
  // Only one chunk of a push has its first value, and so may have the set.
  const size_t absent = chunk.offset == 0 ? chunk.trailer.absent.bits().size() : 0;
  return kFramingBytesMax + parts * kPartBytesMax + absent;
}

}  // namespace

absl::StatusOr<PushReceiver::Outcome> PushReceiver::OnMessage(const grpc::ByteBuffer& message) {
  absl::StatusOr<PushChunk> chunk = DecodePushChunk(message);
  if (!chunk.ok()) return chunk.status();
  if (chunk->header.has_value() && chunk->header->parts.size() > kFanoutMax) {
    return BrokenFraming("a push combines those of too many workers");
  }
  if (message.Length() > chunk->values.message_bytes() + FramingBytesMax(*chunk)) {
    return BrokenFraming("the message holds more than its values");
  }
  if (chunk->header.has_value()) {
    if (absl::Status may_send = MaySend(*chunk->header); !may_send.ok()) return may_send;
  }
  if (guard_ != nullptr) guard_->caller().Took(message.Length());
  if (chunk->request.has_value()) {
    if (shared_ == nullptr) return BrokenFraming("shared memory is for exchanges alone");
    return OnChunk(*std::move(chunk), std::nullopt);
  }
  if (chunk->shared.has_value()) return OnSharedChunk(*std::move(chunk));
  engine_.CountPushed(chunk->values.count(), chunk->values.message_bytes());
  return OnChunk(*std::move(chunk), std::nullopt);
}

absl::Status PushReceiver::MaySend(const PushHeader& header) {
  if (guard_ == nullptr) return absl::OkStatus();
  if (!IsComposite(header)) return guard_->caller().MayBe(header.identity.worker);
  for (const PushPart& part : header.parts) {
    absl::Status may_be = guard_->caller().MayBe(engine_.AggregatorOf(part.worker));
    if (!may_be.ok()) return may_be;
  }
  return absl::OkStatus();
}

PushReceiver::Outcome PushReceiver::OnSharedChunk(PushChunk chunk) {
  if (shared_ == nullptr || !shared_->is_attached()) {
    return BrokenFraming("no shared memory was agreed on");
  }
  const absl::StatusOr<UnreadValues> unread = shared_->Find(*chunk.shared);
  if (!unread.ok()) return BrokenFraming(std::string(unread.status().message()));
  engine_.CountPushed(unread->count, unread->count * sizeof(float));
  Outcome outcome = OnChunk(std::move(chunk), *unread);
  // Otherwise the answer tells the worker.
  if (!std::holds_alternative<PushFraming::NeedMore>(outcome)) return outcome;
  const absl::Status told = shared_->TellTaken();
  if (!told.ok()) return BrokenFraming(std::string(told.message()));
  return outcome;
}

PushReceiver::Outcome PushReceiver::OnChunk(PushChunk chunk,
                                            const std::optional<UnreadValues>& unread) {
  Outcome outcome = framing_.OnChunk(std::move(chunk), unread,
                                     [this](const PushHeader& header) { return Begin(header); });
  const auto* refused = std::get_if<PushFraming::Refused>(&outcome);
  if (refused != nullptr && refused->ends_stream) Abandon();
  return outcome;
}

BegunPush PushReceiver::Begin(const PushHeader& header) {
  BegunPush begun = engine_.BeginPush(header);
  if (!begun.is_of_member || guard_ == nullptr) return begun;
  if (IsComposite(header)) {
    guard_->caller().NoteMember(engine_.AggregatorOf(header.parts.front().worker));
  } else {
    guard_->IsOf({.worker = header.identity.worker, .slot = header.slot});
  }
  return begun;
}

std::string PushReceiver::Abandon() {
  std::optional<PushAssembly> push = framing_.Abandon();
  if (!push.has_value()) return "the push";
  engine_.AbandonPush(*push);
  // An excuse is complete from the start, unless values come with it.
  return push->is_complete() ? "nothing" : push->Missing();
}

PushReceiver::Outcome PushReceiver::BrokenFraming(std::string message) {
  Abandon();
  return PushFraming::Broken(std::move(message));
}

}  // namespace slipstream

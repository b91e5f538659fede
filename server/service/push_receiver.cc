#include "server/service/push_receiver.h"

#include <string>
#include <utility>

namespace slipstream {
namespace {

// Beside its values. A chunk keeps the whole message, and admission counts the values alone; a
// header has no text, so this is many times what it takes.
constexpr size_t kFramingBytesMax = 1024;

}  // namespace

absl::StatusOr<PushReceiver::Outcome> PushReceiver::OnMessage(const grpc::ByteBuffer& message) {
  absl::StatusOr<PushChunk> chunk = DecodePushChunk(message);
  if (!chunk.ok()) return chunk.status();
  if (message.Length() > chunk->values.message_bytes() + kFramingBytesMax) {
    return BrokenFraming("the message holds more than its values");
  }
  if (chunk->request.has_value()) return OnRequest(*chunk->request);
  if (chunk->shared.has_value()) return OnSharedChunk(*std::move(chunk));
  return OnChunk(*std::move(chunk), std::nullopt);
}

PushReceiver::Outcome PushReceiver::OnSharedChunk(PushChunk chunk) {
  if (shared_ == nullptr || !shared_->is_attached()) {
    return BrokenFraming("no shared memory was agreed on");
  }
  const absl::StatusOr<UnreadValues> unread = shared_->Find(*chunk.shared);
  if (!unread.ok()) return BrokenFraming(std::string(unread.status().message()));
  Outcome outcome = OnChunk(std::move(chunk), *unread);
  if (!std::holds_alternative<NeedMore>(outcome)) return outcome;  // The answer says it.
  const absl::Status told = shared_->TellTaken();
  if (!told.ok()) return BrokenFraming(std::string(told.message()));
  return outcome;
}

PushReceiver::Outcome PushReceiver::OnRequest(const SharedMemoryRequest& request) {
  if (shared_ == nullptr) return BrokenFraming("shared memory is for exchanges alone");
  if (assembly_.has_value() || discarding_.has_value()) {
    return BrokenFraming("a request came before the push in front of it was complete");
  }
  return Beside{request};
}

PushReceiver::Outcome PushReceiver::OnChunk(PushChunk chunk,
                                            const std::optional<UnreadValues>& unread) {
  if (chunk.header.has_value()) {
    if (assembly_.has_value() || discarding_.has_value()) {
      return BrokenFraming("a push began before the one in front of it was complete");
    }
    Outcome begun = Begin(*chunk.header);
    if (!std::holds_alternative<NeedMore>(begun)) return begun;
  }
  if (discarding_.has_value()) {
    return Discard(unread.has_value() ? unread->count : chunk.values.count());
  }
  if (!assembly_.has_value()) return BrokenFraming("values came without a header");
  return Take(std::move(chunk), unread);
}

std::string PushReceiver::Abandon() {
  discarding_.reset();
  if (!assembly_.has_value()) return "the push";
  // An excuse is complete from the first, until values come with it.
  std::string missing = assembly_->is_complete() ? "nothing" : assembly_->Missing();
  engine_.AbandonPush(assembly_->header());
  assembly_.reset();
  return missing;
}

PushReceiver::Outcome PushReceiver::Begin(const PushHeader& header) {
  ShardEngine::BegunPush begun = engine_.BeginPush(header);
  if (begun.is_of_member && call_ != nullptr) {
    call_->Claim({.worker = header.identity.worker, .slot = header.slot});
  }
  if (!begun.refusal.has_value()) {
    assembly_.emplace(header, std::move(begun.draft));
    return NeedMore{};
  }
  // How much follows is known only if the count can be believed.
  if (begun.refusal->outcome == PushOutcome::kShapeMismatch) {
    return Refused{*std::move(begun.refusal), true};
  }
  discarding_ = Discarding{*std::move(begun.refusal), header.count};
  return NeedMore{};
}

PushReceiver::Outcome PushReceiver::Take(PushChunk chunk,
                                         const std::optional<UnreadValues>& unread) {
  const uint64_t values = unread.has_value() ? unread->count : chunk.values.count();
  const absl::Status added = unread.has_value()
                                 ? assembly_->AddCopy(chunk.offset, *unread)
                                 : assembly_->Add(chunk.offset, std::move(chunk.values));
  if (!added.ok()) return BrokenFraming(std::string(added.message()));
  if (!assembly_->is_complete()) {
    return NeedMore{values * sizeof(float), assembly_->awaits_seal()};
  }
  Complete complete{*std::move(assembly_)};
  assembly_.reset();
  return complete;
}

PushReceiver::Outcome PushReceiver::Discard(uint64_t values) {
  if (values > discarding_->values_left) return BrokenFraming("more values than announced");
  discarding_->values_left -= values;
  if (discarding_->values_left > 0) return NeedMore{values * sizeof(float)};
  Refused refused{std::move(discarding_->reply), false};
  discarding_.reset();
  return refused;
}

PushReceiver::Outcome PushReceiver::BrokenFraming(std::string message) {
  Abandon();
  PushReply reply;
  reply.outcome = PushOutcome::kLengthMismatch;
  reply.message = std::move(message);
  return Refused{std::move(reply), true};
}

}  // namespace slipstream

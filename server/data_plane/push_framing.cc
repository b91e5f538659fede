#include "server/data_plane/push_framing.h"

#include <utility>

namespace slipstream {

PushFraming::Outcome PushFraming::OnChunk(PushChunk chunk,
                                          const std::optional<UnreadValues>& unread,
                                          absl::FunctionRef<BegunPush(const PushHeader&)> begin) {
  if (chunk.request.has_value()) {
    if (is_between()) return Beside{*chunk.request};
    return Broken("a request came before the push in front of it was complete");
  }
  if (chunk.header.has_value()) {
    if (!is_between()) return Broken("a push began before the one in front of it was complete");
    Outcome begun = Begin(*chunk.header, begin(*chunk.header));
    if (!std::holds_alternative<NeedMore>(begun)) return begun;
  }
  if (discarding_.has_value()) {
    return Discard(unread.has_value() ? unread->count : chunk.values.count());
  }
  if (!assembly_.has_value()) return Broken("values came without a header");
  return Take(std::move(chunk), unread);
}

PushFraming::Outcome PushFraming::Begin(const PushHeader& header, BegunPush begun) {
  if (!begun.refusal.has_value()) {
    assembly_.emplace(header, begun.push, std::move(begun.draft));
    return NeedMore{};
  }
  // If the count in the header is wrong, it is unknown how many values follow.
  if (begun.refusal->outcome == PushOutcome::kShapeMismatch) {
    return Refused{*std::move(begun.refusal), true};
  }
  discarding_ = Discarding{*std::move(begun.refusal), header.count};
  return NeedMore{};
}

PushFraming::Outcome PushFraming::Take(PushChunk chunk, const std::optional<UnreadValues>& unread) {
  const uint64_t values = unread.has_value() ? unread->count : chunk.values.count();
  assembly_->NoteTrailer(chunk.trailer);
  const absl::Status added = unread.has_value()
                                 ? assembly_->AddCopy(chunk.offset, *unread)
                                 : assembly_->Add(chunk.offset, std::move(chunk.values));
  if (!added.ok()) return Broken(std::string(added.message()));
  if (!assembly_->is_complete()) {
    return NeedMore{values * sizeof(float), assembly_->awaits_trailer()};
  }
  Complete complete{*std::move(assembly_)};
  assembly_.reset();
  return complete;
}

PushFraming::Outcome PushFraming::Discard(uint64_t values) {
  if (values > discarding_->values_left) return Broken("more values than announced");
  discarding_->values_left -= values;
  if (discarding_->values_left > 0) return NeedMore{values * sizeof(float)};
  Refused refused{std::move(discarding_->reply), false};
  discarding_.reset();
  return refused;
}

PushFraming::Refused PushFraming::Broken(std::string message) {
  PushReply reply;
  reply.outcome = PushOutcome::kLengthMismatch;
  reply.message = std::move(message);
  return {std::move(reply), true};
}

std::optional<PushAssembly> PushFraming::Abandon() {
  discarding_.reset();
  return std::exchange(assembly_, std::nullopt);
}

}  // namespace slipstream

#include "server/core/shard/composite_judge.h"

#include <algorithm>
#include <string>

#include "common/protocol/composite_push.h"

namespace slipstream {
namespace {

std::string NameOf(const PushPart& part) { return "worker " + std::to_string(Value(part.worker)); }

}  // namespace

std::string CompositeJudge::WhyNotCombined(const PushHeader& header) const {
  if (!rules_.options().takes_composites) return "the run has no aggregators";
  if (std::string fault = FaultOfParts(header); !fault.empty()) return fault;
  // Each gradient is compensated by itself, or added by itself.
  if (rules_.uses_base_weights()) return "compensation needs each gradient by itself";
  if (rules_.traits().adds_in_place()) return "the policy adds each gradient by itself";
  if (header.kind != PushKind::kGradient) return "only gradients are combined";
  // An aggregator may not know yet that the run has gone on to another policy.
  const bool weighs_examples = rules_.traits().weighing == PolicyTraits::Weighing::kExamples;
  if (header.weighs_examples != weighs_examples) return "the round weighs gradients otherwise";
  for (const PushPart& part : header.parts) {
    const PushHeader push = HeaderOf(header, part);
    if (push.base != header.base && judge_.ScaleOf(push) != judge_.ScaleOf(header)) {
      return "its gradients are scaled by their staleness, each otherwise";
    }
    if (const auto refusal = judge_.RefuseByHeader(push)) {
      return NameOf(part) + ": " + refusal->message;
    }
    // A part that has come another way counts already, and so would count twice.
    if (!judge_.IsNext(push)) {
      return NameOf(part) + ": its push was answered before";
    }
    if (judge_.ask().WorkIsDone()) return "the run's work is done";
    if (judge_.Admit(push).kind != Admission::Kind::kJoin) {
      return NameOf(part) + ": its push does not join the open round";
    }
  }
  return "";
}

const PushReply* CompositeJudge::FirstAnswerTo(const PushHeader& composite) const {
  if (composite.generation != state_.versions.generation() || !FaultOfParts(composite).empty())
    return nullptr;
  const PushReply* first = nullptr;
  for (const PushPart& part : composite.parts) {
    if (judge_.RefuseByHeader(HeaderOf(composite, part)).has_value()) return nullptr;
    const MemberRecord::Answer* answer = state_.members.At(part.worker).FindAnswer(part.sequence);
    if (answer == nullptr || answer->checksum != part.checksum) return nullptr;
    if (first == nullptr) first = &answer->reply;
    // Parts that came apart may have answers of their own, so each is to come by itself.
    if (answer->reply != ReplyTo(*first, part)) return nullptr;
  }
  return first;
}

std::optional<PushReply> CompositeJudge::Refuse(const PushHeader& header) const {
  if (FirstAnswerTo(header) != nullptr) return std::nullopt;
  // Before it has weights, the shard would tell each worker to wait, too.
  if (!state_.run.plan.has_value() || !state_.initial_weights.is_initialized()) {
    return judge_.RefuseByHeader(HeaderOf(header, header.parts.front()));
  }
  const std::string why = WhyNotCombined(header);
  if (why.empty()) return std::nullopt;
  return judge_.Refusal(PushOutcome::kNotCombined, why);
}

bool CompositeJudge::IsOfMembers(const PushHeader& header) const {
  return std::ranges::all_of(header.parts, [&](const PushPart& part) {
    return judge_.IsOfMember(HeaderOf(header, part));
  });
}

}  // namespace slipstream

// The part of ShardMachine that decides about pushes of aggregators, which combine those of several
// workers. All of their parts count, or none. One that comes again gets its first answer.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/composite_push.h"
#include "server/core/shard_machine.h"

namespace slipstream {
namespace {

std::string NameOf(const PushPart& part) { return "worker " + std::to_string(Value(part.worker)); }

}  // namespace

std::string ShardMachine::WhyNotCombined(const PushHeader& header) const {
  if (!options_.takes_composites) return "the run has no aggregators";
  if (std::string fault = FaultOfParts(header); !fault.empty()) return fault;
  // Each gradient is compensated by itself, or added by itself.
  if (uses_base_weights()) return "compensation needs each gradient by itself";
  if (traits_.in_place) return "the policy adds each gradient by itself";
  if (header.kind != PushKind::kGradient) return "only gradients are combined";
  // An aggregator may not know yet that the run has gone on to another policy.
  const bool weighs_examples = traits_.weighing == PolicyTraits::Weighing::kExamples;
  if (header.weighs_examples != weighs_examples) return "the round weighs gradients otherwise";
  for (const PushPart& part : header.parts) {
    const PushHeader push = HeaderOf(header, part);
    if (push.base != header.base && ScaleOf(push) != ScaleOf(header)) {
      return "its gradients are scaled by their staleness, each otherwise";
    }
    if (const auto refusal = RefuseByHeader(push)) return NameOf(part) + ": " + refusal->message;
    // A part that has come another way counts already, and so would count twice.
    if (!IsNext(push)) {
      return NameOf(part) + ": its push was answered before";
    }
    if (WorkIsDone()) return "the run's work is done";
    if (Admit(push).kind != Admission::Kind::kJoin) {
      return NameOf(part) + ": its push does not join the open round";
    }
  }
  return "";
}

const PushReply* ShardMachine::FirstAnswerTo(const PushHeader& composite) const {
  if (composite.life != life() || !FaultOfParts(composite).empty()) return nullptr;
  const PushReply* first = nullptr;
  for (const PushPart& part : composite.parts) {
    if (RefuseByHeader(HeaderOf(composite, part)).has_value()) return nullptr;
    const MemberRecord::Answer* answer = members().At(part.worker).FindAnswer(part.sequence);
    if (answer == nullptr || answer->checksum != part.checksum) return nullptr;
    if (first == nullptr) first = &answer->reply;
    // Parts that came apart may have answers of their own, so each is to come by itself.
    if (answer->reply != ReplyTo(*first, part)) return nullptr;
  }
  return first;
}

std::optional<PushReply> ShardMachine::RefuseComposite(const PushHeader& header) const {
  if (FirstAnswerTo(header) != nullptr) return std::nullopt;
  // Before it has weights, the shard would tell each worker to wait, too.
  if (!has_plan() || !is_initialized()) {
    return RefuseByHeader(HeaderOf(header, header.parts.front()));
  }
  const std::string why = WhyNotCombined(header);
  if (why.empty()) return std::nullopt;
  return Refusal(PushOutcome::kNotCombined, why);
}

PushAdmission ShardMachine::OnCompositeHeader(const PushHeader& header) {
  PushAdmission admission = {
      .is_of_member = std::ranges::all_of(
          header.parts, [&](const PushPart& part) { return IsOfMember(HeaderOf(header, part)); })};
  std::optional<PushReply> refusal = RefuseComposite(header);
  if (!refusal) refusal = RefuseForMemory(header);
  if (refusal) {
    admission.refusal = Counted(*std::move(refusal));
    return admission;
  }
  NoteAdmitted(header, admission);
  return admission;
}

ShardMachine::Decision ShardMachine::DecideComposite(const PushFacts& facts, ShardOutput& output) {
  // Check again: a part may have come another way while the payload came.
  if (auto refusal = RefuseComposite(facts.header)) return Refused(*std::move(refusal));
  // The aggregator has not heard the answer, as the connection broke or the shard's process ended.
  if (const PushReply* const first = FirstAnswerTo(facts.header)) return AnswerAgain(facts, *first);
  // One of the parts made it so. Its worker will be told when it sends the part by itself.
  if (auto refusal = RefuseByPayload(facts)) {
    return Refused(Refusal(PushOutcome::kNotCombined, refusal->message));
  }
  return JoinRound(facts, output);
}

}  // namespace slipstream

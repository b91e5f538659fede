#include "server/aggregator/push_group.h"

#include <algorithm>
#include <utility>

#include "common/protocol/composite_push.h"
#include "server/core/run_stages.h"

namespace slipstream {
namespace {

Combiner::PartId PartOf(PushId push) { return Combiner::PartId{static_cast<uint64_t>(push)}; }

}  // namespace

PushGroup::PushGroup(Options options)
    : options_(std::move(options)),
      workers_(Combiner::Options::For(options_.run, options_.group).workers),
      combiner_(Combiner::Options::For(options_.run, options_.group)) {}

void PushGroup::OnOrders(const ServerOrders& orders) {
  orders_ = orders;
  combiner_.OnView(orders.view);
  combiner_.SetPolicy(TraitsNow());
  const auto shard = static_cast<size_t>(Value(options_.shard));
  if (shard < orders.returns.size()) NoteGeneration(orders.returns[shard].generation);
}

void PushGroup::NoteGeneration(Generation generation) {
  generation_ = std::max(generation_, generation);
  combiner_.OnGeneration(generation);
}

PolicyTraits PushGroup::TraitsNow() const {
  const std::vector<RunStage> stages =
      orders_.stages.empty() ? StagesOf(options_.run) : orders_.stages;
  return stages.at(orders_.stage).consistency.traits();
}

void PushGroup::Describe(v1::AggregatorStatus& status, absl::Time now) const {
  status.set_group(options_.group);
  status.set_shard(Value(options_.shard));
  status.set_parts(parts_);
  status.set_composites(composites_);
  status.set_sent_back(sent_back_);
  for (const WorkerId worker : combiner_.WaitingFor()) status.add_waiting_for(Value(worker));
  if (status.waiting_for_size() == 0) return;
  status.set_waiting_seconds(absl::ToDoubleSeconds(now - combiner_.WaitingSince()));
}

// Members.

bool PushGroup::MayBeMember(const Identity& identity) const {
  const Member* const member = orders_.view.Find(identity.worker);
  const bool is_fenced = member != nullptr && member->incarnation > identity.incarnation;
  return identity.run != 0 && identity.run == orders_.run && combiner_.IsOfGroup(identity.worker) &&
         !is_fenced;
}

bool PushGroup::IsMember(const Identity& identity) const {
  const Member* const member = orders_.view.Find(identity.worker);
  return identity.run == orders_.run && member != nullptr &&
         member->incarnation == identity.incarnation && combiner_.IsOfGroup(identity.worker);
}

bool PushGroup::IsMember(const PushHeader& header) const {
  return !IsComposite(header) && IsMember(header.identity) &&
         header.slot < options_.run.training.pipeline_depth;
}

// Pushes.

std::string_view PushGroup::FaultOf(const PushHeader& header) const {
  if (!IsMember(header)) return "its sender is no member of the aggregator's group";
  if (!orders_.model.has_value()) return "the aggregator does not know the model yet";
  const ShardMap& map = orders_.model->shard_map;
  const size_t values = map.range(options_.shard).size();
  const bool fits = header.shard_map == map.fingerprint() && header.count == values;
  if (!fits) return "it does not fit the shard";
  if (const std::string_view fault = FaultInGeneration(header); !fault.empty()) return fault;
  if (header.kind != PushKind::kGradient || header.examples == 0) return "it is no gradient";
  if (header.examples >
      ExamplesMax(header.batches, options_.run.quantum(), options_.run.training.batch_size)) {
    return "it stands for too many examples";
  }
  const uint64_t pushes_max = uint64_t{workers_} * options_.run.training.pipeline_depth + 1;
  if (bytes_held_ / sizeof(float) / values >= pushes_max) return "the aggregator holds too many";
  return "";
}

std::string_view PushGroup::FaultInGeneration(const PushHeader& header) const {
  return header.generation < generation_ ? "it is of an earlier generation of the shard" : "";
}

PushReply PushGroup::SendBack(WorkerId worker, std::string_view why) {
  ++sent_back_;
  combiner_.OnAway(worker);
  return NotCombined(why);
}

BegunPush PushGroup::BeginPush(const PushHeader& header, std::string_view lack) {
  BegunPush begun = {.is_of_member = IsMember(header)};
  const std::string_view fault = lack.empty() ? FaultOf(header) : lack;
  if (fault.empty()) {
    begun.push = PushId{next_push_++};
    bytes_held_ += header.count * sizeof(float);
  } else if (begun.is_of_member) {
    begun.refusal = SendBack(header.identity.worker, fault);
  } else {
    begun.refusal = NotCombined(fault);
  }
  return begun;
}

void PushGroup::AbandonPush(const PushHeader& header) {
  bytes_held_ -= header.count * sizeof(float);
  combiner_.OnAway(header.identity.worker);
}

std::optional<PushReply> PushGroup::FinishPush(CallId call, PushAssembly& push, absl::Time now) {
  const ShardMachine::PushFacts facts = push.Facts();
  const WorkerId worker = facts.header.identity.worker;
  callers_[call] = worker;
  // The shard may have begun a new generation while the values came.
  const std::string_view fault =
      facts.is_finite ? FaultInGeneration(facts.header) : "its values are not finite";
  if (!fault.empty()) {
    bytes_held_ -= facts.header.count * sizeof(float);
    return SendBack(worker, fault);
  }
  const PartId part = PartOf(facts.push);
  waiting_[part] = {.call = call,
                    .header = facts.header,
                    .checksum = facts.checksum,
                    .payload = push.TakePayload()};
  combiner_.OnPush(part, facts.header, now);
  return std::nullopt;
}

bool PushGroup::Cancel(CallId call, absl::Time now) {
  const auto found = std::ranges::find_if(
      waiting_, [call](const auto& entry) { return entry.second.call == call; });
  if (found == waiting_.end()) return false;
  found->second.call.reset();
  if (combiner_.OnGone(found->first, now)) {
    bytes_held_ -= found->second.header.count * sizeof(float);
    waiting_.erase(found);
  }
  return true;
}

void PushGroup::OnCallGone(CallId call) {
  const auto caller = callers_.find(call);
  if (caller == callers_.end()) return;
  const WorkerId worker = caller->second;
  callers_.erase(caller);
  const bool has_another =
      std::ranges::any_of(callers_, [worker](const auto& entry) { return entry.second == worker; });
  if (!has_another) combiner_.OnAway(worker);
}

// Composites.

std::optional<PushGroup::Outgoing> PushGroup::Take(absl::Time now) {
  std::optional<Combiner::Composite> taken = combiner_.TakeComposite(now);
  if (!taken.has_value()) return std::nullopt;
  Outgoing composite = {.id = taken->id,
                        .weighing = TraitsNow().weighing,
                        .may_leave = ++under_way_ <= options_.composites_max};
  std::vector<const PushHeader*> headers;
  std::vector<uint64_t> checksums;
  for (const PartId part : taken->parts) {
    Waiting& push = waiting_.at(part);
    headers.push_back(&push.header);
    checksums.push_back(push.checksum);
    composite.gradients.push_back({.payload = std::exchange(push.payload, {}),
                                   .examples = push.header.examples,
                                   .clip = push.header.trailer.clip});
  }
  composite.header =
      CompositeOf(headers, checksums, composite.weighing == PolicyTraits::Weighing::kExamples);
  sent_[taken->id] = {.header = composite.header, .parts = std::move(taken->parts)};
  return composite;
}

Answers PushGroup::OnAnswer(CompositeId composite, absl::StatusOr<ExchangeAnswer> answer,
                            Weights weights, absl::Time now) {
  --under_way_;
  Sent& sent = sent_.at(composite);
  bytes_held_ -= sent.parts.size() * sent.header.count * sizeof(float);
  Combiner::Verdict verdict;
  verdict.is_counted = answer.ok() && !IsRefusal(answer->push.outcome);
  if (answer.ok()) NoteGeneration(answer->push.generation);
  if (verdict.is_counted) {
    verdict.is_repeated = answer->push.outcome == PushOutcome::kDuplicate;
    sent.counted = {std::move(sent.header), *std::move(answer), std::move(weights)};
    verdict.goes_on = GoesOn(*sent.counted);
    parts_ += sent.parts.size();
    ++composites_;
  } else {
    sent_back_ += sent.parts.size();
    // Without memory or a free connection, the next push may be taken again.
    if (!answer.ok() && !absl::IsResourceExhausted(answer.status())) {
      sent.failure = absl::UnavailableError("the aggregator does not reach its shard");
    }
  }
  return TakeAnswers(combiner_.OnAnswer(composite, std::move(verdict), now));
}

Answers PushGroup::TakeHeld(absl::Time now) { return TakeAnswers(combiner_.TakeHeld(now)); }

Answers PushGroup::TakeAnswers(const std::vector<CompositeId>& composites) {
  std::vector<Sent> answered;
  for (const CompositeId id : composites) answered.push_back(std::move(sent_.extract(id).mapped()));
  std::vector<const CountedComposite*> counted;
  for (const Sent& sent : answered) {
    if (sent.counted.has_value()) counted.push_back(&*sent.counted);
  }
  const CountedComposite* const newest = NewestOf(counted);
  Answers answers;
  for (const Sent& sent : answered) {
    for (size_t i = 0; i < sent.parts.size(); ++i) {
      const Waiting push = std::move(waiting_.extract(sent.parts[i]).mapped());
      if (!push.call.has_value()) continue;
      Answer answer;
      if (sent.counted.has_value()) {
        answer = AnswerOf(push.header, *sent.counted, i, newest);
      } else if (sent.failure.ok()) {
        answer.push = NotCombined("the shard did not count it with others");
      } else {
        answer.refusal = sent.failure;
      }
      answer.call = *push.call;
      answers.push_back(std::move(answer));
    }
  }
  return answers;
}

}  // namespace slipstream

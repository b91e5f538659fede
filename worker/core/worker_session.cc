#include "worker/core/worker_session.h"

#include <algorithm>
#include <variant>

#include "common/base/check.h"
#include "worker/core/push_verdict.h"

namespace slipstream {
namespace {

bool HasEffect(const PushReply& reply) {
  return Judge(reply.outcome) == PushVerdict::kTaken &&
         FirstOutcome(reply) != PushOutcome::kDroppedLate;
}

/// Returns the shards that the action calls.
std::vector<ShardId> CalledBy(const WorkerCore::Action& action) {
  std::vector<ShardId> shards;
  if (const auto* pull = std::get_if<WorkerCore::PullShards>(&action)) {
    for (const WorkerCore::ShardPull& one : pull->pulls) shards.push_back(one.shard);
  } else if (const auto* excuse = std::get_if<WorkerCore::ExcuseShards>(&action)) {
    shards = excuse->shards;
  } else if (const auto* release = std::get_if<WorkerCore::ReleaseShards>(&action)) {
    shards = release->shards;
  }
  return shards;
}

}  // namespace

WorkerSession::WorkerSession(const Options& options)
    : identity_(options.identity),
      shard_map_(options.shard_map),
      pushes_(options.pushes),
      keeps_weights_(options.core.keeps_weights),
      core_(options.core),
      exchanges_(options.core.shards),
      replies_(options.core.shards) {
  for (uint32_t i = 0; i < options.core.shards; ++i) all_.push_back(ShardId{i});
  slots_.resize(options.core.depth);
}

std::optional<WorkerCore::Action> WorkerSession::Next(uint32_t slot) const {
  if (!is_answered(slot)) return std::nullopt;
  const auto is_settled = [this, slot](ShardId shard) {
    const Exchange& exchange = exchanges_[Value(shard)];
    return !exchange.is_under_way || exchange.slot != slot;
  };
  WorkerCore::Action action = core_.Next(slot);
  const std::vector<ShardId> called = CalledBy(action);
  if (!std::ranges::all_of(called, is_settled)) return std::nullopt;
  return action;
}

void WorkerSession::OnNews(const WorkNews& news) {
  if (const auto* unit = std::get_if<WorkUnit>(&news)) {
    core_.OnUnit(*unit);
  } else if (const auto* next = std::get_if<NextStage>(&news)) {
    PS_CHECK(core_.GoesOnIn(next->stage) ||
             std::ranges::none_of(exchanges_, &Exchange::is_under_way));
    core_.EnterStage(next->stage);
  } else if (const auto* returned = std::get_if<ShardsReturned>(&news)) {
    core_.OnReturned(returned->generation);
  } else {
    core_.OnNoMoreUnits();
  }
}

void WorkerSession::BeginPush(uint32_t slot, const Gradient& gradient) {
  Slot& push = slots_.at(slot);
  if (!push.unsent.empty()) return;
  push = {.gradient = gradient, .unsent = all_, .unanswered = all_.size()};
  if (std::holds_alternative<WorkerCore::ComputeBatches>(core_.Next(slot))) {
    core_.OnBatchesBegun(gradient.batches, slot);
  }
}

void WorkerSession::SendTo(uint32_t slot, const std::vector<ShardId>& shards) {
  const std::set<ShardId> sent(shards.begin(), shards.end());  // `shards` may be the unsent ones.
  std::erase_if(slots_.at(slot).unsent, [&sent](ShardId shard) { return sent.contains(shard); });
}

bool WorkerSession::are_answered() const {
  return std::ranges::all_of(slots_, [](const Slot& slot) { return slot.unanswered == 0; });
}

void WorkerSession::AbortPush(uint32_t slot) { slots_.at(slot) = {}; }

PullRequest WorkerSession::PullFor(const WorkerCore::ShardPull& pull, uint32_t slot) {
  return {.identity = identity_,
          .shard_map = shard_map_,
          .min_version = pull.min_version,
          .min_generation = pull.min_generation,
          .trains = true,
          .sequence = core_.sequence(pull.shard, pull.min_generation),
          .slot = slot,
          .clock = core_.ClockOfPull(pull.shard)};
}

PushHeader WorkerSession::BeginExchange(ShardId shard, uint32_t slot) {
  exchanges_.at(Value(shard)) = {.slot = slot, .is_under_way = true};
  PushHeader header = HeaderFor(shard, slot, std::nullopt);
  const Gradient& gradient = slots_.at(slot).gradient;
  header.examples = gradient.examples;
  header.batches = gradient.batches;
  header.label = gradient.label;
  return header;
}

PushHeader WorkerSession::BeginExcuse(ShardId shard, uint32_t slot, bool pull) {
  exchanges_.at(Value(shard)) = {.slot = slot, .is_excuse = true, .is_under_way = true};
  return HeaderFor(shard, slot, pull);
}

PushHeader WorkerSession::HeaderFor(ShardId shard, uint32_t slot, std::optional<bool> pull) {
  PushHeader header;
  header.identity = identity_;
  header.shard_map = shard_map_;
  header.kind = pushes_;
  header.slot = slot;
  header.base = core_.version(shard, slot);
  header.generation = core_.generation(shard, slot);
  header.sequence = core_.sequence(shard, header.generation);
  const WorkerCore::PushTerms terms = core_.TermsOfPush(shard, slot, pull);
  header.pull = terms.pull;
  header.clock = terms.clock;
  header.rests = terms.rests;
  header.leaves_out = terms.leaves_out;
  return header;
}

absl::Status WorkerSession::OnPulled(ShardId shard, uint32_t slot, const WeightsHeader& header) {
  landed_.insert(shard);
  return core_.OnWeights(shard, header, slot);
}

absl::StatusOr<bool> WorkerSession::OnAnswer(ShardId shard, const ExchangeAnswer& answer) {
  Exchange& exchange = exchanges_.at(Value(shard));
  const bool is_first = !std::exchange(exchange.is_answered, true);
  const auto before = std::exchange(exchange.brought, std::nullopt);
  if (answer.weights.has_value()) {
    exchange.brought.emplace(answer.weights->generation, answer.weights->version);
  }
  // A shard that is asked again after its answer broke off answers DUPLICATE; the push was counted
  // the first time.
  absl::Status status = is_first ? core_.OnReply(shard, answer.push, exchange.slot)
                                 : core_.OnRepeatedReply(shard, answer.push, exchange.slot);
  if (status.ok() && answer.weights.has_value()) {
    status = core_.OnWeights(shard, *answer.weights, exchange.slot);
  }
  if (!status.ok()) return status;
  if (is_first && !exchange.is_excuse) {
    replies_[Value(shard)] = answer.push;
    if (keeps_weights_ && !HasEffect(answer.push)) without_effect_.insert(shard);
    if (--slots_[exchange.slot].unanswered == 0) core_.OnBatchesDone(exchange.slot);
  }
  return before.has_value() && before != exchange.brought;
}

void WorkerSession::OnExchangeOver(ShardId shard, bool is_complete) {
  Exchange& exchange = exchanges_.at(Value(shard));
  exchange.is_under_way = false;
  const bool brought_weights = std::exchange(exchange.brought, std::nullopt).has_value();
  if (is_complete && brought_weights) landed_.insert(shard);
}

}  // namespace slipstream

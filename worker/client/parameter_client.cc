#include "worker/client/parameter_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "worker/core/push_verdict.h"

namespace slipstream {
namespace {

/// Returns whether a step's values are sent and received while it computes.
bool Overlaps(const ParameterClient::Options& options, size_t slots) {
  const size_t alone_bytes_max =
      std::max(options.shards.alone_bytes_max, options.shards.chunk_bytes);
  bool is_worth_it = false;
  for (uint32_t i = 0; i < options.map.shards(); ++i) {
    const size_t bytes = options.map.range(ShardId{i}).size() * sizeof(float);
    is_worth_it = is_worth_it || bytes > alone_bytes_max;
  }
  return slots > 1 || options.sends_parts_ahead || is_worth_it;
}

bool HasEffect(const PushReply& reply) {
  return Judge(reply.outcome) == PushVerdict::kTaken &&
         FirstOutcome(reply) != PushOutcome::kDroppedLate;
}

}  // namespace

ParameterClient::Options ParameterClient::Options::For(const RunSpec& run, const JoinedRun& joined,
                                                       const TensorLayout& layout,
                                                       const ShardMap& map,
                                                       const ShardOptions& shards) {
  const PolicyTraits first = run.StageOf(0).consistency.traits();
  const AlgorithmRow& algorithm = RowOf(run.worker.algorithm);
  return {.identity = joined.identity,
          .servers = joined.servers,
          .aggregators = joined.aggregators,
          .map = map,
          .in_step = first.in_step,
          .releases_unused = first.waits_for_members,
          .quantum = run.quantum(),
          .keeps_weights = algorithm.keeps_weights,
          .pushes_per_fetch = run.pushes_per_fetch(),
          .has_free_lanes = run.worker.has_free_lanes(),
          .pushes = run.pushes(),
          .changes_weights =
              run.all_reduces() || (algorithm.has_local_weights && !run.worker.lands_apart()),
          .sends_parts_ahead = run.worker.fragments() > 1,
          .frozen = PushEncoders::FrozenIn(run, layout, map),
          .shards = shards};
}

ParameterClient::ParameterClient(const Options& options, std::vector<Slot> slots, Sleeper sleeper,
                                 CancelSwitch& cancel)
    : identity_(options.identity),
      kind_(options.pushes),
      keeps_weights_(options.keeps_weights),
      changes_weights_(options.changes_weights),
      slots_(std::move(slots)),
      overlaps_(Overlaps(options, slots_.size())),
      encoders_(options.shards.push_encoding, options.map, slots_.size(), options.frozen),
      pushes_(slots_.size()),
      core_({.shards = options.map.shards(),
             .in_step = options.in_step,
             .depth = static_cast<uint32_t>(slots_.size()),
             .quantum = options.quantum,
             .keeps_weights = options.keeps_weights,
             .pushes_per_fetch = options.pushes_per_fetch,
             .releases_unused = options.releases_unused}),
      has_landed_(options.map.shards()),
      replies_(options.map.shards()),
      group_(options.servers, options.map, options.shards, sleeper, cancel, options.aggregators) {
  if (options.has_free_lanes) {
    PS_CHECK(options.pushes_per_fetch == kNeverFetches);
    newest_ = std::make_unique<NewestWeights>(options.identity, options.servers, options.map,
                                              options.shards, sleeper, cancel, options.aggregators);
  }
  for (const Slot& slot : slots_) {
    PS_CHECK(slot.weights.size() == options.map.parameters());
    PS_CHECK(slot.gradient.size() == options.map.parameters());
  }
}

ParameterClient::~ParameterClient() {
  for (const std::shared_ptr<Push>& push : pushes_) {
    if (push != nullptr && !push->parts.back()->feed.is_over()) push->parts.back()->feed.Abort();
  }
}

absl::Status ParameterClient::Initialize(uint64_t grant, std::span<const float> weights) {
  const InitializeHeader header{identity_, grant, group_.map().fingerprint(), 0};
  return group_.Try([&](ShardClient& shard) { return shard.Initialize(header, weights); });
}

absl::StatusOr<ParameterClient::Step> ParameterClient::Advance(uint32_t slot) {
  const Push* push = pushes_[slot].get();
  PS_CHECK(push == nullptr || push->unsent.empty());
  for (;;) {
    absl::Status status;
    std::optional<WorkerCore::Action> action;
    {
      MutexLock lock(mutex_);
      while (failure_.status().ok() && push != nullptr && push->unanswered > 0)
        changed_.Wait(mutex_);
      status = failure_.status();
      action = core_.Next(slot);
    }
    if (!status.ok()) return Fail(status);
    if (const auto* pull = std::get_if<WorkerCore::PullShards>(&*action)) {
      status = Pull(slot, *pull);
    } else if (const auto* excuse = std::get_if<WorkerCore::ExcuseShards>(&*action)) {
      status = PushNothing(slot, excuse->shards, true);
    } else if (const auto* release = std::get_if<WorkerCore::ReleaseShards>(&*action)) {
      status = PushNothing(slot, release->shards, false);
    } else if (const auto* compute = std::get_if<WorkerCore::ComputeBatches>(&*action)) {
      return Step(Compute{compute->batches});
    } else {
      const bool has_to_wait = std::holds_alternative<WorkerCore::AwaitUnit>(*action);
      if (newest_ != nullptr) {
        newest_->Rest();
        MutexLock lock(mutex_);
        if (has_to_wait) core_.OnWait();
      }
      return has_to_wait ? Step(AwaitUnit{}) : Step(Finished{});
    }
    if (!status.ok()) return Fail(status);
  }
}

absl::StatusOr<ParameterClient::Step> ParameterClient::FetchForPush(uint32_t slot) {
  if (absl::Status status = Drain(); !status.ok()) return status;
  WorkerCore::PullShards pulls;
  {
    MutexLock lock(mutex_);
    pulls = core_.PullsOfPush(slot);
  }
  if (!pulls.pulls.empty()) {
    if (absl::Status status = Pull(slot, pulls); !status.ok()) return Fail(status);
  }
  return Advance(slot);
}

absl::Status ParameterClient::TakeNewest(uint32_t slot) {
  std::vector<NewestWeights::Held> held;
  {
    MutexLock lock(mutex_);
    for (const ShardId shard : group_.all()) {
      held.emplace_back(core_.life(shard, slot), core_.version(shard, slot));
    }
  }
  const absl::StatusOr<std::vector<NewestWeights::Taken>> taken =
      newest_->Take(held, slots_[slot].weights);
  absl::Status status = taken.status();
  if (taken.ok()) {
    MutexLock lock(mutex_);
    for (const NewestWeights::Taken& part : *taken) {
      if (status.ok()) status = core_.OnWeights(part.shard, part.header, slot);
    }
  }
  if (!status.ok()) {
    group_.EndCalls();
    return Fail(status);
  }
  WeightsListener* listener = slots_[slot].listener;
  if (listener != nullptr) listener->OnWeightsArrived({0, group_.map().parameters()});
  return absl::OkStatus();
}

std::vector<ParameterRange> ParameterClient::TakeRangesWithoutEffect() {
  MutexLock lock(mutex_);
  return std::exchange(without_effect_, {});
}

// Pushes: these run on the caller's thread.

GradientFeed& ParameterClient::BeginPush(uint32_t slot, const Gradient& gradient) {
  return BeginPart(slot, gradient.step, PushOf(slot, gradient).unsent);
}

ParameterClient::Push& ParameterClient::PushOf(uint32_t slot, const Gradient& gradient) {
  std::shared_ptr<Push>& push = pushes_[slot];
  if (push != nullptr && !push->unsent.empty()) return *push;
  push = std::make_shared<Push>(slot, gradient, group_.all());
  MutexLock lock(mutex_);
  // If weights were replaced since Advance, the core may ask for something else here. The step
  // computed from the old weights will then fail.
  if (std::holds_alternative<WorkerCore::ComputeBatches>(core_.Next(slot))) {
    core_.OnBatchesBegun(gradient.batches, slot);
  }
  return *push;
}

GradientFeed& ParameterClient::BeginPart(uint32_t slot, uint64_t step,
                                         const std::vector<ShardId>& shards) {
  const std::shared_ptr<Push> push = pushes_[slot];
  Part& part = *push->parts.emplace_back(std::make_unique<Part>(shards, step, group_.map()));
  std::erase_if(push->unsent,
                [&part](ShardId shard) { return std::ranges::count(part.shards, shard) > 0; });
  {
    MutexLock lock(mutex_);
    lanes_under_way_ += part.under_way;
  }
  if (overlaps_) {
    group_.Start(part.shards,
                 [this, push, &part](ShardClient& shard) { return ServePush(shard, *push, part); });
  }
  return part.feed;
}

absl::Status ParameterClient::FinishPush(uint32_t slot, const PushSeal& seal) {
  Push& push = *pushes_[slot];
  Part& part = *push.parts.back();
  part.feed.Seal(seal);
  if (overlaps_) return absl::OkStatus();
  const absl::Status status =
      group_.Run(part.shards, [&](ShardClient& shard) { return ServePush(shard, push, part); });
  return status.ok() ? status : Fail(status);
}

absl::Status ParameterClient::PushPart(const Gradient& gradient, const std::vector<ShardId>& shards,
                                       const PushSeal& seal) {
  PS_CHECK(slots_.size() == 1);
  PushOf(0, gradient);
  BeginPart(0, gradient.step, shards);
  return FinishPush(0, seal);
}

std::vector<ShardId> ParameterClient::ShardsToPush() const {
  const Push* push = pushes_.front().get();
  return push == nullptr || push->unsent.empty() ? group_.all() : push->unsent;
}

std::vector<ParameterRange> ParameterClient::TakeLanded() {
  MutexLock lock(mutex_);
  PS_CHECK(lanes_under_way_ == 0);
  std::vector<ParameterRange> ranges;
  for (const ShardId shard : group_.all()) {
    if (has_landed_[Value(shard)]) ranges.push_back(group_.map().range(shard));
    has_landed_[Value(shard)] = false;
  }
  return ranges;
}

void ParameterClient::AbortPush(uint32_t slot) {
  const std::shared_ptr<Push> push = std::exchange(pushes_[slot], nullptr);
  Part& newest = *push->parts.back();
  newest.feed.Abort();
  MutexLock lock(mutex_);
  if (!overlaps_) lanes_under_way_ -= std::exchange(newest.under_way, 0);  // No lane has it.
  for (const std::unique_ptr<Part>& part : push->parts) {
    while (part->under_way > 0) changed_.Wait(mutex_);
  }
}

void ParameterClient::Skip(uint32_t slot) {
  MutexLock lock(mutex_);
  const auto is_awaited = [](const std::shared_ptr<Push>& push) {
    return push != nullptr && push->unanswered > 0;
  };
  while (failure_.status().ok() && std::ranges::any_of(pushes_, is_awaited)) changed_.Wait(mutex_);
  if (failure_.status().ok()) core_.OnBatchesSkipped(slot);  // Otherwise training ends anyway.
}

absl::Status ParameterClient::EnterStage(const WorkerCore::Stage& stage) {
  MutexLock lock(mutex_);
  if (!core_.GoesOnIn(stage)) AwaitLanes();
  if (failure_.status().ok()) core_.EnterStage(stage);
  return failure_.status();
}

absl::Status ParameterClient::Drain() {
  MutexLock lock(mutex_);
  AwaitLanes();
  return failure_.status();
}

void ParameterClient::AwaitLanes() {
  while (lanes_under_way_ > 0) changed_.Wait(mutex_);
}

absl::Status ParameterClient::Fail(const absl::Status& status) {
  MutexLock lock(mutex_);
  failure_.Note(status);
  AwaitLanes();
  return failure_.status();
}

absl::Status ParameterClient::Pull(uint32_t slot, const WorkerCore::PullShards& action) {
  std::vector<ShardId> shards;
  for (const WorkerCore::ShardPull& pull : action.pulls) shards.push_back(pull.shard);
  return group_.Run(shards, [&](ShardClient& shard) {
    const auto pull = std::ranges::find(action.pulls, shard.shard(), &WorkerCore::ShardPull::shard);
    const absl::StatusOr<ShardClient::Pulled> pulled =
        shard.Pull(PullHeader(*pull, slot), ArrivalOf(shard, slot));
    if (!pulled.ok()) return pulled.status();
    MutexLock lock(mutex_);
    has_landed_[Value(shard.shard())] = true;
    return core_.OnWeights(shard.shard(), pulled->header, slot);
  });
}

absl::Status ParameterClient::PushNothing(uint32_t slot, const std::vector<ShardId>& shards,
                                          bool pull) {
  return group_.Run(shards, [&](ShardClient& shard) {
    ShardExchange exchange(shard, {.header = Header(shard.shard(), slot, {}, pull)},
                           ArrivalOf(shard, slot));
    return Follow(shard, slot, nullptr, exchange);
  });
}

// These run in a lane.

PullRequest ParameterClient::PullHeader(const WorkerCore::ShardPull& pull, uint32_t slot) {
  MutexLock lock(mutex_);
  return {.identity = identity_,
          .shard_map = group_.map().fingerprint(),
          .min_version = pull.min_version,
          .min_life = pull.min_life,
          .trains = true,
          .sequence = core_.sequence(pull.shard, pull.min_life),
          .slot = slot,
          .clock = core_.ClockOfPull(pull.shard)};
}

PushHeader ParameterClient::Header(ShardId shard, uint32_t slot, const Gradient& gradient,
                                   std::optional<bool> pull) {
  PushHeader header;
  header.identity = identity_;
  header.shard_map = group_.map().fingerprint();
  header.kind = kind_;
  header.examples = gradient.examples;
  header.batches = gradient.batches;
  header.label = gradient.label;
  header.slot = slot;
  MutexLock lock(mutex_);
  header.base = core_.version(shard, slot);
  header.life = core_.life(shard, slot);
  header.sequence = core_.sequence(shard, header.life);
  const WorkerCore::PushTerms terms = core_.TermsOfPush(shard, slot, pull);
  header.pull = terms.pull;
  header.clock = terms.clock;
  header.rests = terms.rests;
  header.leaves_out = terms.leaves_out;
  return header;
}

absl::Status ParameterClient::ServePush(ShardClient& shard, Push& push, Part& part) {
  absl::Status status = ExchangePush(shard, push, part);
  const bool is_aborted = part.feed.is_aborted();
  if (is_aborted) status = absl::OkStatus();
  if (!status.ok()) {
    group_.EndCalls();  // First: whoever learns of the failure finds no call under way.
    {
      MutexLock lock(mutex_);
      failure_.Note(status);
      changed_.NotifyAll();
    }
    for (const Slot& slot : slots_) {
      if (slot.listener != nullptr) slot.listener->OnWeightsAbandoned();
    }
  }
  MutexLock lock(mutex_);
  --lanes_under_way_;
  if (--part.under_way == 0 && !is_aborted) transfers_.push_back(std::move(part.transfer));
  changed_.NotifyAll();
  return status;
}

absl::Status ParameterClient::ExchangePush(ShardClient& shard, Push& push, Part& part) {
  // Once the backward pass has begun, all weights have arrived, so the core's view of them is
  // final.
  const ParameterRange range = shard.range();
  if (!part.feed.AwaitFinal(range.end - 1)) return absl::OkStatus();
  const ShardPush pushed = {.header = Header(shard.shard(), push.slot, push.gradient),
                            .values = slots_[push.slot].gradient.subspan(range.begin, range.size()),
                            .encoder = encoders_.Of(shard.shard(), push.slot),
                            .feed = &part.feed};
  WeightsArrival weights = ArrivalOf(shard, push.slot);
  if (!changes_weights_) weights.StartFrom(pushed.header.life, pushed.header.base);
  if (pushed.encoder != nullptr) pushed.encoder->Begin();
  ShardExchange exchange(shard, pushed, std::move(weights));
  const absl::Status status = Follow(shard, push.slot, &push, exchange);
  MutexLock lock(mutex_);
  part.transfer.lanes[Value(shard.shard())] = exchange.times();
  return status;
}

absl::Status ParameterClient::Follow(const ShardClient& shard, uint32_t slot, Push* push,
                                     ShardExchange& exchange) {
  bool brings_weights = false;
  for (bool is_first = true;; is_first = false) {
    const absl::StatusOr<std::optional<ExchangeAnswer>> answer = exchange.Next();
    if (!answer.ok()) return answer.status();
    if (!answer->has_value()) {
      MutexLock lock(mutex_);
      if (brings_weights) has_landed_[Value(shard.shard())] = true;
      return absl::OkStatus();
    }
    const bool brought_weights = std::exchange(brings_weights, (*answer)->weights.has_value());
    const absl::Status heeded = Heed(shard.shard(), slot, push, **answer, is_first);
    if (!heeded.ok()) return shard.is_stopped() ? absl::CancelledError("stopped") : heeded;
    // The shard has begun a new life while it sent its weights. A step that waits for the rest of
    // them ends, and Advance then pulls.
    WeightsListener* const listener = slots_[slot].listener;
    const bool are_lost = brought_weights && !brings_weights;
    if (are_lost && listener != nullptr) listener->OnWeightsRevoked(shard.range());
  }
}

absl::Status ParameterClient::Heed(ShardId shard, uint32_t slot, Push* push,
                                   const ExchangeAnswer& answer, bool is_first) {
  MutexLock lock(mutex_);
  // If the shard is asked again after its answer broke off, it answers DUPLICATE; the push was
  // counted the first time.
  absl::Status status = is_first ? core_.OnReply(shard, answer.push, slot)
                                 : core_.OnRepeatedReply(shard, answer.push, slot);
  if (status.ok() && answer.weights) status = core_.OnWeights(shard, *answer.weights, slot);
  if (!status.ok()) return status;
  if (push != nullptr && is_first) {
    replies_[Value(shard)] = answer.push;
    if (keeps_weights_ && !HasEffect(answer.push))
      without_effect_.push_back(group_.map().range(shard));
    if (--push->unanswered == 0) core_.OnBatchesDone(slot);
  }
  changed_.NotifyAll();
  return absl::OkStatus();
}

// These delegate to the core.

void ParameterClient::OnUnit(const WorkUnit& unit) {
  MutexLock lock(mutex_);
  core_.OnUnit(unit);
}

void ParameterClient::OnNoMoreUnits() {
  MutexLock lock(mutex_);
  core_.OnNoMoreUnits();
}

void ParameterClient::OnReturned(Life life) {
  MutexLock lock(mutex_);
  core_.OnReturned(life);
}

Life ParameterClient::newest_life() const {
  MutexLock lock(mutex_);
  return core_.newest_life();
}

void ParameterClient::OnWorkEnds() {
  MutexLock lock(mutex_);
  core_.OnWorkEnds();
}

void ParameterClient::OnSteps(uint64_t steps) {
  MutexLock lock(mutex_);
  core_.OnSteps(steps);
}

bool ParameterClient::wants_unit() const {
  MutexLock lock(mutex_);
  return core_.wants_unit();
}

std::vector<UnitProgress> ParameterClient::progress() const {
  MutexLock lock(mutex_);
  return core_.progress();
}

uint64_t ParameterClient::split_pushes() const {
  MutexLock lock(mutex_);
  return core_.split_pushes();
}

bool ParameterClient::goes_on() const {
  MutexLock lock(mutex_);
  return core_.goes_on();
}

Version ParameterClient::version(ShardId shard, uint32_t slot) const {
  MutexLock lock(mutex_);
  return core_.version(shard, slot);
}

std::vector<PushReply> ParameterClient::replies() const {
  MutexLock lock(mutex_);
  return replies_;
}

std::vector<ParameterClient::Transfer> ParameterClient::TakeTransfers() {
  MutexLock lock(mutex_);
  return std::exchange(transfers_, {});
}

}  // namespace slipstream

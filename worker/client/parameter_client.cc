#include "worker/client/parameter_client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/limits.h"
#include "worker/member/session_options.h"

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

}  // namespace

ParameterClient::Options ParameterClient::Options::For(const RunSpec& run, const JoinedRun& joined,
                                                       const TensorLayout& layout,
                                                       const ShardMap& map,
                                                       const ShardOptions& shards) {
  const WorkerSession::Options session = SessionOptionsFor(run, joined.identity, map);
  const AlgorithmRow& algorithm = RowOf(run.worker.algorithm);
  return {.identity = joined.identity,
          .servers = joined.servers,
          .aggregators = joined.aggregators,
          .map = map,
          .in_step = session.core.in_step,
          .releases_unused = session.core.releases_unused,
          .quantum = session.core.quantum,
          .keeps_weights = session.core.keeps_weights,
          .pushes_per_fetch = session.core.pushes_per_fetch,
          .has_free_lanes = run.worker.has_free_lanes(),
          .pushes = session.pushes,
          .changes_weights = run.workers_make_weights() ||
                             (algorithm.has_local_weights && !run.worker.lands_apart()),
          .sends_parts_ahead = run.worker.fragments() > 1,
          .frozen = PushEncoders::FrozenIn(run, layout, map),
          .shards = shards};
}

ParameterClient::ParameterClient(const Options& options, std::vector<Slot> slots, Sleeper sleeper,
                                 CancelSwitch& cancel)
    : changes_weights_(options.changes_weights),
      slots_(std::move(slots)),
      overlaps_(Overlaps(options, slots_.size())),
      encoders_(options.shards.push_encoding, options.map, slots_.size(), options.frozen),
      pushes_(slots_.size()),
      follows_(slots_.size(), false),
      session_({.identity = options.identity,
                .shard_map = options.map.fingerprint(),
                .pushes = options.pushes,
                .core = {.shards = options.map.shards(),
                         .in_step = options.in_step,
                         .depth = static_cast<uint32_t>(slots_.size()),
                         .quantum = options.quantum,
                         .keeps_weights = options.keeps_weights,
                         .pushes_per_fetch = options.pushes_per_fetch,
                         .releases_unused = options.releases_unused}}),
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
    if (push != nullptr && !push->back()->feed.is_over()) push->back()->feed.Abort();
  }
}

absl::Status ParameterClient::Initialize(uint64_t grant, std::span<const float> weights) {
  InitializeHeader header;
  {
    MutexLock lock(mutex_);
    header = session_.InitializeFor(grant);
  }
  return group_.Try(group_.all(),
                    [&](ShardClient& shard) { return shard.Initialize(header, weights); });
}

absl::StatusOr<ParameterClient::Step> ParameterClient::Advance(uint32_t slot) {
  for (;;) {
    absl::Status status;
    std::optional<WorkerCore::Action> action;
    {
      MutexLock lock(mutex_);
      PS_CHECK(!session_.is_sending(slot));
      while (failure_.status().ok() && !(action = session_.Next(slot))) changed_.Wait(mutex_);
      status = failure_.status();
    }
    if (!status.ok()) return Fail(status);
    if (const auto* pull = std::get_if<WorkerCore::PullShards>(&*action)) {
      const bool follows = newest_ != nullptr && !follows_[slot];
      status = follows ? TakeNewest(slot) : Pull(slot, *pull);
    } else if (const auto* excuse = std::get_if<WorkerCore::ExcuseShards>(&*action)) {
      status = PushNothing(slot, excuse->shards, true);
    } else if (const auto* release = std::get_if<WorkerCore::ReleaseShards>(&*action)) {
      status = PushNothing(slot, release->shards, false);
    } else if (const auto* compute = std::get_if<WorkerCore::ComputeBatches>(&*action)) {
      return Step(Compute{compute->batches});
    } else {
      if (std::holds_alternative<WorkerCore::AwaitUnit>(*action)) return Step(AwaitUnit{});
      Rest();
      return Step(Finished{});
    }
    if (!status.ok()) return Fail(status);
  }
}

absl::StatusOr<ParameterClient::Step> ParameterClient::FetchForPush(uint32_t slot) {
  if (absl::Status status = Drain(); !status.ok()) return status;
  WorkerCore::PullShards pulls;
  {
    MutexLock lock(mutex_);
    pulls = session_.core().PullsOfPush(slot);
  }
  if (!pulls.pulls.empty()) {
    if (absl::Status status = Pull(slot, pulls); !status.ok()) return Fail(status);
  }
  return Advance(slot);
}

absl::Status ParameterClient::TakeNewest(uint32_t slot) {
  std::vector<std::optional<NewestWeights::Held>> held(group_.map().shards());
  if (follows_[slot]) {
    MutexLock lock(mutex_);
    for (const ShardId shard : group_.all()) {
      held[Value(shard)].emplace(session_.core().generation(shard, slot),
                                 session_.core().version(shard, slot));
    }
  }
  follows_[slot] = true;
  const absl::StatusOr<std::vector<NewestWeights::Taken>> taken =
      newest_->Take(held, slots_[slot].weights);
  absl::Status status = taken.status();
  if (taken.ok()) {
    MutexLock lock(mutex_);
    for (const NewestWeights::Taken& part : *taken) {
      if (status.ok()) status = session_.OnPulled(part.shard, slot, part.header);
    }
  }
  if (!status.ok()) {
    group_.EndCalls();
    return Fail(status);
  }
  WeightsListener* listener = slots_[slot].listener;
  if (listener != nullptr) listener->WeightsArrived({0, group_.map().parameters()});
  return absl::OkStatus();
}

std::vector<ParameterRange> ParameterClient::RangesOf(const std::set<ShardId>& shards) const {
  std::vector<ParameterRange> ranges;
  for (const ShardId shard : shards) ranges.push_back(group_.map().range(shard));
  return ranges;
}

std::vector<ParameterRange> ParameterClient::TakeRangesWithoutEffect() {
  MutexLock lock(mutex_);
  return RangesOf(session_.TakeWithoutEffect());
}

// Pushes: these run on the caller's thread.

GradientFeed& ParameterClient::BeginPush(uint32_t slot, const Gradient& gradient) {
  return BeginPart(slot, gradient);
}

GradientFeed& ParameterClient::BeginPart(uint32_t slot, const Gradient& gradient,
                                         std::optional<std::vector<ShardId>> shards) {
  std::shared_ptr<Push>& push = pushes_[slot];
  Part* part = nullptr;
  {
    MutexLock lock(mutex_);
    if (push == nullptr || !session_.is_sending(slot)) push = std::make_shared<Push>();
    session_.BeginPush(slot, {gradient.batches, gradient.examples, gradient.label});
    if (!shards.has_value()) shards = session_.unsent(slot);
    session_.SendTo(slot, *shards);
    part = push->emplace_back(std::make_unique<Part>(*shards, gradient, group_.map())).get();
    lanes_under_way_ += part->under_way;
  }
  if (overlaps_) {
    group_.Start(part->shards, [this, push, slot, part](ShardClient& shard) {
      return ServePush(shard, slot, *part);
    });
  }
  return part->feed;
}

absl::Status ParameterClient::FinishPush(uint32_t slot, const PushTrailer& trailer) {
  Part& part = *pushes_[slot]->back();
  part.feed.Seal(trailer);
  if (overlaps_) return absl::OkStatus();
  const absl::Status status =
      group_.Run(part.shards, [&](ShardClient& shard) { return ServePush(shard, slot, part); });
  return status.ok() ? status : Fail(status);
}

absl::Status ParameterClient::PushPart(const Gradient& gradient, const std::vector<ShardId>& shards,
                                       const PushTrailer& trailer) {
  PS_CHECK(slots_.size() == 1);
  BeginPart(0, gradient, shards);
  return FinishPush(0, trailer);
}

std::vector<ShardId> ParameterClient::ShardsToPush() const {
  MutexLock lock(mutex_);
  return session_.unsent(0);
}

std::vector<ParameterRange> ParameterClient::TakeLanded() {
  MutexLock lock(mutex_);
  PS_CHECK(lanes_under_way_ == 0);
  return RangesOf(session_.TakeLanded());
}

void ParameterClient::AbortPush(uint32_t slot) {
  const std::shared_ptr<Push> push = std::exchange(pushes_[slot], nullptr);
  Part& newest = *push->back();
  newest.feed.Abort();
  MutexLock lock(mutex_);
  if (!overlaps_) lanes_under_way_ -= std::exchange(newest.under_way, 0);  // No lane has it.
  for (const std::unique_ptr<Part>& part : *push) {
    while (part->under_way > 0) changed_.Wait(mutex_);
  }
  session_.AbortPush(slot);
}

void ParameterClient::Skip(uint32_t slot) {
  MutexLock lock(mutex_);
  while (failure_.status().ok() && !session_.are_answered()) changed_.Wait(mutex_);
  // Otherwise training ends anyway.
  if (failure_.status().ok()) session_.core().OnBatchesSkipped(slot);
}

absl::Status ParameterClient::OnNews(const WorkNews& news) {
  MutexLock lock(mutex_);
  const auto* next = std::get_if<NextStage>(&news);
  if (next != nullptr && !session_.core().GoesOnIn(next->stage)) AwaitLanes();
  if (failure_.status().ok()) session_.OnNews(news);
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
    PullRequest request;
    {
      MutexLock lock(mutex_);
      request = session_.PullFor(*pull, slot);
    }
    // If the call is repeated and brings another version, values that have come are overwritten.
    std::optional<std::pair<Generation, Version>> announced;
    const auto on_header = [&](const WeightsHeader& header) {
      const std::pair brought(header.generation, header.version);
      const bool is_replaced = announced.has_value() && *announced != brought;
      announced = brought;
      WeightsListener* const listener = slots_[slot].listener;
      if (is_replaced && listener != nullptr) listener->RevokeWeights(shard.range());
    };
    const absl::StatusOr<ShardClient::Pulled> pulled =
        shard.Pull(request, ArrivalOf(shard, slot), on_header);
    if (!pulled.ok()) return pulled.status();
    MutexLock lock(mutex_);
    return session_.OnPulled(shard.shard(), slot, pulled->header);
  });
}

absl::Status ParameterClient::PushNothing(uint32_t slot, const std::vector<ShardId>& shards,
                                          bool pull) {
  return group_.Run(shards, [&](ShardClient& shard) {
    PushHeader header;
    {
      MutexLock lock(mutex_);
      header = session_.BeginExcuse(shard.shard(), slot, pull);
    }
    ShardExchange exchange(shard, {.header = header}, ArrivalOf(shard, slot));
    return Follow(shard, slot, exchange);
  });
}

// These run in a lane.

absl::Status ParameterClient::ServePush(ShardClient& shard, uint32_t slot, Part& part) {
  absl::Status status = ExchangePush(shard, slot, part);
  const bool is_aborted = part.feed.is_aborted();
  if (is_aborted) status = absl::OkStatus();
  if (!status.ok()) {
    group_.EndCalls();  // First: whoever learns of the failure finds no call under way.
    {
      MutexLock lock(mutex_);
      failure_.Note(status);
      changed_.NotifyAll();
    }
    for (const Slot& any : slots_) {
      if (any.listener != nullptr) any.listener->AbandonWeights();
    }
  }
  MutexLock lock(mutex_);
  --lanes_under_way_;
  if (--part.under_way == 0 && !is_aborted) transfers_.push_back(std::move(part.transfer));
  changed_.NotifyAll();
  return status;
}

absl::Status ParameterClient::ExchangePush(ShardClient& shard, uint32_t slot, Part& part) {
  // Once the backward pass has begun, all weights have arrived, so the session's view of them is
  // final.
  const ParameterRange range = shard.range();
  if (!part.feed.AwaitFinal(range.end - 1)) return absl::OkStatus();
  ShardPush pushed = {.header = {},
                      .values = slots_[slot].gradient.subspan(range.begin, range.size()),
                      .encoder = encoders_.Of(shard.shard(), slot),
                      .feed = &part.feed};
  {
    MutexLock lock(mutex_);
    pushed.header = session_.BeginExchange(shard.shard(), slot);
  }
  WeightsArrival weights = ArrivalOf(shard, slot);
  if (!changes_weights_) weights.StartFrom(pushed.header.generation, pushed.header.base);
  if (pushed.encoder != nullptr) pushed.encoder->Begin();
  ShardExchange exchange(shard, pushed, std::move(weights));
  const absl::Status status = Follow(shard, slot, exchange);
  MutexLock lock(mutex_);
  part.transfer.lanes[Value(shard.shard())] = exchange.times();
  return status;
}

absl::Status ParameterClient::Follow(const ShardClient& shard, uint32_t slot,
                                     ShardExchange& exchange) {
  absl::Status status;
  for (;;) {
    const absl::StatusOr<std::optional<ExchangeAnswer>> answer = exchange.Next();
    status = answer.status();
    if (!status.ok() || !answer->has_value()) break;
    bool are_revoked = false;
    {
      MutexLock lock(mutex_);
      const absl::StatusOr<bool> heeded = session_.OnAnswer(shard.shard(), **answer);
      status = heeded.status();
      if (!status.ok()) break;
      are_revoked = *heeded;
      changed_.NotifyAll();
    }
    WeightsListener* const listener = slots_[slot].listener;
    if (are_revoked && listener != nullptr) listener->RevokeWeights(shard.range());
  }
  MutexLock lock(mutex_);
  session_.OnExchangeOver(shard.shard(), status.ok());
  return shard.is_stopped() && !status.ok() ? absl::CancelledError("stopped") : status;
}

// These delegate to the session.

void ParameterClient::OnOrders(const Orders& orders) {
  MutexLock lock(mutex_);
  if (orders.work_ends) session_.core().OnWorkEnds();
  if (orders.steps > 0) session_.core().OnSteps(orders.steps);
}

void ParameterClient::Rest() {
  if (newest_ != nullptr) newest_->Rest();
}

WorkWish ParameterClient::wish() const {
  MutexLock lock(mutex_);
  return session_.wish();
}

ParameterClient::Done ParameterClient::done() const {
  MutexLock lock(mutex_);
  return {session_.core().progress(), session_.core().split_pushes()};
}

bool ParameterClient::goes_on() const {
  MutexLock lock(mutex_);
  return session_.core().goes_on();
}

Version ParameterClient::version(ShardId shard, uint32_t slot) const {
  MutexLock lock(mutex_);
  return session_.core().version(shard, slot);
}

std::vector<PushReply> ParameterClient::replies() const {
  MutexLock lock(mutex_);
  return session_.replies();
}

std::vector<ParameterClient::Transfer> ParameterClient::TakeTransfers() {
  MutexLock lock(mutex_);
  return std::exchange(transfers_, {});
}

}  // namespace slipstream

#include "server/aggregator/aggregator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/base/check.h"
#include "common/log/log.h"
#include "common/protocol/composite_push.h"
#include "server/core/run_stages.h"

namespace slipstream {
namespace {

Combiner::PartId PartOf(PushId push) { return Combiner::PartId{static_cast<uint64_t>(push)}; }

absl::Status NoMemory() { return absl::ResourceExhaustedError("there is no memory for the model"); }

void LogSentBack(const absl::StatusOr<UplinkAnswer>& answer) {
  const bool is_counted = answer.ok() && !IsRefusal(answer->push.outcome);
  if (is_counted) return;
  LogDebug("pushes were not combined",
           {{"reason", answer.ok() ? answer->push.message : answer.status().message()}});
}

}  // namespace

Aggregator::Aggregator(Options options, std::unique_ptr<Uplinks> uplinks)
    : options_(std::move(options)),
      workers_(Combiner::Options::For(options_.run, options_.group).workers),
      uplinks_(std::move(uplinks)),
      combiner_(Combiner::Options::For(options_.run, options_.group)),
      pulls_([this](const AggregatorPulls::Asked& pull) { return Fetch(pull); }) {}

Aggregator::~Aggregator() {
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    threads.swap(threads_);
  }
  uplinks_->Stop();
  work_came_.NotifyAll();
  for (std::thread& thread : threads) thread.join();
}

// Orders and status.

void Aggregator::OnOrders(const ServerOrders& orders) {
  bool is_news = false;
  bool lacks_memory = false;
  {
    MutexLock lock(mutex_);
    if (orders.number <= orders_.number) return;
    is_news = orders.phase != orders_.phase || orders.view.number != orders_.view.number;
    const bool names_model = orders.model.has_value() && !orders_.model.has_value();
    orders_ = orders;
    if (names_model) {
      const size_t values = orders.model->shard_map.range(options_.shard).size();
      options_.on_model(values);
      auto pool = std::make_shared<BufferPool>(values);
      // A composite needs two: its gradient, and the weights that answer it. With free lanes there
      // are two more: the weights that workers are given, and newer ones that arrive. More are made
      // while several composites are on their way.
      lacks_memory = !pool->Reserve(options_.run.worker.has_free_lanes() ? 4 : 2);
      if (!lacks_memory) pool_ = std::move(pool);
      if (pool_ != nullptr && shares_versions_) pool_->Share();
    }
    combiner_.OnView(orders.view);
    combiner_.SetPolicy(TraitsNow());
    WakeThread();
  }
  // Log without the lock, as writing the log may be slow.
  if (lacks_memory) LogError("there is no memory for the model: workers push to the shard");
  if (!is_news) return;
  LogInfo("orders", {{"phase", Name(orders.phase)},
                     {"view", Value(orders.view.number)},
                     {"members", orders.view.members.size()}});
}

void Aggregator::OnUpstream(const std::string& address) {
  MutexLock lock(mutex_);
  upstream_ = address;
}

v1::AggregatorStatus Aggregator::Report() {
  v1::AggregatorStatus status;
  status.set_group(options_.group);
  status.set_shard(Value(options_.shard));
  MutexLock lock(mutex_);
  status.set_parts(parts_);
  status.set_composites(composites_);
  status.set_sent_back(sent_back_);
  for (const WorkerId worker : combiner_.WaitingFor()) status.add_waiting_for(Value(worker));
  if (status.waiting_for_size() == 0) return status;
  status.set_waiting_seconds(absl::ToDoubleSeconds(now() - combiner_.WaitingSince()));
  return status;
}

bool Aggregator::MayBeMember(const Identity& identity) {
  MutexLock lock(mutex_);
  const Member* const member = orders_.view.Find(identity.worker);
  const bool is_fenced = member != nullptr && member->incarnation > identity.incarnation;
  return identity.run != 0 && identity.run == orders_.run && combiner_.IsOfGroup(identity.worker) &&
         !is_fenced;
}

bool Aggregator::IsRun(uint64_t run) {
  MutexLock lock(mutex_);
  return run != 0 && run == orders_.run;
}

ShardId Aggregator::AggregatorOf(WorkerId) const {
  return ShardId{options_.run.cluster.AggregatorNumber(options_.group, Value(options_.shard))};
}

// Pushes.

bool Aggregator::IsMember(const Identity& identity) const {
  const Member* const member = orders_.view.Find(identity.worker);
  return identity.run == orders_.run && member != nullptr &&
         member->incarnation == identity.incarnation && combiner_.IsOfGroup(identity.worker);
}

bool Aggregator::IsMember(const PushHeader& header) const {
  return !IsComposite(header) && IsMember(header.identity) &&
         header.slot < options_.run.training.pipeline_depth;
}

std::string_view Aggregator::FaultOf(const PushHeader& header) const {
  if (upstream_.empty()) return "the aggregator does not know its shard yet";
  if (pool_ == nullptr) return "the aggregator has no memory for the model";
  if (!IsMember(header)) return "its sender is no member of the aggregator's group";
  const ShardMap& map = orders_.model->shard_map;
  const size_t values = map.range(options_.shard).size();
  const bool fits = header.shard_map == map.fingerprint() && header.count == values;
  if (!fits) return "it does not fit the shard";
  if (header.kind != PushKind::kGradient || header.examples == 0) return "it is no gradient";
  if (header.examples >
      ExamplesMax(header.batches, options_.run.quantum(), options_.run.training.batch_size)) {
    return "it stands for too many examples";
  }
  const uint64_t pushes_max = uint64_t{workers_} * options_.run.training.pipeline_depth + 1;
  if (bytes_held_ / sizeof(float) / values >= pushes_max) return "the aggregator holds too many";
  return "";
}

PushReply Aggregator::SendBack(WorkerId worker, std::string_view why) {
  ++sent_back_;
  combiner_.OnAway(worker);
  WakeThread();  // The others need not wait for this worker.
  return NotCombined(why);
}

BegunPush Aggregator::BeginPush(const PushHeader& header) {
  MutexLock lock(mutex_);
  BegunPush begun = {.is_of_member = IsMember(header)};
  const std::string_view fault = FaultOf(header);
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

void Aggregator::AbandonPush(PushAssembly& push) {
  MutexLock lock(mutex_);
  bytes_held_ -= push.header().count * sizeof(float);
  combiner_.OnAway(push.header().identity.worker);
  WakeThread();
}

std::optional<Answer> Aggregator::FinishPush(PushAssembly push, WaitingCall* call) {
  const ShardMachine::PushFacts facts = push.Facts();
  const WorkerId worker = facts.header.identity.worker;
  MutexLock lock(mutex_);
  callers_[call] = worker;
  if (!facts.is_finite) {
    bytes_held_ -= facts.header.count * sizeof(float);
    return Answer{.push = SendBack(worker, "its values are not finite"), .weights = {}};
  }
  const PartId part = PartOf(facts.push);
  waiting_[part] = {.call = call,
                    .header = facts.header,
                    .checksum = facts.checksum,
                    .payload = push.TakePayload()};
  combiner_.OnPush(part, facts.header, now());
  WakeThread();
  return std::nullopt;
}

bool Aggregator::Cancel(WaitingCall* call) {
  if (pulls_.Cancel(call)) return true;
  Waiting gone;  // Freed once the lock is released.
  MutexLock lock(mutex_);
  const auto found = std::ranges::find_if(
      waiting_, [call](const auto& entry) { return entry.second.call == call; });
  if (found == waiting_.end()) return false;
  found->second.call = nullptr;
  if (combiner_.OnGone(found->first, now())) {
    gone = std::move(found->second);
    waiting_.erase(found);
    bytes_held_ -= gone.header.count * sizeof(float);
  }
  WakeThread();
  return true;
}

void Aggregator::OnCallGone(WaitingCall* call) {
  MutexLock lock(mutex_);
  const auto caller = callers_.find(call);
  if (caller == callers_.end()) return;
  const WorkerId worker = caller->second;
  callers_.erase(caller);
  const bool has_another =
      std::ranges::any_of(callers_, [worker](const auto& entry) { return entry.second == worker; });
  if (has_another) return;
  combiner_.OnAway(worker);
  WakeThread();
}

void Aggregator::ShareVersions() {
  std::shared_ptr<BufferPool> pool;
  {
    MutexLock lock(mutex_);
    shares_versions_ = true;
    pool = pool_;
  }
  // This gives memory back, which takes a while, so the lock is released.
  if (pool != nullptr) pool->Share();
}

// Pulls.

bool Aggregator::Serves(const PullRequest& request) const {
  const bool is_for_any = !request.trains && !request.exact.has_value() &&
                          !request.held.has_value() && !request.wants_seal && request.reader == 0;
  return is_for_any && request.identity.has_value() && IsMember(*request.identity) &&
         request.shard_map == orders_.model->shard_map.fingerprint();
}

absl::StatusOr<std::optional<Answer>> Aggregator::Pull(const PullRequest& request,
                                                       WaitingCall* call) {
  {
    MutexLock lock(mutex_);
    if (upstream_.empty() || pool_ == nullptr) {
      return absl::UnavailableError("the aggregator cannot ask its shard yet");
    }
    if (!Serves(request)) return absl::FailedPreconditionError("pull this from the shard");
  }
  return pulls_.Pull({*request.identity, request.min_version}, call);
}

void Aggregator::FinishPull(WaitingCall* call, const Reader&) { pulls_.Finish(call); }

WeightsSeal Aggregator::SealOf(const ServedWeights&) {
  PS_CHECK(false);
  return {};
}

absl::StatusOr<AggregatorPulls::Fetched> Aggregator::Fetch(const AggregatorPulls::Asked& pull) {
  std::shared_ptr<BufferPool> pool;
  {
    MutexLock lock(mutex_);
    pool = pool_;
  }
  std::shared_ptr<FloatBuffer> weights = pool->TryTake();
  if (weights == nullptr) return NoMemory();
  if (pull_uplink_ == nullptr) pull_uplink_ = MakeUplink();
  absl::StatusOr<WeightsHeader> header =
      pull_uplink_->Pull(pull.identity, pull.min_version, weights->values());
  if (!header.ok()) return header.status();
  return AggregatorPulls::Fetched{*std::move(header), std::move(weights)};
}

// Composites.

PolicyTraits Aggregator::TraitsNow() const {
  const std::vector<RunStage> stages =
      orders_.stages.empty() ? StagesOf(options_.run) : orders_.stages;
  return stages.at(orders_.stage).consistency.traits();
}

std::optional<Aggregator::Outgoing> Aggregator::TakeComposite() {
  std::optional<Combiner::Composite> taken = combiner_.TakeComposite(now());
  if (!taken.has_value()) return std::nullopt;
  Outgoing composite = {.id = taken->id, .has_uplink = ++under_way_ <= kUplinksMax, .pool = pool_};
  std::vector<const PushHeader*> headers;
  std::vector<uint64_t> checksums;
  for (const PartId part : taken->parts) {
    Waiting& push = waiting_.at(part);
    headers.push_back(&push.header);
    checksums.push_back(push.checksum);
    composite.bytes += push.payload.bytes;
    composite.gradients.push_back({.payload = std::exchange(push.payload, {}),
                                   .examples = push.header.examples,
                                   .clip = push.header.seal.clip});
  }
  composite.weighing = TraitsNow().weighing;
  composite.header =
      CompositeOf(headers, checksums, composite.weighing == PolicyTraits::Weighing::kExamples);
  sent_[taken->id].parts = std::move(taken->parts);
  return composite;
}

Aggregator::Replies Aggregator::OnAnswer(const Outgoing& composite,
                                         absl::StatusOr<UplinkAnswer> answer, Weights weights) {
  --under_way_;
  bytes_held_ -= composite.bytes;
  Sent& sent = sent_.at(composite.id);
  Combiner::Verdict verdict;
  verdict.is_counted = answer.ok() && !IsRefusal(answer->push.outcome);
  if (verdict.is_counted) {
    sent.counted = {composite.header, *std::move(answer), std::move(weights)};
    verdict.goes_on = GoesOn(*sent.counted);
    parts_ += sent.parts.size();
    ++composites_;
  } else {
    sent_back_ += sent.parts.size();
    // Without memory or a free uplink, the next push may be taken again.
    if (!answer.ok() && !absl::IsResourceExhausted(answer.status())) {
      sent.failure = absl::UnavailableError("the aggregator does not reach its shard");
    }
  }
  return TakeReplies(combiner_.OnAnswer(composite.id, std::move(verdict), now()));
}

Aggregator::Replies Aggregator::TakeReplies(const std::vector<CompositeId>& composites) {
  std::vector<Sent> answered;
  for (const CompositeId id : composites) answered.push_back(std::move(sent_.extract(id).mapped()));
  std::vector<const CountedComposite*> counted;
  for (const Sent& sent : answered) {
    if (sent.counted.has_value()) counted.push_back(&*sent.counted);
  }
  const CountedComposite* const newest = NewestOf(counted);
  Replies replies;
  for (const Sent& sent : answered) {
    for (size_t i = 0; i < sent.parts.size(); ++i) {
      const Waiting push = std::move(waiting_.extract(sent.parts[i]).mapped());
      if (push.call == nullptr) continue;
      absl::StatusOr<Answer> answer =
          Answer{.push = NotCombined("the shard did not count it with others"), .weights = {}};
      if (sent.counted.has_value()) answer = AnswerOf(push.header, *sent.counted, i, newest);
      if (!sent.failure.ok()) answer = sent.failure;
      replies.push_back({push.call, std::move(answer)});
    }
  }
  return replies;
}

void Aggregator::Deliver(Replies replies) {
  for (Reply& reply : replies) {
    reply.answer.ok() ? reply.call->OnAnswer(*std::move(reply.answer))
                      : reply.call->OnRefused(reply.answer.status());
  }
}

// The threads.

void Aggregator::WakeThread() {
  if (is_stopping_) return;
  if (idle_threads_ > 0) {
    work_came_.NotifyOne();
  } else if (threads_.size() < kThreadsMax) {
    threads_.emplace_back([this] { RunThread(); });
  }
}

void Aggregator::AwaitWork() {
  using Clock = std::chrono::steady_clock;
  const absl::Time look = combiner_.NextLook();
  ++idle_threads_;
  if (look == absl::InfiniteFuture()) {
    work_came_.Wait(mutex_);
  } else {
    work_came_.WaitUntil(mutex_, Clock::now() + absl::ToChronoNanoseconds(look - now()));
  }
  --idle_threads_;
}

void Aggregator::RunThread() {
  std::unique_ptr<Uplink> uplink;  // Made with the first composite.
  for (;;) {
    Replies late;
    std::optional<Outgoing> composite;
    {
      MutexLock lock(mutex_);
      while (!is_stopping_) {
        late = TakeReplies(combiner_.TakeHeld(now()));
        composite = TakeComposite();
        if (composite.has_value() || !late.empty()) break;
        AwaitWork();
      }
      if (is_stopping_) return;
      // There may be more, and while this thread is busy another one has to watch the time.
      WakeThread();
    }
    Deliver(std::move(late));
    if (composite.has_value()) Send(*std::move(composite), uplink);
  }
}

std::unique_ptr<Uplink> Aggregator::MakeUplink() {
  std::string upstream;
  uint64_t run = 0;
  ShardMap map;
  {
    MutexLock lock(mutex_);
    upstream = upstream_;
    run = orders_.run;
    map = orders_.model->shard_map;
  }
  return uplinks_->Make(upstream, run, map);
}

absl::StatusOr<UplinkAnswer> Aggregator::Exchange(Outgoing& composite,
                                                  std::shared_ptr<FloatBuffer>& weights,
                                                  std::unique_ptr<Uplink>& uplink) {
  const std::shared_ptr<FloatBuffer> values = composite.pool->TryTake();
  if (values == nullptr) return NoMemory();
  std::span<float> arrival;
  if (composite.header.pull) {
    weights = composite.pool->TryTake();
    if (weights == nullptr) return NoMemory();
    arrival = weights->values();
  }
  CombineValues(composite.gradients, composite.weighing, values->values());
  composite.gradients.clear();
  if (uplink == nullptr) uplink = MakeUplink();
  absl::StatusOr<UplinkAnswer> answer =
      uplink->Exchange(composite.header, values->values(), arrival);
  NoteReached(answer.status());
  return answer;
}

void Aggregator::Send(Outgoing composite, std::unique_ptr<Uplink>& uplink) {
  absl::StatusOr<UplinkAnswer> answer = absl::ResourceExhaustedError("no uplink is free");
  std::shared_ptr<FloatBuffer> weights;
  if (composite.has_uplink) answer = Exchange(composite, weights, uplink);
  LogSentBack(answer);
  Replies replies;
  {
    MutexLock lock(mutex_);
    replies = OnAnswer(composite, std::move(answer), std::move(weights));
  }
  Deliver(std::move(replies));
}

void Aggregator::NoteReached(const absl::Status& status) {
  {
    MutexLock lock(mutex_);
    if (is_stopping_ || std::exchange(is_reached_, status.ok()) == status.ok()) return;
  }
  if (status.ok()) {
    LogInfo("the shard is reached again");
  } else {
    LogWarning("the shard is not reached: workers go there themselves",
               {{"reason", status.message()}});
  }
}

}  // namespace slipstream

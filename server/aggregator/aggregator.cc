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

absl::Status NoMemory() { return absl::ResourceExhaustedError("there is no memory for the model"); }

void LogSentBack(const absl::StatusOr<ExchangeAnswer>& answer) {
  const bool is_counted = answer.ok() && !IsRefusal(answer->push.outcome);
  if (is_counted) return;
  LogDebug("pushes were not combined",
           {{"reason", answer.ok() ? answer->push.message : answer.status().message()}});
}

}  // namespace

Aggregator::Aggregator(Options options, std::unique_ptr<Uplinks> uplinks)
    : options_(std::move(options)),
      uplinks_(std::move(uplinks)),
      group_({.run = options_.run,
              .shard = options_.shard,
              .group = options_.group,
              .composites_max = kUplinksMax}),
      pulls_([this](const GroupPulls::Asked& pull) { return Fetch(pull); }) {}

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
    const ServerOrders& known = group_.orders();
    if (orders.number <= known.number) return;
    is_news = orders.phase != known.phase || orders.view.number != known.view.number;
    const bool names_model = orders.model.has_value() && !known.model.has_value();
    group_.OnOrders(orders);
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
  if (!address.empty()) uplinks_->Follow(address);
  MutexLock lock(mutex_);
  upstream_ = address;
}

v1::AggregatorStatus Aggregator::Report() {
  v1::AggregatorStatus status;
  MutexLock lock(mutex_);
  group_.Describe(status, now());
  return status;
}

bool Aggregator::MayBeMember(const Identity& identity) {
  MutexLock lock(mutex_);
  return group_.MayBeMember(identity);
}

uint64_t Aggregator::RunNumber() {
  MutexLock lock(mutex_);
  return group_.orders().run;
}

ShardId Aggregator::AggregatorOf(WorkerId) const {
  return ShardId{options_.run.cluster.AggregatorNumber(options_.group, Value(options_.shard))};
}

// Pushes.

std::string_view Aggregator::Lack() const {
  if (upstream_.empty()) return "the aggregator does not know its shard yet";
  return pool_ == nullptr ? "the aggregator has no memory for the model" : "";
}

BegunPush Aggregator::BeginPush(const PushHeader& header) {
  MutexLock lock(mutex_);
  BegunPush begun = group_.BeginPush(header, Lack());
  if (begun.refusal.has_value()) WakeThread();  // The others need not wait for this worker.
  return begun;
}

void Aggregator::AbandonPush(PushAssembly& push) {
  MutexLock lock(mutex_);
  group_.AbandonPush(push.header());
  WakeThread();
}

std::optional<Answer> Aggregator::FinishPush(PushAssembly push, WaitingCall* call) {
  MutexLock lock(mutex_);
  std::optional<PushReply> sent_back = group_.FinishPush(call->name(), push, now());
  WakeThread();
  if (!sent_back.has_value()) return std::nullopt;
  return Answer{.push = *std::move(sent_back)};
}

bool Aggregator::Cancel(WaitingCall* call) {
  if (pulls_.Cancel(call)) return true;
  MutexLock lock(mutex_);
  if (!group_.Cancel(call->name(), now())) return false;
  WakeThread();
  return true;
}

void Aggregator::OnCallGone(WaitingCall* call) {
  MutexLock lock(mutex_);
  group_.OnCallGone(call->name());
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

std::shared_ptr<BufferPool> Aggregator::Pool() {
  MutexLock lock(mutex_);
  return pool_;
}

// Pulls.

bool Aggregator::Serves(const PullRequest& request) const {
  const bool is_for_any = !request.trains && !request.exact.has_value() &&
                          !request.held.has_value() && !request.wants_trailer &&
                          request.reader == 0;
  return is_for_any && request.identity.has_value() && group_.IsMember(*request.identity) &&
         request.shard_map == group_.orders().model->shard_map.fingerprint();
}

std::optional<Answer> Aggregator::Pull(const PullRequest& request, WaitingCall* call) {
  {
    MutexLock lock(mutex_);
    absl::Status refusal;
    if (const std::string_view lack = Lack(); !lack.empty()) {
      refusal = absl::UnavailableError(std::string(lack));
    } else if (!Serves(request)) {
      refusal = absl::FailedPreconditionError("pull this from the shard");
    }
    if (!refusal.ok()) return Answer{.refusal = std::move(refusal)};
  }
  return pulls_.Pull({*request.identity, request.min_version, request.min_generation}, call);
}

void Aggregator::FinishPull(WaitingCall* call, const Reader&) { pulls_.Finish(call); }

absl::StatusOr<GroupPulls::Fetched> Aggregator::Fetch(const GroupPulls::Asked& pull) {
  std::shared_ptr<FloatBuffer> weights = Pool()->TryTake();
  if (weights == nullptr) return NoMemory();
  if (pull_uplink_ == nullptr) pull_uplink_ = MakeUplink();
  absl::StatusOr<WeightsHeader> header =
      pull_uplink_->Pull(pull.identity, pull.min_version, pull.min_generation, weights->values());
  if (!header.ok()) return header.status();
  return GroupPulls::Fetched{*std::move(header), std::move(weights)};
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
  const absl::Time look = group_.NextLook();
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
    Answers late;
    std::optional<PushGroup::Outgoing> composite;
    {
      MutexLock lock(mutex_);
      while (!is_stopping_) {
        late = group_.TakeHeld(now());
        composite = group_.Take(now());
        if (composite.has_value() || !late.empty()) break;
        AwaitWork();
      }
      if (is_stopping_) return;
      // There may be more, and while this thread is busy another one has to watch the time.
      WakeThread();
    }
    Give(std::move(late));
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
    run = group_.orders().run;
    map = group_.orders().model->shard_map;
  }
  return uplinks_->Make(upstream, run, map);
}

// Composites.

absl::StatusOr<ExchangeAnswer> Aggregator::Exchange(PushGroup::Outgoing& composite,
                                                    std::shared_ptr<FloatBuffer>& weights,
                                                    std::unique_ptr<Uplink>& uplink) {
  const std::shared_ptr<BufferPool> pool = Pool();
  const std::shared_ptr<FloatBuffer> values = pool->TryTake();
  if (values == nullptr) return NoMemory();
  std::span<float> arrival;
  if (composite.header.pull) {
    weights = pool->TryTake();
    if (weights == nullptr) return NoMemory();
    arrival = weights->values();
  }
  CombineValues(composite.gradients, composite.weighing, values->values());
  composite.gradients.clear();
  if (uplink == nullptr) uplink = MakeUplink();
  absl::StatusOr<ExchangeAnswer> answer =
      uplink->Exchange(composite.header, values->values(), arrival);
  NoteReached(answer.status());
  return answer;
}

void Aggregator::Send(PushGroup::Outgoing composite, std::unique_ptr<Uplink>& uplink) {
  absl::StatusOr<ExchangeAnswer> answer = absl::ResourceExhaustedError("no uplink is free");
  std::shared_ptr<FloatBuffer> weights;
  if (composite.may_leave) answer = Exchange(composite, weights, uplink);
  LogSentBack(answer);
  Answers answers;
  {
    MutexLock lock(mutex_);
    answers = group_.OnAnswer(composite.id, std::move(answer), std::move(weights), now());
  }
  Give(std::move(answers));
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

#include "worker/training/heartbeat.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "absl/time/clock.h"
#include "common/process/exit_code.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "worker/core/heartbeat_times.h"
#include "worker/training/heartbeat_message.h"

namespace slipstream {
namespace {

// How long a heartbeat waits for a reply. The coordinator sends news right after a heartbeat; news
// that comes later is read with the next one. While it waits, this thread would help to move
// gradient bytes, which would delay them, so the wait is short.
constexpr absl::Duration kNewsPatience = absl::Milliseconds(50);

// How often a heartbeat demands an answer, so that a coordinator without news shows that it is
// there.
constexpr absl::Duration kAnswerInterval = absl::Seconds(10);

}  // namespace

Heartbeat::Heartbeat(const CoordinatorClient& coordinator, const Identity& identity,
                     absl::Duration interval, const StepFigures& figures, ServerAddresses& servers,
                     Interruption& interruption, bool tells_speed)
    : identity_(identity),
      interval_(interval),
      figures_(figures),
      servers_(servers),
      interruption_(interruption),
      tells_speed_(tells_speed),
      stream_(coordinator),
      thread_([this] { Run(); }) {}

Heartbeat::~Heartbeat() {
  Close();
  thread_.join();
}

void Heartbeat::OnMeasured(uint64_t evaluation, uint64_t examples) {
  MutexLock lock(mutex_);
  evaluation_ = evaluation;
  measured_ = examples;
}

void Heartbeat::Close() {
  MutexLock lock(mutex_);
  is_closing_ = true;
  changed_.NotifyAll();
}

void Heartbeat::Run() {
  while (Pause()) {
    const absl::Status status = Beat();
    if (status.ok()) continue;
    MutexLock lock(mutex_);
    if (!is_closing_) interruption_.Fail(status);
    changed_.NotifyAll();
    return;
  }
}

bool Heartbeat::Pause() {
  const absl::Time begin = absl::Now();
  const auto steady_begin = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  for (;;) {
    if (is_closing_) return false;
    const absl::Duration interval = is_hurried_ ? HurriedInterval(interval_) : interval_;
    const absl::Duration pause = NextHeartbeat(begin, interval, identity_.worker) - begin;
    if (!changed_.WaitUntil(mutex_, steady_begin + absl::ToChronoNanoseconds(pause))) {
      return !is_closing_;
    }
  }
}

absl::Status Heartbeat::Beat() {
  const StepFigures::Figures figures = figures_.Read(absl::Now());
  v1::HeartbeatRequest request = HeartbeatOf(figures, tells_speed_);
  *request.mutable_identity() = ToWire(identity_);
  {
    MutexLock lock(mutex_);
    request.set_evaluation(evaluation_);
    request.set_measured_examples(measured_);
    request.set_ends_training(ends_training_);
  }
  const absl::StatusOr<std::optional<v1::HeartbeatReply>> news = Tell(request);
  if (news.ok() && news->has_value()) Note(**news);
  if (news.ok() && request.ends_training()) {
    MutexLock lock(mutex_);
    has_told_of_end_ = true;
    changed_.NotifyAll();
  }
  return news.status();
}

absl::StatusOr<std::optional<v1::HeartbeatReply>> Heartbeat::Tell(v1::HeartbeatRequest& request) {
  const auto now = std::chrono::steady_clock::now();
  if (now < answer_due_ && !request.ends_training()) return stream_.Tell(request, kNewsPatience);
  answer_due_ = now + absl::ToChronoNanoseconds(kAnswerInterval);
  request.set_wants_answer(true);
  return stream_.Ask(request, absl::ZeroDuration());
}

void Heartbeat::Note(const v1::HeartbeatReply& reply) {
  servers_.Note({reply.servers().begin(), reply.servers().end()});
  MutexLock lock(mutex_);
  news_.Note(reply);
  if (news_.phase == Phase::kFailed) {
    interruption_.Fail(RunFailedError("the run failed: " + news_.failure));
  }
  changed_.NotifyAll();
}

template <typename Condition>
absl::Status Heartbeat::AwaitUntil(Condition condition) {
  while (!condition()) {
    if (interruption_.interrupted()) return absl::CancelledError("stopped");
    // An interruption does not wake this wait, but 100 ms is soon enough.
    changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(100));
  }
  return absl::OkStatus();
}

absl::Status Heartbeat::AwaitEnd() {
  return AwaitEndOrOrder(std::numeric_limits<uint64_t>::max()).status();
}

absl::StatusOr<bool> Heartbeat::AwaitEndOrOrder(uint64_t newer_than) {
  MutexLock lock(mutex_);
  is_hurried_ = true;
  changed_.NotifyAll();
  const absl::Status status = AwaitUntil([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return news_.phase == Phase::kFinished || news_.HasOrder(newer_than);
  });
  if (!status.ok()) return status;
  return news_.phase == Phase::kFinished;
}

absl::Status Heartbeat::EndTraining() {
  MutexLock lock(mutex_);
  ends_training_ = true;
  is_hurried_ = true;
  changed_.NotifyAll();
  return AwaitUntil([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return has_told_of_end_; });
}

GradientClient::Orders Heartbeat::orders() const {
  MutexLock lock(mutex_);
  return {.work_ends = news_.work_ends, .steps = news_.steps};
}

bool Heartbeat::HasOrder(uint64_t newer_than) const {
  MutexLock lock(mutex_);
  return news_.HasOrder(newer_than);
}

std::optional<Heartbeat::Order> Heartbeat::AwaitOrder(uint64_t newer_than) {
  MutexLock lock(mutex_);
  while (!is_closing_ && !news_.HasOrder(newer_than)) changed_.Wait(mutex_);
  if (is_closing_) return std::nullopt;
  return news_.order;
}

}  // namespace slipstream

#include "worker/training/unit_fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/wire/shard_wire.h"
#include "worker/client/work_progress.h"

namespace slipstream {
namespace {

// How long a request waits for a unit. It is short, because each request also reports progress.
constexpr absl::Duration kWait = absl::Milliseconds(100);

}  // namespace

UnitFetcher::UnitFetcher(const CoordinatorClient& coordinator, const Identity& identity,
                         const StepFigures& figures, Interruption& interruption)
    : identity_(identity),
      figures_(figures),
      interruption_(interruption),
      stream_(coordinator),
      thread_([this] { Run(); }) {}

UnitFetcher::~UnitFetcher() {
  {
    MutexLock lock(mutex_);
    is_closing_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void UnitFetcher::Ask(Life life) {
  MutexLock lock(mutex_);
  if (is_asked_ || result_) return;
  life_ = life;
  is_asked_ = true;
  changed_.NotifyAll();
}

std::optional<UnitFetcher::Result> UnitFetcher::Take() {
  MutexLock lock(mutex_);
  return std::exchange(result_, std::nullopt);
}

UnitFetcher::Result UnitFetcher::Await() {
  MutexLock lock(mutex_);
  PS_CHECK(is_asked_ || result_);
  while (!result_) changed_.Wait(mutex_);
  return *std::exchange(result_, std::nullopt);
}

void UnitFetcher::Run() {
  for (;;) {
    Life life{};
    {
      MutexLock lock(mutex_);
      while (!is_closing_ && !is_asked_) changed_.Wait(mutex_);
      if (is_closing_) return;
      life = life_;
    }
    Result result = Fetch(life);
    MutexLock lock(mutex_);
    result_ = std::move(result);
    is_asked_ = false;
    changed_.NotifyAll();
  }
}

bool UnitFetcher::IsClosing() {
  MutexLock lock(mutex_);
  return is_closing_;
}

UnitFetcher::Result UnitFetcher::Fetch(Life life) {
  while (!interruption_.interrupted() && !IsClosing()) {
    v1::GetWorkRequest request;
    *request.mutable_identity() = ToWire(identity_);
    *request.mutable_progress() = ToWire(figures_.Read(absl::Now()).progress);
    request.set_newest_unit(newest_unit_);
    request.set_stage(stage_);
    request.set_life(Value(life));
    request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kWait)));
    const absl::StatusOr<v1::GetWorkReply> reply = stream_.Ask(request, kWait);
    if (!reply.ok()) return reply.status();
    if (reply->state() == v1::GetWorkReply::FINISHED) return NoMoreUnits{};
    if (reply->state() == v1::GetWorkReply::RETURNED && reply->life() > Value(life)) {
      return Returned{Life{reply->life()}};
    }
    if (reply->state() == v1::GetWorkReply::STAGE && reply->stage() > stage_) {
      return TakeStage(*reply);
    }
    if (reply->state() != v1::GetWorkReply::UNIT) continue;
    if (reply->batches() == 0) return absl::InternalError("the coordinator sent an empty unit");
    newest_unit_ = reply->unit();
    return WorkUnit{reply->unit(), reply->first_batch(), reply->batches()};
  }
  return absl::CancelledError("stopped");
}

UnitFetcher::Result UnitFetcher::TakeStage(const v1::GetWorkReply& reply) {
  const auto row = std::ranges::find(kPolicyRows, reply.policy(), &PolicyRow::name);
  if (row == kPolicyRows.end() || reply.since_stage() > reply.stage()) {
    return absl::InternalError(
        fmt::format("the coordinator names stage {}, since {}, of policy \"{}\", which this worker "
                    "does not know",
                    reply.stage(), reply.since_stage(), reply.policy()));
  }
  stage_ = reply.stage();
  return NextStage{.number = stage_, .since = reply.since_stage(), .policy = row->kind};
}

}  // namespace slipstream

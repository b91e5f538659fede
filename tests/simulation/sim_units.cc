#include "tests/simulation/sim_units.h"

#include <utility>

#include "common/wire/shard_wire.h"
#include "proto/coordinator.pb.h"
#include "worker/client/work_progress.h"

namespace slipstream {
namespace {

// The same value as in UnitFetcher.
constexpr uint32_t kWaitMs = 100;

}  // namespace

SimUnits::SimUnits(CoordinatorCalls& calls, const Identity& identity,
                   const std::vector<UnitProgress>& progress,
                   std::function<void(const absl::Status&)> on_result)
    : calls_(calls), identity_(identity), progress_(progress), on_result_(std::move(on_result)) {}

void SimUnits::Ask(Life life) {
  if (is_asking_ || result_.has_value()) return;
  life_ = life;
  is_asking_ = true;
  Fetch();
}

std::optional<SimUnits::Result> SimUnits::Take() { return std::exchange(result_, std::nullopt); }

void SimUnits::Fetch() {
  v1::GetWorkRequest request;
  *request.mutable_identity() = ToWire(identity_);
  *request.mutable_progress() = ToWire(progress_);
  request.set_newest_unit(newest_);
  request.set_stage(stage_);
  request.set_life(Value(life_));
  request.set_wait_ms(kWaitMs);
  calls_.Call<v1::GetWorkReply>(
      Method::kGetWork, request, [this](const absl::StatusOr<v1::GetWorkReply>& reply) {
        if (!reply.ok()) return on_result_(reply.status());
        if (reply->state() == v1::GetWorkReply::WAIT) return Fetch();
        is_asking_ = false;
        result_.emplace();
        if (reply->state() == v1::GetWorkReply::UNIT) {
          newest_ = reply->unit();
          result_ = WorkUnit{reply->unit(), reply->first_batch(), reply->batches()};
        } else if (reply->state() == v1::GetWorkReply::STAGE) {
          stage_ = reply->stage();
          result_ = NextStage{stage_, reply->since_stage()};
        } else if (reply->state() == v1::GetWorkReply::RETURNED) {
          result_ = Returned{Life{reply->life()}};
        }
        on_result_(absl::OkStatus());
      });
}

}  // namespace slipstream

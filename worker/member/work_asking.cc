#include "worker/member/work_asking.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/settings/policy_rows.h"
#include "common/wire/shard_wire.h"
#include "worker/member/work_progress.h"

namespace slipstream {

v1::GetWorkRequest WorkAsking::Request(const std::vector<UnitProgress>& progress,
                                       const WorkWish& wish) const {
  v1::GetWorkRequest request;
  *request.mutable_identity() = ToWire(identity_);
  *request.mutable_progress() = ToWire(progress);
  request.set_newest_unit(newest_unit_);
  request.set_stage(stage_);
  request.set_generation(Value(wish.generation));
  request.set_batches_wanted(wish.batches);
  request.set_wait_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kWait)));
  return request;
}

absl::StatusOr<std::optional<WorkNews>> WorkAsking::OnReply(const v1::GetWorkReply& reply,
                                                            Generation generation) {
  switch (reply.state()) {
    case v1::GetWorkReply::FINISHED:
      return NoMoreUnits{};
    case v1::GetWorkReply::RETURNED:
      if (reply.generation() <= Value(generation)) return std::nullopt;
      return ShardsReturned{Generation{reply.generation()}};
    case v1::GetWorkReply::STAGE: {
      if (reply.stage() <= stage_) return std::nullopt;
      absl::StatusOr<NextStage> next = TakeStage(reply);
      if (!next.ok()) return next.status();
      return *std::move(next);
    }
    case v1::GetWorkReply::UNIT:
      if (reply.batches() == 0) return absl::InternalError("the coordinator sent an empty unit");
      newest_unit_ = reply.unit();
      return WorkUnit{.id = reply.unit(),
                      .first = reply.first_batch(),
                      .batches = reply.batches(),
                      .came_late = std::exchange(has_waited_, false)};
    default:
      has_waited_ = true;
      return std::nullopt;
  }
}

absl::StatusOr<NextStage> WorkAsking::TakeStage(const v1::GetWorkReply& reply) {
  const auto row = std::ranges::find(kPolicyRows, reply.policy(), &PolicyRow::name);
  if (row == kPolicyRows.end() || reply.since_stage() > reply.stage()) {
    return absl::InternalError(
        fmt::format("the coordinator names stage {}, since {}, of policy \"{}\", which this worker "
                    "does not know",
                    reply.stage(), reply.since_stage(), reply.policy()));
  }
  const bool was_in_step = consistency_.traits().in_step;
  ConsistencySpec consistency = consistency_;
  consistency.policy = row->kind;
  const PolicyTraits traits = consistency.traits();
  const bool goes_on = reply.since_stage() <= stage_;
  const bool is_possible =
      goes_on ? !was_in_step && !traits.in_step : !traits.in_step || slots_ == 1;
  if (!is_possible) {
    return absl::InternalError(
        fmt::format("the coordinator names {} as stage {}, which this worker cannot go over to",
                    row->name, reply.stage()));
  }
  consistency_ = consistency;
  stage_ = reply.stage();
  return NextStage{.stage = {.number = stage_,
                             .since = reply.since_stage(),
                             .in_step = traits.in_step,
                             .releases_unused = traits.waits_for_members},
                   .policy = std::string(row->name)};
}

}  // namespace slipstream

// The part of SimWorker beside its training: heartbeats and evaluations.

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "tests/simulation/sim_worker.h"

namespace slipstream {
namespace {

// As of Heartbeat.
constexpr absl::Duration kHeartbeatMax = absl::Milliseconds(500);
constexpr absl::Duration kHeartbeatHurried = absl::Milliseconds(100);

}  // namespace

// Heartbeats.

void SimWorker::BeatLater() {
  absl::Duration interval = std::min(lease_ / 3, kHeartbeatMax);
  if (is_hurried_) interval = std::min(interval, kHeartbeatHurried);
  world_.network.AtProcess(process_, world_.queue.now() + interval, [this] { Beat(); });
}

void SimWorker::Beat() {
  if (is_leaving_) return;
  v1::HeartbeatRequest request;
  *request.mutable_identity() = ToWire(identity_);
  for (const UnitProgress& unit : progress_) {
    v1::WorkProgress& progress = *request.add_progress();
    progress.set_unit(unit.id);
    progress.set_batches_done(unit.batches_done);
  }
  request.set_done_pushing(is_hurried_);
  Call<v1::HeartbeatReply>(Method::kHeartbeat, request,
                           [this](const absl::StatusOr<v1::HeartbeatReply>& reply) {
                             if (is_leaving_) return;
                             if (!reply.ok()) return Fail(reply.status());
                             OnBeat(*reply);
                           });
}

void SimWorker::OnBeat(const v1::HeartbeatReply& reply) {
  const absl::StatusOr<Phase> phase = FromWire(reply.phase());
  PS_CHECK(phase.ok());
  phase_ = *phase;
  work_ends_ = work_ends_ || reply.work_ends();
  if (phase_ == Phase::kFailed) {
    return Fail(absl::AbortedError("the run failed: " + reply.failure()));
  }
  if (phase_ == Phase::kFinished && is_hurried_) return Leave(absl::OkStatus());
  const bool is_new = reply.evaluation() > last_evaluation_ && map_.has_value();
  if (is_new && !reading_.has_value()) Evaluate(reply.evaluation(), reply.evaluation_final());
  BeatLater();
}

// Evaluation.

void SimWorker::Evaluate(uint64_t order, bool is_final) {
  reading_.emplace();
  reading_->order = order;
  reading_->is_final = is_final;
  if (reading_lanes_.empty()) reading_lanes_ = MakeLanes();
  reading_->weights.resize(map_->parameters());
  reading_->versions.resize(map_->shards());
  constexpr int kTriesMax = 5;
  ReadWeights(AllShards(), Version{}, kTriesMax);
}

void SimWorker::ReadWeights(const std::vector<ShardId>& shards, Version min_version,
                            int tries_left) {
  reading_->lanes_busy = shards.size();
  for (const ShardId shard : shards) {
    const PullRequest request = {identity_, map_->fingerprint(), min_version, false, 0};
    reading_lanes_[Value(shard)]->Pull(
        request, Part(reading_->weights, shard),
        [this, shard, tries_left](const absl::StatusOr<ShardLane::Answer>& answer) {
          OnRead(shard, answer, tries_left);
        });
  }
}

void SimWorker::OnRead(ShardId shard, const absl::StatusOr<ShardLane::Answer>& answer,
                       int tries_left) {
  if (is_leaving_) return;
  if (!answer.ok()) return Fail(answer.status());
  NoteReceived(shard, *answer->weights, Part(reading_->weights, shard));
  reading_->versions[Value(shard)] = answer->weights->version;
  if (--reading_->lanes_busy == 0) ReadOn(tries_left);
}

void SimWorker::ReadOn(int tries_left) {
  const Version newest = *std::ranges::max_element(reading_->versions);
  std::vector<ShardId> behind;
  for (const ShardId shard : AllShards()) {
    if (reading_->versions[Value(shard)] < newest) behind.push_back(shard);
  }
  const bool reads_on = world_.scenario.has_rounds() && !behind.empty() && tries_left > 0;
  if (!reads_on) return Report();
  // From within a lane that has only just finished: it may be one of those asked again.
  world_.network.AtProcess(process_, world_.queue.now(), [this, behind, newest, tries_left] {
    if (!is_leaving_) ReadWeights(behind, newest, tries_left - 1);
  });
}

void SimWorker::Report() {
  v1::ReportRequest request;
  *request.mutable_identity() = ToWire(identity_);
  request.set_evaluation(reading_->order);
  v1::EvaluationStatus& result = *request.mutable_result();
  for (const Version version : reading_->versions) result.add_versions(Value(version));
  result.set_test_loss(1.0);
  if (reading_->is_final) request.set_weights_sha256(std::string(64, 'a'));
  Call<v1::ReportReply>(
      Method::kReport, request, [this](const absl::StatusOr<v1::ReportReply>& reply) {
        if (is_leaving_) return;
        if (!reply.ok() && !absl::IsFailedPrecondition(reply.status())) return Fail(reply.status());
        if (reply.ok() && reading_->is_final) {
          world_.history.Add(FinalReported{reading_->versions, reading_->weights});
        }
        last_evaluation_ = reading_->order;
        reading_.reset();
      });
}

}  // namespace slipstream

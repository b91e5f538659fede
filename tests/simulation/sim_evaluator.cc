#include "tests/simulation/sim_evaluator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/wire/shard_wire.h"
#include "proto/coordinator.pb.h"

namespace slipstream {
namespace {

// The same value as in Evaluator.
constexpr int kTriesMax = 5;

}  // namespace

SimEvaluator::SimEvaluator(const SimWorld& world, const std::shared_ptr<Process>& process,
                           const WorkerShards& shards, CoordinatorCalls& calls,
                           std::function<void(const absl::Status&)> on_failure)
    : world_(world),
      process_(process),
      shards_(shards),
      calls_(calls),
      on_failure_(std::move(on_failure)),
      lanes_(shards.MakeLanes()) {}

void SimEvaluator::Close() {
  is_closed_ = true;
  for (const auto& lane : lanes_) lane->Close();
}

void SimEvaluator::OnOrder(uint64_t order, bool is_final) {
  if (order <= last_ || reading_.has_value()) return;
  reading_ = Reading();
  reading_->order = order;
  reading_->is_final = is_final;
  reading_->tries_left = kTriesMax;
  reading_->weights.resize(shards_.map().parameters());
  reading_->versions.resize(shards_.map().shards());
  Read(shards_.all(), {});
}

void SimEvaluator::Read(const std::vector<ShardId>& shards, const LifeVersion& least) {
  reading_->lanes_busy = shards.size();
  for (const ShardId shard : shards) {
    const PullRequest request = {.identity = shards_.identity(),
                                 .shard_map = shards_.map().fingerprint(),
                                 .min_version = least.version,
                                 .min_life = least.life};
    lanes_[Value(shard)]->Pull(
        request, shards_.Part(reading_->weights, shard),
        [this, shard](const absl::StatusOr<std::optional<WeightsHeader>>& weights) {
          OnRead(shard, weights);
        });
  }
}

void SimEvaluator::OnRead(ShardId shard,
                          const absl::StatusOr<std::optional<WeightsHeader>>& weights) {
  if (!weights.ok()) return on_failure_(weights.status());
  shards_.NoteReceived(shard, **weights, reading_->weights);
  reading_->versions[Value(shard)] = {(*weights)->life, (*weights)->version};
  reading_->stage = std::max(reading_->stage, (*weights)->stage);
  if (--reading_->lanes_busy == 0) ReadOn();
}

void SimEvaluator::ReadOn() {
  const LifeVersion newest = *std::ranges::max_element(reading_->versions);
  std::vector<ShardId> behind;
  for (const ShardId shard : shards_.all()) {
    if (reading_->versions[Value(shard)] < newest) behind.push_back(shard);
  }
  const bool is_in_step = reading_->stage < world_.scenario.stages_in_rounds();
  const bool reads_on = is_in_step && !behind.empty() && reading_->tries_left > 0;
  if (!reads_on) return Report();
  --reading_->tries_left;
  // This runs inside a lane's callback, and that lane may be needed again, so read in a later
  // event.
  world_.network.AtProcess(process_, world_.queue.now(), [this, behind, newest] {
    if (!is_closed_) Read(behind, newest);
  });
}

void SimEvaluator::Report() {
  v1::ReportRequest request;
  *request.mutable_identity() = ToWire(shards_.identity());
  request.set_evaluation(reading_->order);
  v1::EvaluationStatus& result = *request.mutable_result();
  for (const LifeVersion& one : reading_->versions) result.add_versions(Value(one.version));
  result.set_test_loss(1.0);
  if (world_.scenario.run.training.target_accuracy > 0) {
    // The made-up accuracy grows with training, as a real one does.
    const auto done = static_cast<double>(Value(reading_->versions.front().version));
    result.set_test_accuracy(std::min(1.0, done / world_.scenario.batches_total()));
  }
  if (reading_->is_final) request.set_weights_sha256(std::string(64, 'a'));
  calls_.Call<v1::ReportReply>(
      Method::kReport, request, [this](const absl::StatusOr<v1::ReportReply>& reply) {
        if (!reply.ok() && !absl::IsFailedPrecondition(reply.status())) {
          return on_failure_(reply.status());
        }
        if (reply.ok() && reading_->is_final) {
          world_.history.Add(FinalReported{reading_->versions, reading_->weights});
        }
        last_ = reading_->order;
        reading_.reset();
      });
}

}  // namespace slipstream

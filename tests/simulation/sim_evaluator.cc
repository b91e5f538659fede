#include "tests/simulation/sim_evaluator.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/wire/shard_wire.h"
#include "proto/coordinator.pb.h"

namespace slipstream {

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

void SimEvaluator::OnOrder(const HeartbeatNews::Order& order) {
  if (order.number <= last_ || evaluation_.has_value()) return;
  evaluation_ = {.order = order,
                 .reading = WeightsReading(shards_.identity(), shards_.map().fingerprint(),
                                           shards_.map().shards()),
                 .weights = std::vector<float>(shards_.map().parameters())};
  Read();
}

void SimEvaluator::Read() {
  const std::vector<ShardId> due = evaluation_->reading.due();
  if (due.empty()) return Report();
  evaluation_->lanes_busy = due.size();
  for (const ShardId shard : due) {
    lanes_[Value(shard)]->Pull(
        evaluation_->reading.request(), shards_.Part(evaluation_->weights, shard),
        [this, shard](const absl::StatusOr<std::optional<WeightsHeader>>& weights) {
          OnRead(shard, weights);
        });
  }
}

void SimEvaluator::OnRead(ShardId shard,
                          const absl::StatusOr<std::optional<WeightsHeader>>& weights) {
  if (!weights.ok()) return on_failure_(weights.status());
  shards_.NoteReceived(shard, **weights, evaluation_->weights);
  evaluation_->reading.OnPulled(shard, **weights);
  if (--evaluation_->lanes_busy > 0) return;
  evaluation_->reading.GoOn();
  // This runs inside a lane's callback, and that lane may be needed again, so read in a later
  // event.
  world_.network.AtProcess(process_, world_.queue.now(), [this] {
    if (!is_closed_) Read();
  });
}

void SimEvaluator::Report() {
  v1::ReportRequest request;
  *request.mutable_identity() = ToWire(shards_.identity());
  std::vector<GenerationVersion> versions;
  for (const WeightsHeader& header : evaluation_->reading.headers()) {
    versions.push_back({header.generation, header.version});
  }
  request.set_evaluation(evaluation_->order.number);
  v1::EvaluationStatus& result = *request.mutable_result();
  for (const GenerationVersion& one : versions) result.add_versions(Value(one.version));
  result.set_test_loss(1.0);
  if (world_.scenario.run.training.target_accuracy > 0) {
    // The made-up accuracy grows with training, as a real one does.
    const auto done = static_cast<double>(Value(versions.front().version));
    result.set_test_accuracy(std::min(1.0, done / world_.scenario.batches_total()));
  }
  if (evaluation_->order.is_final) request.set_weights_sha256(std::string(64, 'a'));
  calls_.Call<v1::ReportReply>(
      Method::kReport, request, [this, versions](const absl::StatusOr<v1::ReportReply>& reply) {
        if (!reply.ok() && !absl::IsFailedPrecondition(reply.status())) {
          return on_failure_(reply.status());
        }
        if (reply.ok() && evaluation_->order.is_final) {
          world_.history.Add(FinalReported{versions, evaluation_->weights});
        }
        last_ = evaluation_->order.number;
        evaluation_.reset();
      });
}

}  // namespace slipstream

#ifndef SLIPSTREAM_WORKER_TRAINING_EVALUATOR_H_
#define SLIPSTREAM_WORKER_TRAINING_EVALUATOR_H_

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/shard_options.h"
#include "worker/client/weights_reader.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/model_keeper.h"

namespace slipstream {

/// Measures the weights on the test set whenever a heartbeat brings an order, beside training: on a
/// thread of low priority, with weights, activations and connections of its own. Where an order
/// asks for it, saves the very weights that it measured.
///
/// Thread-safe: const after construction; all work is its thread's.
class Evaluator {
 public:
  struct Options {
    Identity identity;
    ModelSpec model;
    std::vector<std::string> servers;
    ShardMap map;
    ShardOptions shards;

    /// Shards keep step, so that weights of one version can be had.
    bool in_step = false;
  };

  /// Starts at once. All arguments must outlive it but `options`.
  Evaluator(const Options& options, const Dataset& test, Device& device, const ModelKeeper& keeper,
            const CoordinatorClient& coordinator, Heartbeat& heartbeat, Interruption& interruption);

  /// The heartbeat must have been closed.
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

 private:
  void Run();
  absl::Status Prepare();
  absl::Status Serve(const Heartbeat::Order& order);

  /// Saves the measured weights if they are kept anywhere, and tells `result` of it. That final
  /// ones are not is worth a warning.
  void Keep(const ModelFacts& facts, v1::EvaluationStatus& result) const;

  // Constant after construction.
  const Options options_;
  const Dataset& test_;
  Device& device_;
  const ModelKeeper& keeper_;
  const CoordinatorClient& coordinator_;
  Heartbeat& heartbeat_;
  Interruption& interruption_;

  // Owned by the thread, made for the first order.
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<WeightsReader> reader_;

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_EVALUATOR_H_

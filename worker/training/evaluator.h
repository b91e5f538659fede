#ifndef SLIPSTREAM_WORKER_TRAINING_EVALUATOR_H_
#define SLIPSTREAM_WORKER_TRAINING_EVALUATOR_H_

#include <cstdint>
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
#include "worker/training/evaluation_report.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/model_keeper.h"

namespace slipstream {

/// Measures the weights on the test set whenever a heartbeat brings an order, in parallel with
/// training: on a thread of low priority, with its own weights, activations and connections. If the
/// order asks for it, saves exactly the weights that it measured.
///
/// Thread-safe: const after construction; its own thread does all the work.
class Evaluator {
 public:
  struct Options {
    Identity identity;
    ModelSpec model;
    std::vector<std::string> servers;
    ShardMap map;
    ShardOptions shards;

    /// The number of examples in the training set; not 0.
    uint64_t examples_per_epoch = 1;
  };

  /// Starts at once. All arguments except `options` must outlive the evaluator.
  Evaluator(const Options& options, const Dataset& test, Device& device, const ModelKeeper& keeper,
            const CoordinatorClient& coordinator, Heartbeat& heartbeat, Interruption& interruption);

  /// Waits for the thread. REQUIRES: the heartbeat was closed.
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

 private:
  void Run();
  absl::Status Prepare();
  absl::Status Serve(const Heartbeat::Order& order);

  // Constant after construction.
  const Options options_;
  const Dataset& test_;
  Device& device_;
  const EvaluationReporter reporter_;
  Heartbeat& heartbeat_;
  Interruption& interruption_;

  // Owned by the thread; created for the first order.
  std::unique_ptr<Plan> plan_;
  std::unique_ptr<WeightsReader> reader_;

  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_EVALUATOR_H_

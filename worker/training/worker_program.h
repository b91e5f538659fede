#ifndef SLIPSTREAM_WORKER_TRAINING_WORKER_PROGRAM_H_
#define SLIPSTREAM_WORKER_TRAINING_WORKER_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/model/net_shapes.h"
#include "common/run/run_spec.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/membership.h"
#include "worker/client/parameter_client.h"
#include "worker/compute/device_claim.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/plan_links.h"
#include "worker/training/step_figures.h"
#include "worker/training/training_plans.h"

namespace slipstream {

/// One worker's part in one run, from registration to leaving.
///
/// Not thread-safe: one owner; an interruption may come from any thread.
class WorkerProgram {
 public:
  struct Options {
    /// host:port of the coordinator.
    std::string coordinator;

    /// Absent: the lowest free id.
    std::optional<WorkerId> worker;

    /// How this worker shows who it is.
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();

    // Worker-local settings; absent ones are the run's.
    std::optional<std::string> data_path;
    std::optional<std::string> device;
    std::optional<std::string> precision;
    std::optional<LogSpec::Level> log_level;
    std::optional<LogSpec::Format> log_format;
    std::optional<std::string> init;
    std::optional<std::string> save_dir;
  };

  /// `interruption` must outlive it.
  WorkerProgram(const Options& options, Interruption& interruption);

  /// Runs to the end of the run, or to an interruption, and leaves in any case. OK also if it was
  /// stopped.
  absl::Status Run();

 private:
  absl::Status Join();
  absl::Status ReadSettings();
  absl::Status TakePart(Heartbeat& heartbeat);
  absl::Status PrepareCompute();
  absl::Status PrepareData();
  absl::Status PreparePlans();
  absl::Status PrepareModel();
  absl::Status Initialize(uint64_t grant);

  /// The weights that the run starts from.
  absl::Status FillFirstWeights(std::span<float> weights);
  absl::Status Train(Heartbeat& heartbeat);
  void Leave(const absl::Status& status);

  bool StepsInStep() const { return settings_.consistency.traits().in_step; }
  ShardOptions OptionsOfShards() const;
  std::unique_ptr<ParameterClient> NewClient();
  Sleeper MakeSleeper();

  // Constant after construction.
  const Options options_;

  Interruption& interruption_;
  CoordinatorClient coordinator_;
  Membership membership_;
  RunSpec settings_;
  NetShapes net_;
  DataSplits data_;
  DeviceClaim device_claim_;
  std::unique_ptr<Device> device_;

  // One for each gradient that may be under way. Outlive the client, whose lanes use them.
  TrainingPlans plans_;
  std::vector<std::unique_ptr<PlanWeights>> plan_weights_;
  std::unique_ptr<ParameterClient> client_;
  ShardMap map_;
  StepFigures figures_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_WORKER_PROGRAM_H_

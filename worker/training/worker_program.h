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
#include "common/settings/run_spec.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/joining.h"
#include "worker/client/parameter_client.h"
#include "worker/client/server_addresses.h"
#include "worker/compute/device_claim.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/training/all_reduce_client.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/local_steps.h"
#include "worker/training/model_keeper.h"
#include "worker/training/state_keeper.h"
#include "worker/training/step_figures.h"
#include "worker/training/training_plans.h"

namespace slipstream {

/// One worker's part in one run, from registration to leaving.
///
/// Not thread-safe: one owner; an interruption may come from any thread.
class WorkerProgram {
 public:
  struct Options {
    /// The coordinator's address, host:port.
    std::string coordinator;

    /// The id of the worker; absent for the lowest free one.
    std::optional<WorkerId> worker;

    /// The credentials by which this worker identifies itself.
    std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();

    // Worker-local settings; absent ones are taken from the run.
    std::optional<std::string> data_path;
    std::optional<std::string> device;
    std::optional<std::string> precision;
    std::optional<LogSpec::Level> log_level;
    std::optional<LogSpec::Format> log_format;
    std::optional<std::string> init;
    std::optional<std::string> save_dir;
    std::string fallback_save_dir;
    bool overwrites = false;
    std::optional<std::string> state_dir;
  };

  /// `interruption` must outlive the program.
  WorkerProgram(const Options& options, Interruption& interruption);

  /// Runs until the run ends or is interrupted, and leaves the run in any case. Returns OK also if
  /// it was stopped.
  absl::Status Run();

 private:
  absl::Status Join();
  absl::Status ReadSettings();
  absl::Status TakePart(Heartbeat& heartbeat);
  absl::Status PrepareCompute();
  absl::Status PrepareData();
  absl::Status PreparePlans();

  /// Returns RESOURCE_EXHAUSTED if the model, with what training and the final measurement need of
  /// it, does not fit beside the data: better now than at the end.
  absl::Status CheckModelMemory(bool on_processor) const;
  absl::Status PrepareModel();

  /// Finds out whether this worker can save weights, and has the proposal say so.
  void TrySaving(ModelProposal& proposal);

  /// Goes on with the state of an earlier process, and prepares to save this one's, if the run asks
  /// for that.
  void TakeUpState();
  absl::Status Train(Heartbeat& heartbeat);
  void Leave(const absl::Status& status);

  ShardOptions OptionsOfShards() const;
  std::unique_ptr<ParameterClient> NewClient();

  /// Makes the client that the training loop talks to, if that is not client_.
  absl::Status ConnectToOthers();
  Sleeper MakeSleeper();

  // Constant after construction.
  const Options options_;

  Interruption& interruption_;
  CoordinatorClient coordinator_;
  JoinedRun joined_;
  ServerAddresses servers_;            // Where they are now.
  std::optional<ModelKeeper> keeper_;  // From the proposal of the model on.
  RunSpec settings_;
  NetShapes net_;
  DataSplits data_;
  DeviceClaim device_claim_;
  std::unique_ptr<Device> device_;

  // They outlive the client, whose lanes use their slots.
  TrainingPlans plans_;
  std::unique_ptr<LocalSteps> local_steps_;  // Null unless the algorithm has local weights.
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<AllReduceClient> others_;  // Null unless workers add up gradients themselves.
  std::unique_ptr<StateKeeper> state_;       // Null unless the run has the worker's state saved.
  ShardMap map_;
  StepFigures figures_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_WORKER_PROGRAM_H_

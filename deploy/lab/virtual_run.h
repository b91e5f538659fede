#ifndef SLIPSTREAM_DEPLOY_LAB_VIRTUAL_RUN_H_
#define SLIPSTREAM_DEPLOY_LAB_VIRTUAL_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/model/net_shapes.h"
#include "common/settings/run_spec.h"
#include "deploy/lab/compute_pool.h"
#include "deploy/lab/compute_times.h"
#include "deploy/lab/event_queue.h"
#include "deploy/lab/lab_context.h"
#include "deploy/lab/links.h"
#include "deploy/lab/virtual_aggregator.h"
#include "deploy/lab/virtual_server.h"
#include "deploy/lab/virtual_worker.h"
#include "deploy/lab/world_spec.h"
#include "proto/status.pb.h"
#include "server/core/coordinator/coordinator.h"
#include "worker/data/dataset.h"
#include "worker/training/model_keeper.h"

namespace slipstream {

/// A whole run in virtual time, in one process: production's Coordinator, Shards and
/// WorkerSessions, with an event queue in place of threads and network, and with real gradients.
/// It adds no rule of its own.
///
/// Equal settings, world, data and seed give equal events and weights, whatever the number of
/// threads.
///
/// Not thread-safe: one owner.
class VirtualRun {
 public:
  struct Options {
    RunSpec run;
    WorldSpec world;

    /// How many threads compute, the caller's among them. > 0.
    uint32_t threads = 1;

    /// Where the trained weights are saved; empty: nowhere.
    std::string save_dir;
  };

  /// Prepares the run. `data` must outlive it. INVALID_ARGUMENT as CheckVirtual, and if the net's
  /// shapes do not fit; fails as PushLog::Create, too.
  static absl::StatusOr<std::unique_ptr<VirtualRun>> Make(Options options, const DataSplits& data);

  ~VirtualRun();

  /// Runs until the run is over, or `goes_on`, which is called often, returns false: then
  /// CANCELLED. OK also if the run failed: its status says so.
  absl::Status Run(const std::function<bool()>& goes_on);

  /// Returns the status of the run as its coordinator would, with virtual times.
  v1::RunStatus Status() const;

  uint64_t batches_total() const { return coordinator_.batches_total(); }
  uint64_t batches_done() const { return coordinator_.batches_done(); }
  absl::Time now() const { return queue_.now(); }

  /// Returns how long processors have computed gradients and measured weights.
  absl::Duration computed() { return pool_.computed(); }
  uint64_t events() const { return queue_.steps(); }

 private:
  VirtualRun(Options options, const DataSplits& data, NetShapes net,
             std::vector<std::unique_ptr<ComputeLane>> lanes);

  absl::Status MakeServers();

  /// Fails if the run stands still for good.
  absl::Status CheckProgress();
  void StartWorker(WorkerId worker);
  bool IsThere(WorkerId worker) const;
  void FlushPushLogs();

  // The conversation with the coordinator.
  void ControlAgainAndAgain();
  void Control();
  void SyncServers();

  /// Has workers ask again if the coordinator may have an answer now.
  void OnCoordinatorCalled();
  void Settle();

  // Evaluations, which take no virtual time.
  void BeginEvaluation();
  void EndEvaluation();

  // Constant after construction.
  const Options options_;
  const DataSplits& data_;
  const NetShapes net_;
  const std::function<absl::Status(std::span<float>)> initial_;
  const ModelKeeper keeper_;

  EventQueue queue_;
  Coordinator coordinator_;
  std::vector<std::unique_ptr<VirtualServer>> servers_;
  std::vector<std::unique_ptr<VirtualAggregator>> aggregators_;  // By group, then by shard.
  Links links_;
  ComputeTimes times_;
  ComputePool pool_;
  LabContext lab_;
  std::map<WorkerId, std::unique_ptr<VirtualWorker>> workers_;
  uint64_t workers_started_ = 0;
  std::vector<std::unique_ptr<VirtualWorker>> gone_;

  uint64_t changes_seen_ = 0;
  bool is_settling_ = false;
  uint64_t epochs_synced_ = 0;  // Those that shard 0 had applied when servers reported last.
  Version version_seen_{};      // Shard 0's newest.
  uint64_t controls_since_ = 0;
  absl::Status failure_;  // Why the run cannot go on.

  struct Measuring;
  std::unique_ptr<Measuring> measuring_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_VIRTUAL_RUN_H_

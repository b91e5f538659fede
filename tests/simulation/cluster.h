#ifndef SLIPSTREAM_TESTS_SIMULATION_CLUSTER_H_
#define SLIPSTREAM_TESTS_SIMULATION_CLUSTER_H_

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "deploy/lab/event_queue.h"
#include "tests/simulation/gradients.h"
#include "tests/simulation/history.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_aggregator.h"
#include "tests/simulation/sim_coordinator.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/sim_reader.h"
#include "tests/simulation/sim_shard.h"
#include "tests/simulation/sim_worker.h"
#include "tests/simulation/sim_world.h"
#include "tests/simulation/trace.h"

namespace slipstream {

/// A whole simulated cluster: servers, aggregators, workers, their faults, and the supervisor that
/// restarts them.
///
/// Not thread-safe: one owner.
class SimCluster final : private ShardEnds {
 public:
  struct Options {
    bool restores = true;
    std::ostream* trace = nullptr;  // As in Simulate.

    /// Distinguishes runs of one scenario: with another `luck`, messages take other times.
    uint64_t luck = 0;
  };

  /// `scenario` must outlive it.
  SimCluster(const Scenario& scenario, const Options& options);

  /// Runs to the end of the run, or until it is clear that the run will not end.
  void Run();

  const History& history() const { return history_; }
  uint64_t digest() const { return trace_.digest(); }
  uint64_t steps() const { return queue_.steps(); }
  absl::Duration time() const { return queue_.now() - absl::UnixEpoch(); }

 private:
  void OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message) override;
  void OnCancel(const StreamPtr& stream) override;
  void OnSent(const StreamPtr& stream) override;

  void StartShard(ShardId shard);

  /// Returns the server's process that runs; null if none does.
  SimShard* FindShard(ShardId shard) const;
  void Befall(const ServerFault& fault);

  /// Returns whether the moment for the fault has come: the processes that it hits run, do what it
  /// waits for, and can be lost.
  bool HasCome(const ServerFault& fault) const;

  /// Returns the server processes that the fault hits.
  std::vector<SimShard*> HitBy(const ServerFault& fault) const;

  /// Ends the process of a server. Another one comes after a while, and is killed in turn as often
  /// as the fault says.
  void EndServer(SimShard& shard, const ServerFault& fault);

  /// The process of a server cannot go on.
  void OnServerFailed(ShardId shard);
  void EndDiskFaults();

  /// Returns whether the disk has this checkpoint of the shard.
  bool HasSaved(ShardId shard, const SavedVersion& saved) const;

  /// Returns whether the run can go on if the shard's server is killed now: checkpoints have its
  /// weights.
  bool CanLose(const SimShard& shard) const;

  void StartAggregator(uint32_t group, ShardId shard);

  /// Returns the aggregator that runs; null if none does.
  SimAggregator* FindAggregator(uint32_t group, ShardId shard);
  void Befall(const AggregatorFault& fault);

  void StartWorker(std::optional<WorkerId> asked);
  void OnWorkerEnd(const SimWorker& worker);
  void Befall(const WorkerFault& fault);
  SimWorker* FindLive(WorkerId worker);
  bool AnyLive() const;
  void KeepAlive();
  bool IsOver() const;
  bool AllShardsMayExit() const;
  std::string DescribeStuck() const;

  const Scenario& scenario_;
  EventQueue queue_;
  Trace trace_;
  History history_;
  Chance chance_;
  Network network_;
  Gradients gradients_;
  SimCoordinator coordinator_;
  const bool restores_;
  std::vector<SimDisk> disks_;                               // By shard.
  std::vector<std::unique_ptr<SimShard>> shards_;            // All processes ever started.
  std::vector<std::unique_ptr<SimAggregator>> aggregators_;  // All processes ever started.
  std::vector<std::unique_ptr<SimReader>> readers_;
  std::vector<std::unique_ptr<SimWorker>> workers_;  // All processes ever started.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_CLUSTER_H_

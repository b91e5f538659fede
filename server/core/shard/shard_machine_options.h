#ifndef SLIPSTREAM_SERVER_CORE_SHARD_SHARD_MACHINE_OPTIONS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_SHARD_MACHINE_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"
#include "server/core/run_stages.h"

namespace slipstream {

/// The options of the machine of one shard. They are constant.
struct ShardMachineOptions {
  /// Shard 0 is the first shard of a run. Where work comes in rounds, it names the mini-batches
  /// and so knows when the run ends; the other shards learn the last version from the
  /// coordinator. Under a guard that blocks, only shard 0 lets workers wait: two workers that
  /// waited at two shards, each for the other's gradient, would wait for ever.
  ShardId shard{};

  /// The stages of the run, one after another, as its settings have them; at least one. The orders
  /// say which of them the run is in, and may bring other stages to come. All have the same
  /// max_staleness.
  std::vector<RunStage> stages = {RunStage()};

  /// The servers' rule; its learning rate is that of the stage.
  OptimizerSpec optimizer;

  /// The kind of values that workers push, and how many mini-batches one push stands for.
  PushKind pushes = PushKind::kGradient;
  uint64_t quantum = 1;

  /// Set if a round's gradients are added up, instead of their mean being taken.
  bool sums_pushes = false;

  /// Set if the run has aggregators, whose pushes combine those of several workers.
  bool takes_composites = false;

  /// The most examples of one mini-batch.
  uint32_t batch_size = 65'536;
  uint32_t epochs = 1;

  /// How many gradients a worker may have in flight.
  uint32_t gradients_in_flight = 1;

  /// The most payload bytes of pushes that arrive or are held; further pushes are answered
  /// RETRY_LATER. 0: as many as the members may have in flight. A push that a round waits for has
  /// memory beyond that: as much as a push of each member and one for each that the round holds.
  /// Within the bound no member may have more pushes arriving than its gradients in flight, or a
  /// member that begins many and ends none would keep the others out. A member that is waited for
  /// may have one more, as a broken connection may be noticed later than it is replaced.
  size_t push_bytes_max = 0;

  /// The most calls that may wait for a version; further pulls are refused.
  size_t parked_max = 16'384;

  /// The number of newest published versions that are kept. At least 1.
  uint32_t versions_kept = 1;

  /// Set if a worker that takes a lost one's place under hardsync does the last round again. At
  /// least two versions are kept then.
  bool repeats_rounds = false;

  /// How many pulls readers who are not members may have under way, all together. Besides, they
  /// read at most versions_kept + 1 versions at a time, and at most
  /// ShardMachine::kReaderVersionsMax of those that are not kept: further pulls wait, or the reader
  /// of the oldest version has lagged. A member may have one pull. So the number of versions that
  /// readers hold is bounded, but for the moment that it takes to end a pull that has lagged, and
  /// updates never wait.
  uint32_t reader_pulls_max = 256;

  /// How many of `parked_max` the waiting pulls of such readers may take, and those of one
  /// member. A member may have more than it needs, as a broken connection may be noticed later
  /// than it is replaced.
  size_t parked_readers_max = 256;
  size_t parked_of_member_max = 16;

  /// Set if the shard saves its state, and so can go on from there in a later generation; and if it
  /// keeps a log beside, and so goes on in the same generation.
  bool saves = false;
  bool keeps_log = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_SHARD_MACHINE_OPTIONS_H_

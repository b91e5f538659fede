#ifndef SLIPSTREAM_COMMON_SETTINGS_RUN_SPEC_H_
#define SLIPSTREAM_COMMON_SETTINGS_RUN_SPEC_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/precision.h"
#include "common/model/model_spec.h"
#include "common/settings/algorithm_rows.h"
#include "common/settings/consistency_spec.h"
#include "common/settings/device_choice.h"
#include "common/settings/durability_spec.h"
#include "common/settings/http_spec.h"
#include "common/settings/optimizer_rows.h"
#include "common/settings/security_spec.h"
#include "common/settings/tensor_options.h"
#include "common/settings/worker_slowdown.h"
#include "common/settings/worker_spec.h"

namespace slipstream {

/// The resolved settings of one run: run.yaml with defaults, environment and flags applied.
/// common/config parses, checks and prints it; other code takes the struct that it needs.
/// common/config enforces the bounds in these comments, so code that receives a RunSpec relies on
/// them. Bounds that have names are in common/base/limits.h.

/// Where a run's model or its examples come from: these settings describe them, or the workers
/// bring their own.
enum class SuppliedBy : uint8_t { kSettings, kWorkers };

/// Files of weights, beside the net itself.
struct ModelFilesSpec {
  /// The file of the weights to start from; empty for random ones. Worker-local.
  std::string init;

  /// The directory for the trained weights; empty if they are not saved. Worker-local.
  std::string save_dir;

  /// Whether a model of another run may be replaced. Worker-local.
  bool overwrite = false;

  /// Weights are also saved after every so many epochs; 0 saves only the final ones. In [0,
  /// 100,000].
  uint32_t save_every_epochs = 0;

  friend bool operator==(const ModelFilesSpec&, const ModelFilesSpec&) = default;
};

struct DataSpec {
  SuppliedBy from = SuppliedBy::kSettings;

  /// For examples of workers: the number of examples of an epoch; 0 if the first worker says it, or
  /// where workers choose their own mini-batches, if the whole run is one epoch. At most 2^40.
  uint64_t examples = 0;

  enum class Format { kSynthetic, kIdx, kCifar10, kNpy, kCsv };
  Format format = Format::kSynthetic;

  /// The directory with the format's files; required except for synthetic. Worker-local.
  std::string path;

  /// For synthetic, idx and cifar10: the values made of pixels p of [0, 255]. Mean and deviation
  /// are constants of the format for each channel, as shares of 255.
  enum class Pixels {
    kStandardised,    // (p/255 − mean) / deviation.
    kMeanSubtracted,  // p − 255 mean.
    kRaw,             // p.
  };
  Pixels pixels = Pixels::kStandardised;

  /// For csv: whether the first line of a file has the names of its columns. With kAuto the line
  /// tells, and one that does not is refused.
  enum class Header { kAuto, kPresent, kAbsent };
  Header header = Header::kAuto;

  /// For csv: the names of the columns that the model predicts; one if they are classes. Empty
  /// means the last column. At most 1024. Empty if there is no header.
  std::vector<std::string> label_columns;

  /// For the generated set only: its examples. Each in [100, 1,000,000].
  uint32_t train_examples = 20'000;
  uint32_t test_examples = 4'000;

  friend bool operator==(const DataSpec&, const DataSpec&) = default;
};

struct TrainingSpec {
  /// For examples of workers: whether the servers say which examples a mini-batch has, so that an
  /// epoch has each of them once, or only how many mini-batches are to be computed.
  enum class Work : uint8_t { kHandedOut, kOwn };
  Work work = Work::kHandedOut;

  /// μ, the number of examples of one mini-batch of one worker. In [1, 65536].
  uint32_t batch_size = 32;

  /// The number of passes over the training data. In [1, 100,000].
  uint32_t epochs = 1;

  /// Worker steps that end the run before its epochs are over; 0 for no limit. A step is a
  /// mini-batch whose gradient was pushed; steps are counted over all workers. At most kStepsMax.
  uint64_t max_steps = 0;

  /// Seconds of training that end the run, without start and final evaluation; 0 for no limit. In
  /// [0, 10^9].
  double max_seconds = 0;

  /// The accuracy on the test set that ends the run, if an evaluation between epochs reaches it; 0
  /// for none. In [0, 1].
  double target_accuracy = 0;

  /// A mini-batch whose loss or gradient is not finite is left out; this many in a row of one
  /// worker end the run. ≥ 1.
  uint32_t nonfinite_max = 10;

  /// The number of gradients of one worker that may be under way at once. With 2, a step computes
  /// while the previous push is answered, from weights that are one step older. In [1, 2]; 1 with
  /// policies that take one gradient from each member, and with local weights.
  uint32_t pipeline_depth = 1;

  StartSpec start_from;

  /// Returns the number of mini-batches of the whole run, if nothing ends it early.
  constexpr uint64_t steps(uint64_t batches_per_epoch) const {
    const uint64_t of_epochs = batches_per_epoch * epochs;
    return max_steps == 0 ? of_epochs : std::min(of_epochs, max_steps);
  }

  friend bool operator==(const TrainingSpec&, const TrainingSpec&) = default;
};

struct ScheduleSpec {
  enum class Kind { kConstant, kStep, kCosine };
  Kind kind = Kind::kConstant;

  /// The number of epochs over which the rate rises linearly from 0 before the schedule proper. ≥
  /// 0.
  double warmup_epochs = 0;

  /// For step: the rate is multiplied by `factor` at each of these epochs (rising, > 0).
  std::vector<double> at_epochs;
  double factor = 0.1;

  /// For cosine: the rate at the end of the run, as a share of learning_rate. In [0, 1].
  double final_share = 0;

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

struct OptimizerSpec {
  using Kind = RuleKind;
  Kind kind = kDefaultRule;
  RuleParameters parameters;

  /// α₀ > 0. By default RuleRow::learning_rate.
  double learning_rate = RowOf(kDefaultRule).learning_rate;

  /// g ← g + d θ once per update. AdamW makes θ ← θ − α d θ instead, and LAMB adds d θ to its step.
  /// In [0, kWeightDecayMax].
  double weight_decay = 0;

  /// Exceptions for tensors, by their names. At most TensorOptions::kItemsMax.
  std::vector<TensorOptions> per_tensor;

  /// A worker clips each value of a mini-batch's gradient to [−clip_value, clip_value], and then
  /// the gradient to an L2 norm of clip_norm. ≥ 0; 0 for no clipping.
  double clip_value = 0;
  double clip_norm = 0;

  using StalenessScaling = slipstream::StalenessScaling;
  StalenessScaling staleness_scaling = kDefaultScaling;
  ScalingParameters scaling_parameters;
  ScheduleSpec schedule;

  friend bool operator==(const OptimizerSpec&, const OptimizerSpec&) = default;
};

struct ClusterSpec {
  /// The host:port of each server in the order of shards; the first hosts the coordinator. From 1
  /// to kServersMax.
  std::vector<std::string> servers = {"localhost:7070"};

  /// λ at the start of the run. In [1, kWorkersMax].
  uint32_t workers = 1;

  /// A worker that was not heard of for this long counts as dead. A shorter lease detects death
  /// faster and evicts busy nodes. A worker sends a heartbeat every third of the lease, but at the
  /// latest after 500 ms, or after 1 ms for each worker if that is longer. In [500 ms, 1 h].
  absl::Duration lease = absl::Seconds(5);

  /// Training starts when all servers and `workers` workers are there; the run fails if that takes
  /// longer. In [1 s, 24 h].
  absl::Duration start_timeout = absl::Minutes(2);

  /// The consequence if a worker is gone under a policy that waits for members.
  enum class OnWorkerLoss : uint8_t {
    kShrink,  // The next rounds do without it.
    kWait,    // Training waits until another worker has its place; for start_timeout at most.
  };
  OnWorkerLoss on_worker_loss = OnWorkerLoss::kShrink;

  /// If fewer workers than these are left, and for longer than start_timeout, training ends and the
  /// run fails. In [1, workers].
  uint32_t min_workers = 1;

  /// A tree: aggregators between groups of workers and the servers.
  struct Tree {
    /// How many workers make a group, whose pushes one aggregator for each shard combines. In
    /// [2, kFanoutMax]; 0: there are no aggregators.
    uint32_t fanout = 0;

    friend bool operator==(const Tree&, const Tree&) = default;
  };
  Tree tree;

  /// The number of groups that have aggregators. Workers that join later, with higher ids, have
  /// none.
  uint32_t groups() const {
    return tree.fanout == 0 ? 0 : (workers + tree.fanout - 1) / tree.fanout;
  }

  /// The number by which the aggregator of a group for a shard is known among the servers, in its
  /// certificate and on its connections. It follows those of the shards.
  uint32_t AggregatorNumber(uint32_t group, uint32_t shard) const {
    return static_cast<uint32_t>(servers.size()) * (1 + group) + shard;
  }

  friend bool operator==(const ClusterSpec&, const ClusterSpec&) = default;
};

struct ComputeSpec {
  /// Worker-local.
  DeviceChoice device;

  /// The precision of gradients; evaluations are fp32. Worker-local.
  Precision precision = Precision::kFp32;

  /// Set if GPUs must give equal bits for equal inputs, as processors always do. Worker-local.
  bool deterministic = true;

  friend bool operator==(const ComputeSpec&, const ComputeSpec&) = default;
};

struct WireSpec {
  /// How workers reach shards. kAuto is the best of the others that both ends can use: shared
  /// memory if both are on one machine, otherwise TCP.
  enum class Transport { kAuto, kTcp, kUnix, kShm };
  Transport transport = Transport::kAuto;

  /// Payload bytes of one message, counted as fp32. In [kChunkBytesMin, kChunkBytesMax], a multiple
  /// of 64; with 0 common/wire/chunk_bytes.h chooses.
  size_t chunk_bytes = 0;

  /// The encodings of gradients, and of weights that gradients are computed from.
  Encoding push_codec = Encoding::kFp32;
  Encoding pull_codec = Encoding::kFp32;

  /// The bytes of pushes that a shard holds before it answers RETRY_LATER; 0 for enough to hold the
  /// pushes that all workers may have on their way. Pushes of workers that a round waits for may
  /// exceed it.
  size_t push_bytes_max = 0;

  /// Returns whether workers may share memory with the shards of their machine. Shared memory is
  /// not encrypted.
  bool may_share_memory() const {
    return (transport == Transport::kAuto || transport == Transport::kShm) &&
           push_codec == Encoding::kFp32 && pull_codec == Encoding::kFp32;
  }

  friend bool operator==(const WireSpec&, const WireSpec&) = default;
};

/// Settings about readers, who take weights and push nothing.
struct ReadersSpec {
  /// The number of newest versions that shards keep for readers, so that one who takes the parts of
  /// a version one after another finds them. In [1, kVersionsKeptMax]. By default
  /// AlgorithmRow::versions_kept.
  uint32_t versions_kept = 1;

  /// The consequence of a reader that is as many versions behind as it wants to be at most.
  enum class OnLag : uint8_t {
    kReport,  // The status shows it.
    kWait,    // Workers wait, too, until it has read on, or is gone.
  };
  OnLag on_lag = OnLag::kReport;

  friend bool operator==(const ReadersSpec&, const ReadersSpec&) = default;
};

struct EvaluationSpec {
  /// Whether workers measure the weights, the final ones in any case, or nobody does.
  enum class By : uint8_t { kWorkers, kNobody };
  By by = By::kWorkers;

  /// Accuracy is measured on the test set after every so many epochs; 0 for only at the end.
  uint32_t every_epochs = 1;

  friend bool operator==(const EvaluationSpec&, const EvaluationSpec&) = default;
};

struct LogSpec {
  enum class Level { kDebug, kInfo, kWarning, kError };
  Level level = Level::kInfo;

  enum class Format { kText, kJson };
  Format format = Format::kText;

  /// The directory for one push log per shard (push-log-<shard>.csv); empty for none. Server-local.
  std::string push_log;

  friend bool operator==(const LogSpec&, const LogSpec&) = default;
};

struct RunControlSpec {
  enum class After { kExit, kStay };

  /// Whether the servers exit when the run is over, or keep serving pulls and status.
  After after = After::kExit;

  /// How long psctl run lets the workers' programs go on once the run is over, before it stops
  /// them. 0: ps_worker for 10 s, and a user's program until it ends. In [0 s, 24 h].
  absl::Duration finish_timeout = absl::ZeroDuration();

  friend bool operator==(const RunControlSpec&, const RunControlSpec&) = default;
};

/// Faults that tests inject on purpose.
struct TestingSpec {
  /// Each worker waits a random time up to this before each push (seeded). In [0, 10 s].
  absl::Duration push_delay_max = absl::ZeroDuration();

  /// The slowdown of each worker, by id. Workers beyond the list are not slowed. At most
  /// kWorkersMax items.
  std::vector<WorkerSlowdown> workers;

  WorkerSlowdown SlowdownOf(WorkerId worker) const {
    const size_t id = Value(worker);
    return id < workers.size() ? workers[id] : WorkerSlowdown();
  }

  friend bool operator==(const TestingSpec&, const TestingSpec&) = default;
};

struct RunSpec {
  /// The version of the file's format; 1.
  uint32_t version = 1;
  std::string name = "run";
  uint64_t seed = 1;
  SuppliedBy model_from = SuppliedBy::kSettings;
  ModelSpec model;  // Of no meaning if it is the workers'.
  ModelFilesSpec model_files;
  DataSpec data;
  TrainingSpec training;
  ConsistencySpec consistency;

  /// The policies of the run's first epochs, in order; `consistency` follows them. Fewer than
  /// kPolicyStagesMax; their epochs rise, and end before training.epochs.
  std::vector<PolicyStage> policies_before;

  OptimizerSpec optimizer;
  WorkerSpec worker;
  ClusterSpec cluster;
  ComputeSpec compute;
  WireSpec wire;
  ReadersSpec readers;
  EvaluationSpec evaluation;
  LogSpec log;
  HttpSpec http;
  RunControlSpec run;
  DurabilitySpec durability;
  TestingSpec testing;
  SecuritySpec security;

  /// Whether workers choose their own mini-batches.
  bool chooses_own_work() const {
    return data.from == SuppliedBy::kWorkers && training.work == TrainingSpec::Work::kOwn;
  }

  /// Whether the whole run is one epoch, as nothing says how many examples one has.
  bool is_one_epoch() const { return chooses_own_work() && data.examples == 0; }

  /// Whether no number of mini-batches ends the run.
  bool is_endless() const { return is_one_epoch() && training.max_steps == 0; }

  /// Returns the number of examples of an epoch if it follows from the settings, whatever workers
  /// say of theirs.
  std::optional<uint64_t> fixed_examples() const {
    if (data.from == SuppliedBy::kSettings) return std::nullopt;
    if (data.examples > 0) return data.examples;
    if (!chooses_own_work()) return std::nullopt;
    const uint64_t steps = training.max_steps > 0 ? training.max_steps : kStepsMax;
    return steps * training.batch_size;
  }

  /// Returns a stage of the run: it has one for each policy, in order, and the last one ends with
  /// the run. REQUIRES: number ≤ policies_before.size().
  PolicyStage StageOf(size_t number) const {
    if (number == policies_before.size()) return {consistency, training.epochs};
    PolicyStage stage = policies_before.at(number);
    stage.consistency.max_staleness = consistency.max_staleness;
    return stage;
  }

  std::vector<PolicyStage> stages() const {
    std::vector<PolicyStage> all;
    for (size_t i = 0; i <= policies_before.size(); ++i) all.push_back(StageOf(i));
    return all;
  }

  /// Whether a worker that takes the place of a lost one does its last round of hardsync again.
  bool repeats_rounds() const {
    const std::vector<PolicyStage> all = stages();
    return cluster.on_worker_loss == ClusterSpec::OnWorkerLoss::kWait &&
           std::ranges::any_of(all, [](const PolicyStage& stage) {
             return stage.consistency.traits().order == PolicyTraits::Order::kRank;
           });
  }

  /// Returns the number of newest versions that shards keep: for readers, and for rounds that are
  /// done again.
  uint32_t versions_kept() const {
    return std::max(readers.versions_kept, repeats_rounds() ? 2u : 1u);
  }

  bool workers_make_weights() const { return consistency.traits().workers_make_weights(); }

  /// Returns the kind of values that servers are pushed. Workers that add up their gradients
  /// themselves publish the weights that these make.
  PushKind pushes() const {
    return workers_make_weights() ? PushKind::kValues : RowOf(worker.algorithm).pushes;
  }

  /// Returns the number of mini-batches of one push, or the most. At least 1.
  uint64_t quantum() const { return workers_make_weights() ? kStepsMax : worker.quantum(); }

  /// Returns the number of pushes from one fetch of weights to the next. At least 1.
  uint64_t pushes_per_fetch() const {
    return workers_make_weights() || worker.has_free_lanes() ? kNeverFetches
                                                             : worker.pushes_per_fetch();
  }

  /// Returns the rule that servers follow under `policy`, one of the run's: `optimizer`, unless
  /// that makes the workers' steps. Then it is `assign` where the workers agree on the weights,
  /// else worker.outer, with the compensation of staleness. Its learning rate has the factor that
  /// follows from the size of the run. Tensors that `optimizer` freezes stay frozen in any case:
  /// what an encoding leaves of a difference of 0 need not be 0.
  OptimizerSpec server_optimizer(const ConsistencySpec& policy) const {
    OptimizerSpec servers = optimizer;
    if (policy.traits().workers_make_weights()) {
      servers = {.kind = kRuleOfValues,
                 .learning_rate = optimizer.learning_rate,
                 .schedule = optimizer.schedule};
    } else if (RowOf(worker.algorithm).has_local_weights) {
      servers = {.kind = worker.outer.kind,
                 .parameters = worker.outer.parameters,
                 .learning_rate = worker.outer.learning_rate,
                 .per_tensor = WithFreezingAlone(optimizer.per_tensor),
                 .staleness_scaling = optimizer.staleness_scaling,
                 .scaling_parameters = optimizer.scaling_parameters};
      // A delta has the decays, the rates and the schedule of the steps that it sums up; a gradient
      // does not.
      if (RowOf(worker.algorithm).pushes == PushKind::kGradient) {
        servers.weight_decay = optimizer.weight_decay;
        servers.per_tensor = optimizer.per_tensor;
        servers.schedule = optimizer.schedule;
      }
    }
    const ScalingRow& scaling = RowOf(servers.staleness_scaling);
    if (scaling.rate_factor != nullptr) {
      servers.learning_rate *= scaling.rate_factor(
          servers.scaling_parameters,
          {.workers = static_cast<double>(cluster.workers),
           .batch_size = static_cast<double>(training.batch_size),
           .round_size = static_cast<double>(policy.round_size(cluster.workers)),
           .one_per_member = policy.traits().one_per_member});
    }
    return servers;
  }
  OptimizerSpec server_optimizer() const { return server_optimizer(consistency); }

  friend bool operator==(const RunSpec&, const RunSpec&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_RUN_SPEC_H_

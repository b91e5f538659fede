#ifndef SLIPSTREAM_COMMON_SETTINGS_WORKER_SPEC_H_
#define SLIPSTREAM_COMMON_SETTINGS_WORKER_SPEC_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/settings/algorithm_rows.h"
#include "common/settings/optimizer_rows.h"

namespace slipstream {

/// The workers' algorithm: what they push, and when.
struct WorkerSpec {
  AlgorithmKind algorithm = kDefaultAlgorithm;
  AlgorithmParameters parameters;

  /// Set if a worker's pushes stand for as many mini-batches as its speed is of the fastest
  /// worker's: quantum() is then that of the fastest. Only with local weights, and where work comes
  /// in units.
  bool steps_by_speed = false;

  /// The number of threads of one worker that take local steps on the same weights at once. In [1,
  /// kWorkerThreadsMax], at most quantum(). Above 1 only with local weights in one fragment, with a
  /// rule of optimizer that keeps no state, on processors.
  uint32_t threads = 1;

  /// How a worker that pushes gradients gets weights.
  enum class Lanes : uint8_t {
    kStep,  // With the answer to each push, for the slot's next gradient.
    kFree,  // Beside the pushes, as often as they can be had: computing waits for none.
  };

  /// Free only under policies and settings that let no worker wait for others, and with
  /// training.pipeline_depth 2.
  Lanes lanes = Lanes::kStep;

  /// Whether the state that a worker carries from push to push (CarriedState) survives its process.
  struct SaveState {
    /// The directory for the state of every worker; empty for none. Worker-local.
    std::string directory;

    /// The time from one save to the next.
    absl::Duration interval = absl::Seconds(10);

    bool saves() const { return !directory.empty(); }

    friend bool operator==(const SaveState&, const SaveState&) = default;
  };
  SaveState save_state;

  /// The rule by which servers apply what workers with local steps push.
  struct Outer {
    RuleKind kind = RowOf(kDefaultAlgorithm).outer;
    RuleParameters parameters;

    /// By default AlgorithmRow::outer_learning_rate, or RuleRow's. > 0.
    double learning_rate = RowOf(RowOf(kDefaultAlgorithm).outer).outer_learning_rate;

    friend bool operator==(const Outer&, const Outer&) = default;
  };
  Outer outer;

  /// Returns the number of mini-batches of one push, or the most. At least 1.
  constexpr uint64_t quantum() const {
    const AlgorithmRow& row = RowOf(algorithm);
    return row.quantum == nullptr ? 1 : row.quantum(parameters);
  }

  /// Returns the number of pushes from one fetch of weights to the next. At least 1, and 1 where
  /// shards wait for members.
  constexpr uint64_t pushes_per_fetch() const {
    const AlgorithmRow& row = RowOf(algorithm);
    return row.pushes_per_fetch == nullptr ? 1 : row.pushes_per_fetch(parameters);
  }

  constexpr bool has_free_lanes() const { return lanes == Lanes::kFree; }

  /// Returns the number of fragments in which the model is exchanged. At least 1; divides the
  /// number of servers.
  constexpr uint32_t fragments() const {
    return std::max<uint32_t>(1, static_cast<uint32_t>(parameters["fragments"]));
  }

  /// Returns whether a worker receives weights beside those that it computes on.
  constexpr bool lands_apart() const { return RowOf(algorithm).keeps_weights || fragments() > 1; }

  friend bool operator==(const WorkerSpec&, const WorkerSpec&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_WORKER_SPEC_H_

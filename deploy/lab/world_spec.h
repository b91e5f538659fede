#ifndef SLIPSTREAM_DEPLOY_LAB_WORLD_SPEC_H_
#define SLIPSTREAM_DEPLOY_LAB_WORLD_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

// The machines and the network on which a run takes place in virtual time: world.yaml.

/// How long a machine computes. A mini-batch of μ examples takes (fixed + per_example · μ) times
/// the machine's factor times a random factor of mean 1, drawn for each mini-batch anew.
struct ComputeTimeSpec {
  absl::Duration fixed;
  absl::Duration per_example = absl::Milliseconds(1);

  /// The distribution of the factor that is drawn for each mini-batch.
  enum class Spread : uint8_t { kNone, kLogNormal, kPareto };
  Spread spread = Spread::kLogNormal;

  /// For lognormal: the standard deviation of the factor's logarithm. In [0, 3].
  double sigma = 0.2;

  /// For pareto: its exponent; the lower, the heavier the tail. In (1, 100].
  double alpha = 3;

  /// The standard deviation of the logarithm of a machine's factor, which is drawn once for each.
  double machines_sigma = 0;

  /// The share of machines, the last ones, that take `slower` times as long. In [0, 1].
  double slow_share = 0;
  double slower = 1;
};

/// The links of the machines; 0 gigabits per second stands for links that take no time.
struct NetworkSpec {
  absl::Duration latency;
  double worker_gbits = 0;
  double server_gbits = 0;
  double group_gbits = 0;  // Of a tree's group, from its aggregators to the servers.
};

/// A worker that is out of the ordinary.
struct VirtualWorkerSpec {
  WorkerId worker{};

  /// Its mini-batches take this many times as long, beside all else. In [0.001, 1000].
  double slower = 1;

  /// When it joins the run, and when it is lost, if it ever is, since the beginning of the run; and
  /// when it then comes back, if it does.
  absl::Duration joins;
  absl::Duration leaves = absl::InfiniteDuration();
  absl::Duration returns = absl::InfiniteDuration();
};

struct WorldSpec {
  ComputeTimeSpec compute;
  NetworkSpec network;

  /// How long a shard takes for an update; the next one waits meanwhile.
  absl::Duration update;

  /// The workers that do something out of the ordinary, each once.
  std::vector<VirtualWorkerSpec> workers;

  const VirtualWorkerSpec* Find(WorkerId worker) const {
    for (const VirtualWorkerSpec& each : workers) {
      if (each.worker == worker) return &each;
    }
    return nullptr;
  }
};

/// Reads the text of a world.yaml; `file` names it in errors. An empty text means the defaults.
/// INVALID_ARGUMENT lists everything that is wrong, by line and column.
absl::StatusOr<WorldSpec> ReadWorld(const std::string& text, const std::string& file);

/// Does the same for the file at `path`; NOT_FOUND if it cannot be read.
absl::StatusOr<WorldSpec> ReadWorldFile(const std::string& path);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_WORLD_SPEC_H_

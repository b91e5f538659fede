#ifndef SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_PLACE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_PLACE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace slipstream {

/// The place of a process among those that a scheduler has started for one run, on a node each or
/// several on a node.
struct NodePlace {
  uint32_t rank = 0;
  uint32_t size = 1;

  /// The source of this, for people: "Slurm", or "--rank and --size".
  std::string source;

  /// A name of the job, equal on all nodes and for all attempts; empty if there is none.
  std::string job;

  /// The name of this start of the job, equal on all nodes and new for each start.
  std::string attempt = "0";

  friend bool operator==(const NodePlace&, const NodePlace&) = default;
};

/// The part of the place that flags name. They come before what the environment says.
struct PlaceFlags {
  std::optional<uint32_t> rank;
  std::optional<uint32_t> size;
  std::string attempt = {};  // Empty: they do not say.
};

/// Finds the place in the variables of torchrun, Open MPI, PMI, Slurm or an indexed job of
/// Kubernetes; the innermost counts where one was started by another. INVALID_ARGUMENT, naming what
/// is missing or contradictory, if they do not tell.
absl::StatusOr<NodePlace> FindNodePlace(const std::map<std::string, std::string>& environment,
                                        const PlaceFlags& flags);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_NODE_NODE_PLACE_H_

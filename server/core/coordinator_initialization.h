#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_INITIALIZATION_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_INITIALIZATION_H_

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// Agreement on what is trained, and who sends its first weights.
///
/// The first client to name a model and a training set decides; those after it must name the same.
/// Initialisation is granted to one client at a time. If it dies before it has finished, the grant
/// passes to the next that waits, under a higher number, and starts over on all shards.
///
/// Invariants:
///  - grant numbers rise, and the newest is the only valid one;
///  - the model is final from the first grant on, and nobody is granted anything after a
///    finish, unless Restart.
///
/// Not thread-safe: one owner, which serialises calls.
class Initialization {
 public:
  /// Keeps counts of mini-batches far from overflow.
  static constexpr uint64_t kExamplesMax = uint64_t{1} << 40;

  struct Data {
    uint64_t examples = 0;
    uint64_t fingerprint = 0;

    friend bool operator==(const Data&, const Data&) = default;
  };

  /// What the clients agreed on.
  struct Model {
    TensorLayout layout;
    ShardMap shard_map;
    Data data;
  };

  struct Grant {
    uint64_t number = 0;
    Identity holder;
  };

  explicit Initialization(uint32_t shards, const CutOptions& cut = {})
      : shards_(shards), cut_(cut) {}

  /// Takes or compares what a client names, and queues the client for a grant. Fails, naming what
  /// differs from the model or cannot be cut into shards.
  absl::Status Propose(const Identity& client, const TensorLayout& layout, const Data& data);

  /// Grants initialisation to the client that has waited longest, unless someone holds the grant or
  /// nobody waits. Returns whether it did.
  bool GrantNext();

  /// The holder says that all shards have taken its weights; repeating it has no effect.
  absl::Status Finish(const Identity& client, uint64_t grant);

  /// Forgets a client that is gone, its grant included. A model that only it had named is forgotten
  /// too, if no grant was given for it yet.
  void Forget(WorkerId worker);

  /// A shard has lost the weights: all start over under a new grant. The old one's holder is in
  /// line again when it next proposes.
  void Restart();

  const std::optional<Model>& model() const { return model_; }
  const std::optional<Grant>& grant() const { return grant_; }
  bool finished() const { return finished_; }

 private:
  // Constant after construction.
  const uint32_t shards_;
  const CutOptions cut_;

  std::optional<Model> model_;

  // Clients that named the model; the waiting ones in order of asking. Bounded by the members.
  std::set<WorkerId> proposers_;
  std::list<Identity> waiting_;

  std::optional<Grant> grant_;
  uint64_t last_grant_ = 0;
  bool finished_ = false;
};

/// Where two layouts differ first, for people; empty if they are equal.
std::string FirstDifference(const TensorLayout& agreed, const TensorLayout& named);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_INITIALIZATION_H_

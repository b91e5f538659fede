#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_INITIALIZATION_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_INITIALIZATION_H_

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/shard_messages.h"

namespace slipstream {

/// Settles which model and training set a run uses, and which client sends the initial weights.
///
/// The first client that names a model and a training set decides; later clients must name the
/// same. Initialisation is granted to one client at a time. If that client dies before it has
/// finished, the next waiting client gets a grant with a higher number and starts over on all
/// shards.
///
/// Invariants:
///  - grant numbers rise, and the newest is the only valid one;
///  - the model is final from the first grant on, and no grant is given after Finish, unless
///    Restart is called.
///
/// Not thread-safe: one owner, which serialises calls.
class Initialization {
 public:
  struct Data {
    /// The examples of an epoch; 0 from a client that leaves them to the settings.
    uint64_t examples = 0;

    /// Equal for equal training sets; 0 if the client does not know it.
    uint64_t fingerprint = 0;

    /// The parts of the model that nobody trains, by name, each with a digest of its values.
    std::map<std::string, uint64_t> frozen;

    friend bool operator==(const Data&, const Data&) = default;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.examples, self.fingerprint, self.frozen);
    }
  };

  /// The model and the training set that the clients agreed on.
  struct Model {
    TensorLayout layout;
    ShardMap shard_map;
    Data data;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.layout, self.shard_map, self.data);
    }
  };

  struct Grant {
    uint64_t number = 0;
    Identity holder;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.number, self.holder);
    }
  };

  /// `fixed_examples`: the examples of an epoch, if they follow from the settings.
  explicit Initialization(uint32_t shards, const CutOptions& cut = {},
                          std::optional<uint64_t> fixed_examples = std::nullopt)
      : shards_(shards), cut_(cut), fixed_examples_(fixed_examples) {}

  /// Takes the model and data of the first client, compares those of later clients with them, and
  /// queues the client for a grant. Fails, naming the difference, if they differ, and also if the
  /// number of examples is out of bounds or the model cannot be cut into shards.
  absl::Status Propose(const Identity& client, const TensorLayout& layout, const Data& data);

  /// Queues a client that has proposed the model before, unless it waits already or holds the
  /// grant. Fails if it has not.
  absl::Status ProposeAgain(const Identity& client);

  /// Grants initialisation to the client that has waited longest, unless a client holds the grant,
  /// nobody waits, or initialisation has finished. Returns whether it did.
  bool GrantNext();

  /// Notes that all shards have taken the weights of the grant's holder. A repetition has no
  /// effect. Fails if the grant is not, or no longer, this client's.
  absl::Status Finish(const Identity& client, uint64_t grant);

  /// Forgets a client that is gone, and its unfinished grant. If no other client had named the
  /// model and no grant was ever given, the model is forgotten too.
  void Forget(WorkerId worker);

  /// Starts initialisation over under a new grant, because a shard has lost the weights. The holder
  /// of the old grant queues again when it next proposes.
  void Restart();

  /// The number of the orders that announced the newest grant.
  void OnAnnounced(uint64_t orders) { announced_by_ = orders; }
  uint64_t announced_by() const { return announced_by_; }

  const std::optional<Model>& model() const { return model_; }
  const std::optional<Grant>& grant() const { return grant_; }
  bool finished() const { return finished_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.model_, self.proposers_, self.waiting_, self.grant_, self.last_grant_,
            self.finished_, self.announced_by_);
  }

 private:
  // Constant after construction.
  const uint32_t shards_;
  const CutOptions cut_;
  const std::optional<uint64_t> fixed_examples_;

  std::optional<Model> model_;

  // The clients that named the model, and those that wait for a grant, in order of asking. Both are
  // bounded by the number of members.
  std::set<WorkerId> proposers_;
  std::list<Identity> waiting_;

  std::optional<Grant> grant_;
  uint64_t last_grant_ = 0;
  bool finished_ = false;
  uint64_t announced_by_ = 0;
};

/// Describes for people where two layouts first differ. Empty if they are equal.
std::string FirstDifference(const TensorLayout& agreed, const TensorLayout& named);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_INITIALIZATION_H_

#ifndef SLIPSTREAM_SERVER_CORE_SHARD_INITIAL_WEIGHTS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_INITIAL_WEIGHTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "server/core/shard/run_position.h"

namespace slipstream {

/// From whom a shard takes its first weights, and whether it has some. The coordinator grants this
/// to one client at a time; a later grant replaces the weights of an earlier one.
///
/// Not thread-safe: one owner.
class InitialWeights {
 public:
  /// Takes the only grant whose weights may be taken, and the client that holds it; 0 if there is
  /// none.
  void Order(uint64_t grant, const Identity& initializer) {
    grant_ = grant;
    initializer_ = initializer;
  }

  /// Returns OK if the initial weights may come from this client at present, else why not.
  absl::Status Check(const InitializeHeader& header, const std::optional<ShardPlan>& plan,
                     Phase phase) const;

  /// Notes that all weights of a grant have come. Returns false if they had come before.
  bool Receive(uint64_t grant);

  /// Notes that the weights of this grant are in place as version 0. Returns true the first time.
  bool Place(uint64_t grant);

  /// Notes that the weights of a checkpoint are in place.
  void Return() { is_initialized_ = true; }

  bool is_initialized() const { return is_initialized_; }

  /// Whether the weights of the newest grant are in place.
  bool has_granted() const { return grant_ != 0 && initialized_grant_ == grant_; }

  /// The grant of the weights that came last, and that of the weights that are version 0.
  uint64_t received_grant() const { return received_grant_; }
  uint64_t initialized_grant() const { return initialized_grant_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.grant_, self.initializer_, self.received_grant_, self.initialized_grant_,
            self.is_initialized_);
  }

 private:
  uint64_t grant_ = 0;
  Identity initializer_;
  uint64_t received_grant_ = 0;
  uint64_t initialized_grant_ = 0;
  bool is_initialized_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_INITIAL_WEIGHTS_H_

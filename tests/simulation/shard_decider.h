#ifndef SLIPSTREAM_TESTS_SIMULATION_SHARD_DECIDER_H_
#define SLIPSTREAM_TESTS_SIMULATION_SHARD_DECIDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "server/core/lag_tracker.h"
#include "server/core/shard_core.h"
#include "server/core/shard_effects.h"
#include "tests/simulation/planted_bug.h"

namespace slipstream {

/// The core of a simulated shard: the production ShardCore, or one with a planted bug.
///
/// Not thread-safe: one owner.
class ShardDecider {
 public:
  virtual ~ShardDecider() = default;

  virtual void SetPlan(const ShardCore::Plan& plan) = 0;
  virtual Effects OnView(const View& view) = 0;
  virtual Effects OnPhase(Phase phase, Version drain_version) = 0;
  virtual Effects OnWorkEnds() = 0;
  virtual PullDecision OnPull(const PullRequest& request) = 0;
  virtual std::optional<PushReply> OnPushHeader(const PushHeader& header) = 0;
  virtual PushDecision OnPush(const ShardCore::PushFacts& push) = 0;
  virtual void OnCancelled(Ticket ticket) = 0;
  virtual Effects OnInitialized() = 0;
  virtual Effects OnPublished(Version version) = 0;
  virtual Effects OnPullDone(ShardCore::Reader reader) = 0;
  virtual void OnPushAbandoned(const PushHeader& header) = 0;
  virtual void ReleaseBytes(uint64_t bytes) = 0;

  virtual uint64_t NewestBatchEnd(WorkerId worker, Incarnation incarnation) const = 0;
  virtual bool has_plan() const = 0;
  virtual bool is_initialized() const = 0;
  virtual bool is_drained() const = 0;
  virtual Version published() const = 0;
  virtual uint64_t batches_of_rounds() const = 0;
  virtual size_t parked() const = 0;
  virtual uint64_t bytes_queued() const = 0;
  virtual const LagTracker& lag() const = 0;
};

/// Every call passed on to a core of this class as it is. A class that is not ShardCore is a copy
/// of it, with types of its own for what is declared inside.
template <typename Core>
class DeciderOf : public ShardDecider {
 public:
  explicit DeciderOf(const typename Core::Options& options) : core_(options) {}

  void SetPlan(const ShardCore::Plan& plan) override {
    if constexpr (std::is_same_v<Core, ShardCore>) {
      core_.SetPlan(plan);
    } else {
      core_.SetPlan({.run = plan.run,
                     .shard_map = plan.shard_map,
                     .count = plan.count,
                     .batches_total = plan.batches_total,
                     .examples_per_epoch = plan.examples_per_epoch});
    }
  }
  Effects OnView(const View& view) override { return core_.OnView(view); }
  Effects OnPhase(Phase phase, Version drain_version) override {
    return core_.OnPhase(phase, drain_version);
  }
  Effects OnWorkEnds() override { return core_.OnWorkEnds(); }
  PullDecision OnPull(const PullRequest& request) override { return core_.OnPull(request); }
  std::optional<PushReply> OnPushHeader(const PushHeader& header) override {
    return core_.OnPushHeader(header);
  }
  PushDecision OnPush(const ShardCore::PushFacts& push) override {
    if constexpr (std::is_same_v<Core, ShardCore>) {
      return core_.OnPush(push);
    } else {
      return core_.OnPush({.header = push.header,
                           .values_received = push.values_received,
                           .is_finite = push.is_finite,
                           .checksum = push.checksum});
    }
  }
  void OnCancelled(Ticket ticket) override { core_.OnCancelled(ticket); }
  Effects OnInitialized() override { return core_.OnInitialized(); }
  Effects OnPublished(Version version) override { return core_.OnPublished(version); }
  Effects OnPullDone(ShardCore::Reader reader) override { return core_.OnPullDone(reader); }
  void OnPushAbandoned(const PushHeader& header) override { core_.OnPushAbandoned(header); }
  void ReleaseBytes(uint64_t bytes) override { core_.ReleaseBytes(bytes); }

  uint64_t NewestBatchEnd(WorkerId worker, Incarnation incarnation) const override {
    return core_.NewestBatchEnd(worker, incarnation);
  }
  bool has_plan() const override { return core_.has_plan(); }
  bool is_initialized() const override { return core_.is_initialized(); }
  bool is_drained() const override { return core_.is_drained(); }
  Version published() const override { return core_.published(); }
  uint64_t batches_of_rounds() const override { return core_.batches_of_rounds(); }
  size_t parked() const override { return core_.parked(); }
  uint64_t bytes_queued() const override { return core_.bytes_queued(); }
  const LagTracker& lag() const override { return core_.lag(); }

 protected:
  Core core_;
};

std::unique_ptr<ShardDecider> MakeShardDecider(const ShardCore::Options& options, PlantedBug bug);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SHARD_DECIDER_H_

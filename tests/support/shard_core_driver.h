#ifndef SLIPSTREAM_TESTS_SUPPORT_SHARD_CORE_DRIVER_H_
#define SLIPSTREAM_TESTS_SUPPORT_SHARD_CORE_DRIVER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/run/run_spec.h"
#include "server/core/shard_core.h"
#include "server/core/shard_effects.h"

namespace slipstream {

/// Plays the shell around a ShardCore whose model is one number: keeps the payloads that the core
/// retains, carries out folds and updates in double precision, and publishes when the test says so.
/// What every shell relies on is checked on the way, and reported as a failure of the test: a fold
/// names a payload held, once; an update follows the folds of its round and steps by one; a ticket
/// released is one that waits; an update that was forecast at a push's header is the one ordered if
/// nothing happens before the push is complete.
///
/// Not thread-safe: one owner.
class ShardCoreDriver {
 public:
  struct DoneUpdate {
    Update update;
    std::vector<WorkerId> folded;  // In the order of the sum.
  };

  explicit ShardCoreDriver(const ShardCore::Options& options);
  ShardCoreDriver(const ShardCore::Options& options, const ShardCore::Plan& plan);

  /// Installs the view, says that training has begun and that version 0 is in place.
  void Start(const View& view);

  // What the world does. Effects are carried out before the call returns.

  PushDecision Push(const ShardCore::PushFacts& push, double gradient = 0);

  /// The answer, at once or when released, is sent in no time.
  PullDecision Pull(const PullRequest& request);
  void Cancel(Ticket ticket);
  void OnView(const View& view) { Carry(core_.OnView(view)); }
  void OnPhase(Phase phase, uint64_t drain_version = 0) {
    Carry(core_.OnPhase(phase, Version{drain_version}));
  }

  void OnWorkEnds() { Carry(core_.OnWorkEnds()); }

  /// Publishes the oldest update decided; false if there is none.
  bool PublishNext();
  void PublishAll();

  // What came of it.

  ShardCore& core() { return core_; }
  const ShardCore& core() const { return core_; }

  /// By version, decided ones included; the first is 0.
  const std::vector<double>& weights() const { return weights_; }
  const std::vector<DoneUpdate>& updates() const { return updates_; }

  /// Of the last update, worker ids in the order of the sum, as "0 1 2".
  std::string LastFolded() const;

  const std::set<Ticket>& waiting() const { return waiting_; }
  const std::map<Ticket, Release>& released() const { return released_; }
  size_t payloads_held() const { return payloads_.size(); }

  /// Pushes whose update was forecast.
  size_t forecasts() const { return forecasts_; }

 private:
  struct Payload {
    WorkerId worker{};
    double gradient = 0;
    uint64_t bytes = 0;
  };

  void Carry(const Effects& effects);
  void CarryFold(const Fold& fold);
  void CarryUpdate(const Update& update);
  void NoteParked(const std::variant<Serve, Park>& answer);
  void CheckForecast(const Forecast& forecast, const PushDecision& decision);

  ShardCore core_;
  size_t forecasts_ = 0;
  std::map<PushId, Payload> payloads_;
  double sum_ = 0;
  std::vector<WorkerId> folded_;  // Since the last update.
  std::vector<double> weights_ = {0.0};
  std::vector<DoneUpdate> updates_;
  std::deque<Version> unpublished_;
  std::set<Ticket> waiting_;
  std::map<Ticket, ShardCore::Reader> pulls_waiting_;
  std::map<Ticket, Release> released_;
};

/// A plan of 4 values and very many mini-batches.
ShardCore::Plan TestPlan();

/// Constant learning rate 1, so that a weight is minus the sum of the means applied.
ShardCore::Options TestOptions(const ConsistencySpec& consistency);

/// Founding members 0 … workers−1 with incarnations 1 … workers.
View FoundingView(uint32_t workers);

/// The member's identity in the plan's run.
Identity IdentityOf(const Member& member);

/// A correct push of a founding member, which asks for no weights.
ShardCore::PushFacts PushOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// The same in an exchange.
ShardCore::PushFacts ExchangeOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// A push without values.
ShardCore::PushFacts ExcuseOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// A founding member's pull that a gradient will follow, before its push of this sequence.
PullRequest TrainingPullOf(uint32_t worker, uint64_t min_version = 0, uint64_t sequence = 1);

/// Everything of the core that a refused push must leave alone, in one line.
std::string Describe(const ShardCore& core);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_SHARD_CORE_DRIVER_H_

#ifndef SLIPSTREAM_TESTS_SUPPORT_SHARD_MACHINE_DRIVER_H_
#define SLIPSTREAM_TESTS_SUPPORT_SHARD_MACHINE_DRIVER_H_

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
#include "server/core/shard_machine.h"
#include "server/core/shard_output.h"

namespace slipstream {

/// A call is answered from this version.
struct Serve {
  Version version{};
  std::optional<RoundWork> work;
};

/// A call waits.
struct Park {
  CallId call{};
};

/// What came of a push.
struct PushDecision {
  PushReply reply;
  bool took_effect = false;

  /// Its payload is kept.
  bool retained = false;

  /// Nothing: it was answered at once, without weights.
  std::optional<std::variant<Serve, Park>> answer;
};

/// What came of a pull.
using PullDecision = std::variant<Serve, Park, PullRefusal>;

/// Plays the shell around a ShardMachine whose model is one number: keeps the payloads that the
/// machine wants kept, carries out folds and updates in double precision, and publishes when the
/// test says so. What every shell relies on is checked on the way, and reported as a failure of the
/// test: a fold names a payload held, once; an update follows the folds of its round and steps by
/// one; whoever is answered later is one that waits; an update that is drafted from a push's header
/// on is the one ordered if nothing happens before the push is complete.
///
/// Not thread-safe: one owner.
class ShardMachineDriver {
 public:
  struct DoneUpdate {
    Update update;
    std::vector<WorkerId> folded;  // In the order of the sum.
  };

  explicit ShardMachineDriver(const ShardMachine::Options& options);
  ShardMachineDriver(const ShardMachine::Options& options, const ShardPlan& plan);

  /// Installs the view, says that training has begun and that version 0 is in place.
  void Start(const View& view);

  // What the world does. What is ordered is carried out before the call returns.

  PushDecision Push(const ShardMachine::PushFacts& push, double gradient = 0);

  /// The answer, at once or when released, is sent in no time.
  PullDecision Pull(const PullRequest& request);
  void Cancel(CallId call);
  void OnView(const View& view) { Carry(core_.OnView(view)); }
  void OnPhase(Phase phase, uint64_t drain_version = 0) {
    Carry(core_.OnPhase(phase, Version{drain_version}));
  }

  void OnWorkEnds() { Carry(core_.OnWorkEnds()); }

  /// Publishes the oldest update decided; false if there is none.
  bool PublishNext();
  void PublishAll();

  // What came of it.

  ShardMachine& core() { return core_; }
  const ShardMachine& core() const { return core_; }

  /// By version, decided ones included; the first is 0.
  const std::vector<double>& weights() const { return weights_; }
  const std::vector<DoneUpdate>& updates() const { return updates_; }

  /// Of the last update, worker ids in the order of the sum, as "0 1 2".
  std::string LastFolded() const;

  /// Calls that wait, and those that were answered after they had waited.
  const std::set<CallId>& waiting() const { return waiting_; }
  const std::map<CallId, Serve>& released() const { return released_; }
  /// Members whom the open round lacks.
  std::vector<WorkerId> LackedMembers() const;
  size_t payloads_held() const { return payloads_.size(); }

  /// The update that is drafted if a push of this header comes now.
  std::optional<Forecast> ForecastOf(const PushHeader& header);

  /// Pushes whose update was drafted.
  size_t drafts() const { return drafts_; }

 private:
  struct Payload {
    WorkerId worker{};
    double gradient = 0;
    uint64_t bytes = 0;
  };

  CallId NewCall() { return CallId{next_call_++}; }

  /// What `own` is answered, if it is.
  std::optional<ShardAnswer> Carry(const ShardOutput& output, CallId own = {});
  void CarryFold(const Fold& fold);
  void CarryUpdate(const Update& update);
  void CarryAnswer(const ShardAnswer& answer);
  void CheckDraft(const ShardOutput& output);

  ShardMachine core_;
  uint64_t next_call_ = 1;
  size_t drafts_ = 0;
  std::map<PushId, Payload> payloads_;
  double sum_ = 0;
  std::vector<WorkerId> folded_;  // Since the last update.
  std::vector<double> weights_ = {0.0};
  std::vector<DoneUpdate> updates_;
  std::deque<Version> unpublished_;
  std::set<CallId> waiting_;
  std::map<CallId, Reader> pulls_waiting_;
  std::map<CallId, Serve> released_;
};

/// A plan of 4 values and very many mini-batches.
ShardPlan TestPlan();

/// Constant learning rate 1, so that a weight is minus the sum of the means applied.
ShardMachine::Options TestOptions(const ConsistencySpec& consistency);

/// Founding members 0 … workers−1 with incarnations 1 … workers.
View FoundingView(uint32_t workers);

/// The member's identity in the plan's run.
Identity IdentityOf(const Member& member);

/// A correct push of a founding member, which asks for no weights.
ShardMachine::PushFacts PushOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// The same in an exchange.
ShardMachine::PushFacts ExchangeOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// A push without values.
ShardMachine::PushFacts ExcuseOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// A founding member's pull that a gradient will follow, before its push of this sequence.
PullRequest TrainingPullOf(uint32_t worker, uint64_t min_version = 0, uint64_t sequence = 1);

/// Everything of the core that a refused push must leave alone, in one line.
std::string Describe(const ShardMachine& core);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_SHARD_MACHINE_DRIVER_H_

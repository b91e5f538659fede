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
#include "common/settings/run_spec.h"
#include "server/core/shard/shard_machine.h"
#include "server/core/shard/shard_output.h"

namespace slipstream {

/// The call is answered from this version.
struct Serve {
  Version version{};
  std::optional<RoundWork> work;
  uint64_t examples = 0;
  std::vector<PartAnswer> parts = {};
};

/// The call waits.
struct Park {
  CallId call{};
};

/// The result of a push.
struct PushDecision {
  PushReply reply;
  bool took_effect = false;

  /// Set if the machine keeps the push's payload.
  bool retained = false;

  /// Null if the push was answered at once and without weights.
  std::optional<std::variant<Serve, Park>> answer;
};

/// The result of a pull.
using PullDecision = std::variant<Serve, Park, PullRefusal>;

/// Plays the shell around a ShardMachine whose model is one number: keeps the payloads that the
/// machine wants kept, carries out folds and updates in double precision, and publishes versions
/// when the test says so. On the way it checks what every shell relies on, and reports a violation
/// as a failure of the test:
/// - A fold names a payload that is held, and each payload is folded once.
/// - An update follows the folds of its round and advances the version by one.
/// - A later answer belongs to a call that waits.
/// - If an update is drafted from a push's header and nothing happens before the push is complete,
///   the update ordered is the one drafted.
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

  /// Installs the view, reports that training has begun, and that version 0 is in place.
  void Start(const View& view);

  // Events. The resulting orders are carried out before the call returns.

  PushDecision Push(const ShardMachine::PushFacts& push, double gradient = 0);

  /// The answer, whether immediate or released later, counts as sent at once.
  PullDecision Pull(const PullRequest& request);
  void Cancel(CallId call);
  void OnView(const View& view) { Carry(core_.OnView(view)); }
  void OnPhase(Phase phase, uint64_t drain_version = 0) {
    Carry(core_.OnPhase(phase, Version{drain_version}));
  }

  void OnStages(const std::vector<RunStage>& stages) { core_.OnStages(stages); }
  void OnStage(uint32_t stage) {
    core_.OnStage(stage);
    OnPhase(core_.phase());
  }
  void OnWorkEnds() { Carry(core_.OnWorkEnds()); }
  void OnSaveOrder(const SaveOrder& order) { Carry(core_.OnSaveOrder(order)); }

  /// Ends the process of the shard, and has the shard go on in `generation` from the state that was
  /// saved last. REQUIRES: there is one, and its version was published.
  void Return(Generation generation);

  /// Publishes the oldest unpublished update. Returns false if there is none.
  bool PublishNext();
  void PublishAll();

  // Results.

  ShardMachine& core() { return core_; }
  const ShardMachine& core() const { return core_; }

  /// Weights and updates by version, including versions that are decided but not published.
  /// weights()[0] is version 0.
  const std::vector<double>& weights() const { return weights_; }
  const std::vector<DoneUpdate>& updates() const { return updates_; }

  /// Returns the workers folded into the last update, in the order of the sum, as "0 1 2".
  std::string LastFolded() const;

  /// The calls that wait, and the calls that were answered after they had waited.
  const std::set<CallId>& waiting() const { return waiting_; }
  const std::map<CallId, Serve>& released() const { return released_; }
  /// Returns the members that the open round lacks.
  std::vector<WorkerId> LackedMembers() const;
  size_t payloads_held() const { return payloads_.size(); }

  /// Returns the update that is drafted if a push with this header comes now.
  std::optional<Forecast> ForecastOf(const PushHeader& header);

  /// The states that the machine had saved, oldest first.
  const std::vector<ShardState>& saved() const { return saved_; }

  /// The number of pushes whose update was drafted.
  size_t drafts() const { return drafts_; }

 private:
  struct Payload {
    WorkerId worker{};
    double gradient = 0;
    uint64_t bytes = 0;
  };

  CallId NewCall() { return CallId{next_call_++}; }

  /// Carries out the output. Returns the answer to call `own`, if the output contains one.
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
  std::vector<ShardState> saved_;
};

/// Returns a plan of 4 values and very many mini-batches.
ShardPlan TestPlan();

/// Returns options with the constant learning rate 1: a weight is minus the sum of the means
/// applied.
ShardMachine::Options TestOptions(const ConsistencySpec& consistency);

/// Does the same for a shard that saves its state.
ShardMachine::Options WithSaves(const ConsistencySpec& consistency);

/// Returns an order to save: this version, where shards are in step.
SaveOrder OrderOf(uint64_t number, uint64_t version = 0);

/// Returns a view of the founding members 0 … workers−1 with incarnations 1 … workers.
View FoundingView(uint32_t workers);

/// Returns the member's identity in the plan's run.
Identity IdentityOf(const Member& member);

/// Returns a correct push of a founding member that does not ask for weights.
ShardMachine::PushFacts PushOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// Returns the same push in an exchange, which asks for weights.
ShardMachine::PushFacts ExchangeOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// Returns the push of an aggregator that combines these, which are pushes of different workers.
/// `weighs_examples` has to be what the policy's rounds do.
ShardMachine::PushFacts CompositeOf(const std::vector<ShardMachine::PushFacts>& pushes,
                                    bool weighs_examples = false);

/// Returns a push without values.
ShardMachine::PushFacts ExcuseOf(uint32_t worker, uint64_t sequence, uint64_t base);

/// Returns a founding member's training pull, made before its push of this sequence.
PullRequest TrainingPullOf(uint32_t worker, uint64_t min_version = 0, uint64_t sequence = 1);

/// Returns, in one line, all state of the core that a refused push must not change.
std::string Describe(const ShardMachine& core);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_SHARD_MACHINE_DRIVER_H_

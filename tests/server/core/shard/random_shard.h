#ifndef SLIPSTREAM_TESTS_SERVER_CORE_SHARD_RANDOM_SHARD_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_SHARD_RANDOM_SHARD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/base/philox.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"
#include "common/settings/run_spec.h"
#include "server/core/shard/shard_machine.h"
#include "server/core/shard/shard_output.h"
#include "server/core/shard/shard_return.h"

namespace slipstream {

/// An event of a shard's machine. The members that its kind does not need are empty.
struct ShardEvent {
  enum class Kind {
    kView,
    kPhase,
    kInitialized,
    kPush,
    kPull,
    kPullDone,
    kCancel,
    kPublish,
    kSaveOrder,
    kAwaitedReaders,
    kProcessEnd,
    kReturn,
  };

  Kind kind{};
  CallId call{};

  /// The push and its gradient, which is one number. If the push is wrong, it must be refused so.
  PushFacts push = {};
  double gradient = 0;
  std::optional<PushOutcome> wrong = {};
  bool may_be_refused = false;

  /// The pull, also at its end.
  PullRequest pull = {};
  View view = {};
  Phase phase{};
  SaveOrder save = {};
  LagLimits readers = {};
  EndedProcess end = {};

  /// The generation that begins, and the state that it begins with.
  Generation generation{};
  std::shared_ptr<const ShardState> saved = {};
};

/// The outcome of an event.
struct ShardEffect {
  /// The answer and the record. They are the refusal if a push is refused by its header.
  ShardOutput output;
  PushId push{};
  std::optional<Forecast> draft;
};

/// The plan of all random shards.
ShardPlan RandomShardPlan();

/// Has the event happen to a machine, whose payloads are free once they are folded.
ShardEffect Apply(const ShardEvent& event, ShardMachine& machine);

/// An event that has happened, as the properties see it.
struct ShardStep {
  const ShardEvent& event;
  const ShardEffect& effect;
  const ShardMachine& machine;  // After the event.
  Version decided_before;
  std::string described_before;  // Of pushes that may be refused.
};

/// The setting of a random history.
struct ShardSetting {
  std::string name;
  ConsistencySpec consistency;
  StalenessScaling scaling = StalenessScaling::kNone;

  /// Set if there is one worker, which publishes whole weights; and if it does so one at a time, as
  /// readers may lag behind by so many versions only.
  bool publishes = false;
  bool awaits_readers = false;

  /// Whether NaiveRounds knows the rules of its rounds.
  bool has_naive_rounds() const;

  friend std::ostream& operator<<(std::ostream& out, const ShardSetting& setting) {
    return out << setting.name;
  }
};

/// How often the histories came to what they are about.
struct ShardsSeen {
  size_t through_bytes = 0;
  size_t saves = 0;
  size_t returns = 0;
  size_t served = 0;
  size_t refused = 0;
  size_t waited = 0;
  size_t lagged = 0;
};

/// A property of a shard. It sees each event and what follows from it, and keeps what it needs for
/// itself.
class ShardProperty {
 public:
  virtual ~ShardProperty() = default;
  virtual std::string name() const = 0;

  /// Fails the test if the property does not hold after this step.
  virtual void Check(const ShardStep& step) = 0;
};

/// Returns all properties of shards with these options, which must outlive them, as `setting` and
/// `seen` must. Each has to see all events.
std::vector<std::unique_ptr<ShardProperty>> PropertiesOf(const ShardSetting& setting,
                                                         const ShardMachine::Options& options,
                                                         uint64_t seed, ShardsSeen& seen);

/// A random history of one shard: right, wrong and repeated pushes, pulls of workers and readers,
/// members that come and go, saves, processes that end, returns to what was saved, and the end of
/// the run. After each event all properties are checked.
///
/// Not thread-safe: one owner.
class RandomShard {
 public:
  RandomShard(const ShardSetting& setting, uint64_t seed, ShardsSeen& seen);

  void Step();

  /// Ends the run as the coordinator would, and all pulls. Afterwards no call may be waiting.
  void End();

 private:
  using Kind = ShardEvent::Kind;

  void Happen(const ShardEvent& event);
  void NoteCalls(const ShardEvent& event, const ShardOutput& output);

  void Push();
  void PushWrong();
  void Repeat();
  void Pull();
  void EndPull();
  void Cancel();
  void ChangeView();
  void OrderSave();
  void AwaitReaders();
  void EndProcess();
  void Return();
  void Publish();
  void PublishAll();

  void Push(const PushFacts& push, double gradient,
            std::optional<PushOutcome> wrong = std::nullopt);
  PushFacts NextPush(const Member& member, Version base);
  Version RandomBase();
  Stamp RandomStamp();
  std::optional<Member> RandomMember();
  template <typename Container>
  auto OneOf(Container& container);

  const ShardSetting setting_;
  RandomStream random_;
  const ShardMachine::Options options_;
  ShardMachine machine_;
  std::vector<std::unique_ptr<ShardProperty>> properties_;
  std::vector<std::pair<uint32_t, void (RandomShard::*)()>> chances_;

  std::map<CallId, PullRequest> waiting_;  // For pushes, the requests are empty.
  std::map<CallId, PullRequest> sending_;
  std::map<Incarnation, std::vector<PushFacts>> sent_;  // The pushes that took effect.
  std::vector<Stamp> stamps_;                           // Of what was pushed.
  std::map<Incarnation, uint64_t> clocks_;
  std::shared_ptr<const ShardState> saved_;
  uint64_t calls_ = 0;
  uint64_t orders_ = 0;
  uint64_t views_ = 1;
  uint64_t incarnations_ = 100;
  uint64_t generation_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_SHARD_RANDOM_SHARD_H_

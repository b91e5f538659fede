#ifndef SLIPSTREAM_COMMON_POLICY_POLICY_H_
#define SLIPSTREAM_COMMON_POLICY_POLICY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/ids.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The facts about a member that a policy may know.
struct MemberFacts {
  /// Set if the member has contributed to the open round, or been excused from it.
  bool heard = false;

  /// The member's clock, as far as it has told.
  WorkerClock clock{};
};

/// The facts about a shard that a policy may know.
struct ShardFacts {
  /// The version that the open round starts from.
  Version decided{};

  /// Set for the first shard of the run. It alone may let workers wait for a round that the guard
  /// holds back: two workers that waited at two shards, each for the other's gradient, would wait
  /// for ever.
  bool is_first = true;

  /// The number of gradients in the open round, and of members excused from it.
  uint32_t contributions = 0;
  uint32_t excused = 0;

  /// Set if the round was held back, and so had all the gradients that it needs. A worker that
  /// joins then must not raise that number, since the workers that wait for the round push nothing
  /// until it closes.
  bool was_held_back = false;

  /// Set if no further gradients will come, because the run's work is done.
  bool is_draining = false;
  uint32_t member_count = 0;

  /// The number of members that owe the open round a gradient or an excuse and have not been heard.
  /// Known only under policies that take one gradient from each member.
  uint32_t awaited = 0;

  /// The oldest base version of the gradients on their way, if there are any. Known only where a
  /// guard blocks.
  std::optional<Version> oldest_base;
};

/// A complete gradient that asks to be admitted.
struct GradientFacts {
  const MemberFacts& member;
  Version base{};  // Not above ShardFacts::decided.
};

/// A worker's pull of weights to train on.
struct PullFacts {
  const MemberFacts& member;

  /// Set if the worker's push came before in the same call.
  bool after_push = false;

  /// Set if a gradient of another slot of the worker is on its way.
  bool has_beside = false;
};

/// The conditions for answering a worker's pull. It waits until all of them hold.
struct PullCondition {
  /// This version is published. It may be one that is not even decided yet.
  Version version{};

  /// No member with work at hand has a clock below this.
  WorkerClock slowest{};

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.version, self.slowest);
  }
};

/// The answer to a gradient that asks to be admitted.
struct Admission {
  enum class Kind : uint8_t {
    kJoin,
    kLate,      // The gradient uses up its sequence, and has no effect.
    kDrop,      // The same, because of its age.
    kTooStale,  // The gradient is refused: its worker computes a new one.
  };
  Kind kind = Kind::kJoin;
  std::string_view why;  // The reason for kLate, for people.
};

/// The gradients that the open round lacks.
struct Lack {
  /// Set if it lacks one of each member that is awaited, or an excuse; see ShardFacts::awaited.
  bool each_awaited = false;

  /// The number that it lacks from any members.
  uint32_t gradients = 0;

  /// Set if the staleness guard holds the round back, for the gradients on their way whose base is
  /// before this version.
  std::optional<Version> bases_before;

  bool is_held_back() const { return bases_before.has_value(); }
  bool none() const { return !each_awaited && gradients == 0 && !is_held_back(); }
};

/// A consistency policy: when a gradient still counts, what a round lacks before it closes, and
/// which version a worker waits for.
///
/// Stateless: equal facts give equal decisions, so a test is a table and a simulation replays.
/// Thread-safe: const after construction.
class Policy {
 public:
  virtual ~Policy() = default;

  /// Decides about a gradient. Staleness counts only in the policy of a staleness guard.
  virtual Admission Admit(const ShardFacts& shard, const GradientFacts& gradient) const = 0;

  /// Returns what the open round lacks. The round closes as soon as it lacks nothing; status shows
  /// the same.
  virtual Lack Lacks(const ShardFacts& shard) const = 0;

  /// Returns the oldest version whose gradient would count, and how far behind the others may be.
  virtual PullCondition PullWaitsFor(const ShardFacts& shard, const PullFacts& pull) const = 0;
};

/// Makes the policy of a run, with its staleness guard around it.
std::unique_ptr<const Policy> MakePolicy(const ConsistencySpec& spec);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_POLICY_POLICY_H_

#ifndef SLIPSTREAM_COMMON_POLICY_POLICY_H_
#define SLIPSTREAM_COMMON_POLICY_POLICY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "common/base/ids.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// A member, as far as a policy may know it.
struct MemberFacts {
  WorkerId worker{};

  /// It owes the open round a gradient or an excuse, whether or not that has come.
  bool owes = false;

  /// It has contributed to the open round, or been excused from it.
  bool heard = false;

  /// Its clock, as far as it has told.
  WorkerClock clock{};

  /// The oldest base version of the gradients on their way; means nothing without any. Both are
  /// known only where a guard blocks.
  Version oldest_base{};
  uint32_t on_their_way = 0;
};

/// A shard, as far as a policy may know it. Members are in the order of their ids.
struct ShardFacts {
  /// The version that the open round starts from.
  Version decided{};

  /// The first shard of the run. It alone may let workers wait for what the guard holds back: two
  /// that waited at two shards, each for the other's gradient, would wait for ever.
  bool is_first = true;

  /// Gradients in the open round, and members excused from it.
  uint32_t contributions = 0;
  uint32_t excused = 0;

  /// The round has been held back, and so had all it needs: who joins makes it want no more, as
  /// those who wait for it bring nothing until it closes.
  bool was_held_back = false;

  /// No further gradients will come: the run's work is done.
  bool is_draining = false;
  uint32_t member_count = 0;

  /// Each of them, where somebody may wait for a member; else none.
  std::span<const MemberFacts> members;
};

/// A complete gradient that knocks.
struct GradientFacts {
  const MemberFacts& member;
  Version base{};  // Not above ShardFacts::decided.
};

/// A worker that wants weights to train on.
struct PullFacts {
  const MemberFacts& member;

  /// Its push came before in the same call.
  bool after_push = false;

  /// A gradient of another slot of the worker is on its way.
  bool has_beside = false;
};

/// A worker's pull waits until all of this is so.
struct PullCondition {
  /// This version is published. It may not even be decided yet.
  Version version{};

  /// No member who has work at hand has a clock below this.
  WorkerClock slowest{};
};

/// The answer to a gradient that knocks.
struct Admission {
  enum class Kind : uint8_t {
    kJoin,
    kLate,      // It used up its sequence, and has no effect.
    kDrop,      // The same, for its age.
    kTooStale,  // Refused: its worker computes anew.
  };
  Kind kind = Kind::kJoin;
  std::string_view why;  // For people, of kLate.
};

/// Whom, or how many, the open round lacks.
struct Lack {
  absl::InlinedVector<WorkerId, 4> members;  // By id.
  uint32_t gradients = 0;                    // So many more, of whomever.

  /// These members have gradients on their way, which the staleness guard waits for.
  bool is_held_back = false;

  bool none() const { return members.empty() && gradients == 0; }
};

/// A consistency policy: when a gradient still counts, what a round lacks before it closes, and
/// which version a worker waits for.
///
/// Stateless: equal facts give equal decisions, so a test is a table and a simulation replays.
/// Thread-safe: const after construction.
class Policy {
 public:
  virtual ~Policy() = default;

  /// Says nothing about staleness guards, unless it is one.
  virtual Admission Admit(const ShardFacts& shard, const GradientFacts& gradient) const = 0;

  /// The open round closes as soon as it lacks nothing. Status shows the same.
  virtual Lack Lacks(const ShardFacts& shard) const = 0;

  /// The oldest version whose gradient would count, and how far behind the others may be.
  virtual PullCondition PullWaitsFor(const ShardFacts& shard, const PullFacts& pull) const = 0;
};

/// The policy of a run, with its staleness guard around it.
std::unique_ptr<const Policy> MakePolicy(const ConsistencySpec& spec);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_POLICY_POLICY_H_

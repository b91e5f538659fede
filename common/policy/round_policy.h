#ifndef SLIPSTREAM_COMMON_POLICY_ROUND_POLICY_H_
#define SLIPSTREAM_COMMON_POLICY_ROUND_POLICY_H_

#include <cstdint>

#include "common/run/run_spec.h"

namespace slipstream {

/// A consistency policy as three predicates over facts: when a push still counts, when a round
/// closes, and which version a training pull must wait for. Softsync's rounds are those of
/// n-softsync (Gupta, Zhang, Wang: Model accuracy and runtime tradeoff in distributed deep
/// learning, ICDM 2016, arXiv 1509.04210).
///
/// Stateless: equal facts give equal decisions, so a test is a table and a simulation replays.
/// Thread-safe: const after construction.
class RoundPolicy {
 public:
  explicit RoundPolicy(const ConsistencySpec& spec) : spec_(spec) {}

  /// True if rounds are per member: each owes exactly one gradient of the round's base version, and
  /// what arrives for an older version is late.
  bool rounds_are_synchronous() const { return spec_.is_synchronous(); }

  enum class PushDecision { kJoinRound, kDropLate };

  struct PushFacts {
    uint64_t base = 0;
    /// The version the open round starts from.
    uint64_t decided = 0;
  };

  /// REQUIRES: facts.base <= facts.decided (a base from the future is refused before).
  PushDecision DecidePush(const PushFacts& facts) const {
    if (rounds_are_synchronous() && facts.base < facts.decided) return PushDecision::kDropLate;
    return PushDecision::kJoinRound;
  }

  struct RoundFacts {
    /// Members of the current view.
    uint32_t members = 0;

    /// Gradients that joined the round.
    uint32_t contributions = 0;

    /// Members that have nothing for this round and said so.
    uint32_t excused = 0;

    /// Members that owe this round a gradient or an excuse and have sent neither.
    uint32_t awaited = 0;

    /// A gradient on its way would come to exceed the staleness guard if the round closed.
    bool is_held_back = false;

    /// The round was held back before, and so had all it needs: who joins makes it want no more,
    /// as those who wait for it bring nothing until it closes.
    bool was_held_back = false;

    /// No further gradients will come: the run's work is done.
    bool is_draining = false;
  };

  /// Whether the round closes now. A synchronous round closes when nobody is awaited any more, also
  /// with excuses alone; one that nobody has answered yet stays open.
  bool Closes(const RoundFacts& facts) const {
    if (rounds_are_synchronous()) {
      return facts.contributions + facts.excused > 0 && facts.awaited == 0;
    }
    if (facts.contributions == 0) return false;
    if (facts.is_draining) return true;
    const bool is_full = facts.contributions >= RoundSize(spec_, facts.members);
    return !facts.is_held_back && (is_full || facts.was_held_back);
  }

  uint32_t round_size(uint32_t members) const { return RoundSize(spec_, members); }

 private:
  const ConsistencySpec spec_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_POLICY_ROUND_POLICY_H_

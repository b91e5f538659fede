#ifndef SLIPSTREAM_SERVER_CORE_ROUND_H_
#define SLIPSTREAM_SERVER_CORE_ROUND_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "common/base/ids.h"
#include "common/run/policy_rows.h"

namespace slipstream {

/// Names a complete push whose payload the shell holds until it has been folded.
enum class PushId : uint64_t {};

/// An instruction to the shell: sum = weight · gradient if `first`, else sum += weight · gradient.
/// The payload can be let go afterwards.
struct Fold {
  PushId push{};
  float weight = 1.0f;
  bool first = false;

  friend bool operator==(const Fold&, const Fold&) = default;
};

/// The gradients that one update combines, and the order in which they are summed.
///
/// By rank it sums in the order of worker ids, whatever the order of arrival: it folds the
/// contiguous prefix of members that have sent something and holds the rest. Else it sums in order
/// of completion. Weights: by examples relative to those of the first in the order, so that the sum
/// divided by the sum of weights is the mean over all examples, and one gradient alone is applied
/// as it is, without a rounding, whenever it came; else all alike. Each times the scale given.
///
/// Not thread-safe: one owner, which serialises calls.
class Round {
 public:
  struct Contribution {
    PushId push{};
    WorkerId worker{};
    Version base{};
    uint32_t examples = 0;

    /// What staleness compensation multiplies the gradient by.
    double scale = 1.0;
  };

  Round(PolicyTraits::Order order, PolicyTraits::Weighing weighing)
      : order_(order), weighing_(weighing) {}

  void Add(const Contribution& contribution);

  /// The worker has nothing for this round. `leaves_out`: its mini-batch is left out for good.
  void Excuse(WorkerId worker, bool leaves_out = false);

  /// The worker has contributed or been excused.
  bool HasHeardFrom(WorkerId worker) const { return heard_from_.contains(worker); }

  /// The mini-batch that the worker was to bring is done with.
  bool HasDone(WorkerId worker) const { return done_.contains(worker); }

  /// What can be folded by now. `awaited` are the workers the round still waits for, ascending;
  /// their position keeps later ones from being folded, where that is by rank.
  /// `closes`: the round closes now, so nothing is held back.
  std::vector<Fold> TakeFolds(std::span<const WorkerId> awaited, bool closes);

  /// The sum is to be multiplied by this. REQUIRES: the round has contributions, all folded.
  double InverseDivisor() const;

  std::vector<Version> bases() const;
  uint64_t examples() const;

  /// Of the contributions. REQUIRES: there are some.
  double mean_scale() const;
  uint32_t contributions() const { return static_cast<uint32_t>(contributions_.size()); }
  uint32_t excused() const { return static_cast<uint32_t>(excused_.size()); }

 private:
  double Weight(const Contribution& contribution) const;

  /// Among the others. The first in the order stays the first once it is folded.
  double Share(const Contribution& contribution) const;

  PolicyTraits::Order order_;
  PolicyTraits::Weighing weighing_;

  // In fold order. The first `folded_` are folded.
  std::vector<Contribution> contributions_;
  size_t folded_ = 0;
  std::set<WorkerId> excused_;
  std::set<WorkerId> heard_from_;  // Asked of all members with each push.
  std::set<WorkerId> done_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_ROUND_H_

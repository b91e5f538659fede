#ifndef SLIPSTREAM_SERVER_CORE_SHARD_ROUND_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_ROUND_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/tensor_set.h"
#include "common/settings/policy_rows.h"

namespace slipstream {

/// Names an admitted push, whose payload the shell holds until it has been folded.
enum class PushId : uint64_t {};

/// An instruction to the shell: sum = weight · g if `first`, else sum += weight · g, where g is the
/// gradient multiplied by `clip` before it is compensated. The payload can be freed afterwards.
struct Fold {
  PushId push{};
  float weight = 1.0f;
  float clip = 1.0f;
  bool first = false;

  friend bool operator==(const Fold&, const Fold&) = default;
};

/// The gradients that one update combines, and the order in which they are summed.
///
/// Order::kRank sums in the order of worker ids, whatever the order of arrival: the contiguous
/// prefix of members that have sent something is folded, and the rest is held back. Order::kArrival
/// sums in order of completion. Weighed by examples, a gradient's weight is its number of examples
/// relative to that of the first in the order. So the sum divided by the sum of weights is the mean
/// over all examples, and a gradient that is alone in its round is applied as it is, without a
/// rounding. Otherwise all weights are equal. Weighed as a sum, the divisor is 1. Each weight is
/// multiplied by the gradient's scale.
///
/// A push that combines gradients of several workers counts as so many, of one place in the order:
/// that of the first of its workers.
///
/// Not thread-safe: one owner, which serialises calls.
class Round {
 public:
  struct Contribution {
    PushId push{};

    /// The worker, and the further ones whose gradients the push combines, in order of ids.
    WorkerId worker{};
    Version base{};
    struct Other {
      WorkerId worker{};
      Version base{};
    };
    std::vector<Other> others = {};
    uint32_t examples = 0;  // In the gradients of all of them.

    /// The factor by which staleness compensation and guard multiply the gradient.
    double scale = 1.0;

    /// The factor by which its sender clips it (PushTrailer::clip).
    double clip = 1.0;

    /// The tensors that it has no gradient for (PushTrailer::absent).
    TensorSet absent = {};

    /// The stamp and the label of the version that whole weights are.
    std::optional<Stamp> stamp = std::nullopt;
    uint64_t label = 0;

    /// The number of workers' gradients that it is the mean of.
    uint32_t parts() const { return 1 + static_cast<uint32_t>(others.size()); }
  };

  Round(PolicyTraits::Order order, PolicyTraits::Weighing weighing)
      : order_(order), weighing_(weighing) {}

  /// Returns an empty round that sums and weighs as this one does.
  Round Emptied() const { return {order_, weighing_}; }

  void Add(const Contribution& contribution);

  /// Notes that the worker has nothing for this round. `leaves_out`: its mini-batch is left out for
  /// good.
  void Excuse(WorkerId worker, bool leaves_out = false);

  /// Returns whether the worker has contributed or been excused.
  bool HasHeardFrom(WorkerId worker) const { return heard_from_.contains(worker); }

  /// Returns whether the worker's mini-batch has come or is left out for good.
  bool HasDone(WorkerId worker) const { return done_.contains(worker); }

  /// Returns the workers for which HasDone is true. The round is of no use afterwards.
  std::set<WorkerId> TakeDone() { return std::move(done_); }

  /// Returns what can be folded now. `awaited` is the first worker that the round still waits for;
  /// in order of rank, gradients of workers behind it are not folded yet. `closes`: the round
  /// closes now, so nothing is held back.
  std::vector<Fold> TakeFolds(std::optional<WorkerId> awaited, bool closes);

  /// Returns the factor by which the sum is to be multiplied. REQUIRES: the round has
  /// contributions, all folded.
  double InverseDivisor() const;

  std::vector<Version> bases() const;
  uint64_t examples() const;

  /// Returns the tensors that none of the gradients is for. REQUIRES: there are some.
  TensorSet absent() const;

  /// Returns the mean scale of the gradients. REQUIRES: there are some.
  double mean_scale() const;

  /// Returns the contribution that is the last in the order. REQUIRES: there is one.
  const Contribution& last() const {
    return unfolded_.empty() ? folded_.back() : unfolded_.rbegin()->second;
  }

  /// The number of workers' gradients in it.
  uint32_t contributions() const { return gradients_; }
  uint32_t excused() const { return static_cast<uint32_t>(excused_.size()); }

  /// A round is saved only while it has no contributions.
  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.order_, self.weighing_, self.excused_, self.heard_from_, self.done_);
  }

 private:
  /// Calls `visit` for each contribution, in the order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const Contribution& contribution : folded_) visit(contribution);
    for (const auto& [place, contribution] : unfolded_) visit(contribution);
  }

  double Weight(const Contribution& contribution) const;

  /// Returns the weight without the scale. REQUIRES: the first in the order is folded; it stays the
  /// first.
  double Share(const Contribution& contribution) const;

  PolicyTraits::Order order_;
  PolicyTraits::Weighing weighing_;

  // The contributions in fold order: those that are folded, and the others by their place in the
  // order. A late joiner with a low id, who may come after higher ids were folded, is behind these.
  std::vector<Contribution> folded_;
  std::multimap<uint64_t, Contribution> unfolded_;
  uint32_t gradients_ = 0;  // The sum of their parts.
  std::set<WorkerId> excused_;
  std::set<WorkerId> heard_from_;  // Looked up for all members with each push.
  std::set<WorkerId> done_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_ROUND_H_

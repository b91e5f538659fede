#ifndef SLIPSTREAM_WORKER_ALLREDUCE_GRADIENT_SUM_H_
#define SLIPSTREAM_WORKER_ALLREDUCE_GRADIENT_SUM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "worker/allreduce/collective.h"
#include "worker/client/gradient_feed.h"

namespace slipstream {

/// Adds up the gradients of all ranks, round by round, each weighted by its examples. A thread
/// sends a gradient in buckets from the end of the arena to its beginning, each as soon as it is
/// final, so that this goes on while the backward pass computes the rest.
///
/// A gradient that turns out not to be finite is left out by its rank, after parts of it may have
/// left. All ranks then learn so at the end of the round and add up the others' gradients once
/// more.
///
/// Every round that one rank begins must be begun by all. After a failure every round fails, on all
/// ranks.
///
/// Not thread-safe: one owner; the feed may be used by the thread that computes.
class GradientSum {
 public:
  struct Options {
    /// The values of one bucket: enough that the time of a message is that of its bytes. Not 0.
    size_t bucket_values = size_t{1} << 20;

    /// Set if nothing may leave before the gradient is complete: its trailer has a factor
    /// (PushTrailer) that depends on all of it.
    bool waits_for_trailer = false;
  };

  /// The part that a rank brings to a round.
  struct Share {
    /// The gradient; empty if the rank has no mini-batch in this round. It is only read. Must stay
    /// unchanged from where the feed says that it is final until Finish has returned.
    std::span<const float> gradient;

    /// The number of examples of the gradient.
    uint32_t examples = 0;

    /// Set if the rank was asked to end; the round then is the last for all.
    bool wants_end = false;

    /// See GradientFeed; may be empty.
    GradientFeed::LastChange last_change = {};
  };

  /// The facts that all ranks know after a round.
  struct Result {
    /// The examples of the gradients in sum(). If there are none, sum() is of no meaning.
    uint64_t examples = 0;

    /// Set if any rank wanted the end.
    bool ends = false;

    // When the first bucket left, and when the sum was complete.
    absl::Time begin;
    absl::Time end;

    /// The time spent on sums, without the wait for the gradient.
    absl::Duration busy;
  };

  /// Takes memory for the sum of `values` values; not 0. `collective` must outlive this object, and
  /// nobody else may use it while a round is open. `interrupted` says whether this rank has to give
  /// up; it is asked while Finish waits.
  GradientSum(Collective& collective, size_t values, const Options& options,
              std::function<bool()> interrupted);

  /// Aborts the open round, on all ranks.
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  /// Begins a round. The feed must be sealed or aborted before Finish: a gradient whose feed is
  /// aborted is left out. That of an empty gradient is over already. REQUIRES: no round is open.
  GradientFeed& Begin(const Share& share);

  /// Waits for the end of the round. CANCELLED if this rank was interrupted; other failures are the
  /// collective's.
  absl::StatusOr<Result> Finish();

  /// Returns whether all ranks named the same number. If they did not, at least one rank hears
  /// that. Waits, and fails, as Finish does. REQUIRES: no round is open.
  absl::StatusOr<bool> IsSame(uint64_t number);

  /// Whether a round was begun and is not finished.
  bool is_open() const { return feed_ != nullptr; }

  /// The feed of the open round. REQUIRES: is_open().
  GradientFeed& feed() { return *feed_; }

  /// The sum of the gradients, each times its examples and the factor of its trailer. Valid from
  /// Finish until the next Begin.
  std::span<const float> sum() const;

 private:
  void Run();

  /// Has the thread do this. One task at a time: Await must follow.
  void Start(std::function<absl::Status()> task);
  absl::Status Await();

  absl::Status RunRound();

  /// Adds up all buckets. Those of this rank are zeros if it brings none.
  absl::Status AddUp();

  /// Fill in what this rank brings: values [begin, end), and the counts.
  void FillBucket(size_t begin, size_t end);
  void FillCounts();

  // Constant after construction.
  Collective& collective_;
  const Options options_;
  const std::function<bool()> interrupted_;

  // Used by the thread while it has a task, else by the owner.
  std::vector<float> sum_;  // The counts, and then the values.
  Share share_;
  std::unique_ptr<GradientFeed> feed_;  // Null while no round is open.
  Result result_;

  Mutex mutex_;
  CondVar changed_;
  std::function<absl::Status()> task_ ABSL_GUARDED_BY(mutex_);  // Not begun.
  std::optional<absl::Status> outcome_ ABSL_GUARDED_BY(mutex_);
  bool is_ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_ALLREDUCE_GRADIENT_SUM_H_

#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_EVALUATIONS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_EVALUATIONS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"

namespace slipstream {

/// What one worker measured of the weights.
struct Evaluation {
  /// Of the order that asked for it: rises from 1, with gaps where an order was given again.
  uint64_t number = 0;

  /// Epochs completed when it was ordered.
  uint32_t epoch = 0;

  /// Absent where the loss knows no classes.
  std::optional<double> test_accuracy;
  double test_loss = 0;
  uint64_t examples = 0;

  /// Of the weights measured, by shard.
  std::vector<Version> versions;
  double seconds = 0;
  bool is_final = false;

  /// Where the weights were saved: a path on the host of the worker. Empty if they were not.
  std::string model_file;
  std::string model_host;

  /// Why they could not be saved.
  std::string model_failure;
};

/// Decides when the weights are measured and by whom; keeps the results.
///
/// One evaluation runs at a time. One that falls due meanwhile waits, and if several do, only the
/// newest is made. The final one is made after the last update, whatever the epochs; it waits for
/// one that still runs.
///
/// An order is labelled with the epochs complete when it is given, also when it is given again: the
/// weights that its worker will measure have gone on since it fell due.
///
/// Weights are saved by whoever measures them, so that a file holds what the figures are of: a save
/// that falls due makes an evaluation fall due. One that has to wait is not dropped with the
/// evaluation; the next order carries it.
///
/// Invariants: at most one order is open; its number is the highest given; epochs of orders never
/// fall.
///
/// Not thread-safe: one owner, which serialises calls.
class Evaluations {
 public:
  /// The oldest results are dropped beyond this many.
  static constexpr size_t kResultsMax = 10'000;

  /// Of each text about a saved model.
  static constexpr size_t kTextBytesMax = 4096;

  struct Order {
    uint64_t number = 0;
    WorkerId worker{};
    uint32_t epoch = 0;
    bool is_final = false;

    /// The weights measured are to be saved; the final ones always are.
    bool saves = false;
  };

  /// `every_epochs`, `save_every_epochs`: 0 for the final one only. `epochs`: of the run; the last
  /// needs no order of its own, as the final evaluation measures it.
  Evaluations(uint32_t every_epochs, uint32_t save_every_epochs, uint32_t epochs)
      : every_epochs_(every_epochs), save_every_epochs_(save_every_epochs), epochs_(epochs) {}

  /// Notes that so many epochs are complete. Returns the epochs that will not be measured because
  /// an order was open all the while.
  std::vector<uint32_t> OnEpochs(uint32_t completed);

  /// Notes that no update will come any more. Returns the epoch that was due, if any: the final
  /// evaluation takes its place.
  std::optional<uint32_t> OnLastUpdate(uint32_t epochs_completed);

  /// Gives what is due to this worker, unless an order is open or nothing is due. Returns whether
  /// it did.
  bool Assign(WorkerId worker);

  /// Takes back the order of a worker that is gone; it is due again.
  void Forget(WorkerId worker);

  /// Takes the open order from its holder, which is there but does not report; it is due again, for
  /// others. The holder is an option again once it was forgotten.
  /// REQUIRES: an order is open.
  void GiveUpHolder();

  /// True for a holder that was given up.
  bool IsGivenUp(WorkerId worker) const { return given_up_.contains(worker); }

  /// Takes the result of the open order. Repeating the last report has no effect; another number or
  /// worker is refused, and so is a final result without the hash of its weights.
  absl::Status Report(WorkerId worker, uint64_t number, Evaluation result,
                      const std::string& weights_sha256);

  bool due() const { return !open_.has_value() && (due_epoch_ > 0 || final_due_); }
  const std::optional<Order>& open() const { return open_; }
  const std::deque<Evaluation>& results() const { return results_; }
  bool final_done() const { return final_done_; }

  /// Of the final weights; empty before.
  const std::string& weights_sha256() const { return weights_sha256_; }

 private:
  /// The last multiple of `every` among the completed epochs that has an order of its own; 0 for
  /// none.
  uint32_t LastDue(uint32_t every, uint32_t completed) const;

  // Constant after construction.
  const uint32_t every_epochs_;
  const uint32_t save_every_epochs_;
  const uint32_t epochs_;

  // 0: none.
  uint32_t due_epoch_ = 0;
  bool final_due_ = false;
  bool save_due_ = false;

  // The last epoch whose save fell due.
  uint32_t counted_save_ = 0;

  // The last epoch whose evaluation fell due.
  uint32_t counted_epoch_ = 0;
  uint32_t epochs_completed_ = 0;
  std::optional<Order> open_;
  uint64_t last_order_ = 0;
  Order last_reported_;
  std::set<WorkerId> given_up_;
  std::deque<Evaluation> results_;
  bool final_done_ = false;
  std::string weights_sha256_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_EVALUATIONS_H_

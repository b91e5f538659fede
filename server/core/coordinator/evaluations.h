#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_EVALUATIONS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_EVALUATIONS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace slipstream {

/// The result of one evaluation: what a worker measured of the weights.
struct Evaluation {
  /// The number of the order that asked for it. It rises from 1, with gaps where an order was given
  /// again.
  uint64_t number = 0;

  /// The number of epochs completed when it was ordered.
  uint32_t epoch = 0;

  /// The number of passes over the training data that are part of the weights; 0 if it is unknown.
  double epochs_measured = 0;

  /// Absent if the loss has no classes.
  std::optional<double> test_accuracy;
  double test_loss = 0;
  uint64_t examples = 0;

  /// The versions of the measured weights, by shard.
  std::vector<Version> versions;
  double seconds = 0;
  bool is_final = false;

  /// The path of the saved weights on the worker's host. Empty if they were not saved.
  std::string model_file;
  std::string model_host;

  /// Why the weights could not be saved. Empty if they were, or no save was ordered.
  std::string model_failure;

  /// When the coordinator heard of it; unknown if that was before it was restarted.
  std::optional<absl::Time> came;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.number, self.epoch, self.epochs_measured, self.test_accuracy, self.test_loss,
            self.examples, self.versions, self.seconds, self.is_final, self.model_file,
            self.model_host, self.model_failure);
  }
};

/// Whether a worker can save the weights that it measures, as far as it has told.
struct Saving {
  enum class State : uint8_t { kUnknown, kNotAsked, kCan, kCannot };
  State state = State::kUnknown;

  /// Why it cannot.
  std::string failure;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.state, self.failure);
  }
};

/// Decides when the weights are measured and by which worker, and keeps the results.
///
/// One evaluation runs at a time. An evaluation that falls due meanwhile waits; if several do, only
/// the newest is made. The final evaluation is made after the last update, whatever the number of
/// epochs. It waits for an evaluation that still runs.
///
/// An order is labelled with the number of epochs that are complete when it is given, also when it
/// is given again: the weights have gone on since the evaluation fell due.
///
/// The worker that measures the weights also saves them, so that the figures describe the file: a
/// save that falls due makes an evaluation fall due. A save that has to wait is not dropped with
/// its evaluation; the next order carries it. Workers that can save are chosen first, and final
/// weights that one could not save are measured again by another that can.
///
/// Invariants: at most one order is open; its number is the highest given; epochs of orders never
/// fall.
///
/// Not thread-safe: one owner, which serialises calls.
class Evaluations {
 public:
  /// The number of results kept. Beyond it the oldest are dropped.
  static constexpr size_t kResultsMax = 10'000;

  /// The most bytes that each text about a saved model may have.
  static constexpr size_t kTextBytesMax = 4096;

  struct Order {
    uint64_t number = 0;
    WorkerId worker{};
    uint32_t epoch = 0;
    bool is_final = false;

    /// Set if the measured weights are to be saved. The final weights always are.
    bool saves = false;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.number, self.worker, self.epoch, self.is_final, self.saves);
    }
  };

  /// `every_epochs`, `save_every_epochs`: after how many epochs weights are measured and saved; 0
  /// for the final evaluation only. `epochs`: the epochs of the run. The last epoch needs no order
  /// of its own, as the final evaluation measures it.
  Evaluations(uint32_t every_epochs, uint32_t save_every_epochs, uint32_t epochs)
      : every_epochs_(every_epochs), save_every_epochs_(save_every_epochs), epochs_(epochs) {}

  /// Notes that `completed` epochs are complete. Returns the epochs that will not be measured
  /// because an order was open all the while.
  std::vector<uint32_t> OnEpochs(uint32_t completed);

  /// Notes that no further update will come. Returns the epoch that was due, if any: the final
  /// evaluation takes its place.
  std::optional<uint32_t> OnLastUpdate(uint32_t epochs_completed);

  /// Notes that updates will come after all, because the weights have gone back to older ones: the
  /// final evaluation is taken back if it is due or open. REQUIRES: it is not done.
  void OnMoreUpdates();

  /// Notes whether a worker can save weights, until it is forgotten.
  void OnSaving(WorkerId worker, Saving saving);

  /// Returns which of these workers should measure what is due: the first of those that are most
  /// likely to save it, if it is to be saved. Nothing if all were given up.
  std::optional<WorkerId> Choose(const std::vector<WorkerId>& live) const;

  /// Returns why none of these workers can save the weights, though some were told where; empty if
  /// one can or may be able to, or if none was told.
  std::string WhyNobodySaves(const std::vector<WorkerId>& live) const;

  /// Returns why the final weights were not saved, though a worker was told where; empty otherwise.
  /// REQUIRES: final_done().
  std::string WhyNotSaved() const;

  /// Gives the due evaluation to this worker. Returns false if an order is open or nothing is due.
  bool Assign(WorkerId worker);

  /// Takes back the order of a worker that is gone. The evaluation is due again.
  void Forget(WorkerId worker);

  /// Takes the open order from its holder, which is live but does not report. The evaluation is due
  /// again, for other workers. The holder can be chosen again after Forget.
  /// REQUIRES: an order is open.
  void GiveUpHolder();

  /// Returns true for a holder that was given up.
  bool IsGivenUp(WorkerId worker) const { return given_up_.contains(worker); }

  /// Notes how many examples the holder of the open order has measured. Counts as hearing of it if
  /// the number has grown.
  void OnMeasured(WorkerId worker, uint64_t number, uint64_t examples, absl::Time now);

  /// When the open order was given or last made progress.
  void OnHeard(absl::Time now) { heard_ = now; }
  absl::Time heard() const { return heard_; }
  void Forgive(absl::Duration gap) { heard_ += gap; }

  /// Takes the result of the open order. Repeating the last report has no effect. A report with
  /// another number or worker is refused, and so is a final result without the hash of its weights.
  /// A final result without a saved model is dropped if another worker of `live` can save it.
  absl::Status Report(WorkerId worker, uint64_t number, Evaluation result,
                      const std::string& weights_sha256, const std::vector<WorkerId>& live = {});

  bool due() const { return !open_.has_value() && (due_epoch_ > 0 || final_due_); }
  const std::optional<Order>& open() const { return open_; }
  const std::deque<Evaluation>& results() const { return results_; }
  bool final_done() const { return final_done_; }

  /// The SHA-256 of the final weights, in lower-case hex. Empty before they are measured.
  const std::string& weights_sha256() const { return weights_sha256_; }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.due_epoch_, self.final_due_, self.save_due_, self.counted_save_,
            self.counted_epoch_, self.epochs_completed_, self.open_, self.last_order_,
            self.last_reported_, self.given_up_, self.results_, self.final_done_,
            self.weights_sha256_, self.saving_, self.was_asked_to_save_, self.measured_);
  }

 private:
  Saving::State SavingOf(WorkerId worker) const;

  /// Makes an order that the worker holds due again.
  void TakeBack(WorkerId worker);

  /// Returns the last multiple of `every` among the completed epochs that has an order of its own;
  /// 0 if there is none.
  uint32_t LastDue(uint32_t every, uint32_t completed) const;

  // Constant after construction.
  const uint32_t every_epochs_;
  const uint32_t save_every_epochs_;
  const uint32_t epochs_;

  // The epoch whose evaluation is due; 0 if none is.
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

  // The words of live workers, and whether one was ever told where to save.
  std::map<WorkerId, Saving> saving_;
  bool was_asked_to_save_ = false;

  // How many examples were measured for the open order, and when progress was heard of last.
  uint64_t measured_ = 0;
  absl::Time heard_ = absl::InfinitePast();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_EVALUATIONS_H_

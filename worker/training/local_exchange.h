#ifndef SLIPSTREAM_WORKER_TRAINING_LOCAL_EXCHANGE_H_
#define SLIPSTREAM_WORKER_TRAINING_LOCAL_EXCHANGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/encoding.h"
#include "common/base/ids.h"
#include "common/layout/tensor_layout.h"
#include "common/protocol/batch_ranges.h"
#include "worker/client/gradient_client.h"
#include "worker/client/parameter_client.h"
#include "worker/training/local_steps.h"

namespace slipstream {

/// The exchanges of a worker that takes local steps. It hands weights of the servers that have
/// landed to the worker's algorithm, has it make the values to be pushed, and has it undo what had
/// no effect. Whoever takes the steps, calls for each push:
///
///   exchange.AwaitAnswers(batches), exchange.Settle(), steps.Begin();
///   for each step: exchange.Land(batches) before the last, if the worker keeps its weights;
///                  steps.OnGradient(…), exchange.ExchangeFragments(push, taken, …);
///   exchange.PrepareRest(…), and then the client's BeginPush and FinishPush.
///
/// Statuses are CANCELLED if the servers do not want the push of these mini-batches any more.
///
/// Not thread-safe: one owner, the client's.
class LocalExchange {
 public:
  struct Options {
    /// The encoding of pushes: values that are too large for it count as not finite.
    Encoding push_codec = Encoding::kFp32;

    /// The model's, if its tensors have names that people know; it must outlive the exchange.
    const TensorLayout* layout = nullptr;
  };

  /// `steps` and `servers` must outlive this object.
  LocalExchange(const Options& options, LocalSteps& steps, ParameterClient& servers)
      : options_(options), steps_(steps), servers_(servers) {}

  /// Where a worker goes on from its own weights, waits for all of the last push's answers, whose
  /// lanes may still read its values.
  absl::Status AwaitAnswers(const BatchRanges& batches);

  /// Returns whether Settle will use the worker's own weights.
  bool has_to_settle() const;

  /// Where weights land apart, after AwaitAnswers: undoes what the last push did to the worker's
  /// own weights, where it had no effect on the servers', and takes over what has landed since.
  void Settle();

  /// The first part of Settle. REQUIRES: the client is drained.
  void UndoWithoutEffect();

  /// For a worker that keeps its weights: waits for the newest weights of the servers, and hands
  /// them to the algorithm.
  absl::Status Land(const BatchRanges& batches);

  /// With fragments: returns whether some land or leave after `taken` steps of this push.
  bool is_due(const BatchRanges& batches, uint64_t taken) const;

  /// With fragments, after `taken` steps: waits for those that are due to land, and pushes those
  /// that leave. `prepare` is called before that, once their values are there.
  absl::Status ExchangeFragments(const GradientClient::Gradient& push, uint64_t taken,
                                 std::optional<float> loss,
                                 const std::function<absl::Status()>& prepare);

  /// Returns whether a fragment's values were not finite, so that the push has to end unfinished.
  bool is_spoilt() const { return nonfinite_.has_value(); }

  /// Returns whether a part of a push has left that is not finished.
  bool has_begun() const { return servers_.ShardsToPush().size() < servers_.map().shards(); }

  /// Writes the values of the parts that have not left yet to the outbox. Returns a description of
  /// those of the whole push that are not finite. REQUIRES: a step was taken.
  std::optional<std::string> PrepareRest(std::optional<float> loss);

  /// Forgets what it knows of the push that is being computed, which is given up.
  void Abandon();

  /// CANCELLED if the client's next action is not to compute `batches`.
  static absl::Status CheckWanted(const absl::StatusOr<GradientClient::Step>& step,
                                  const BatchRanges& batches);

 private:
  std::vector<ShardId> LeavingAfter(uint64_t taken, const BatchRanges& batches) const;
  std::optional<std::string> Prepare(const std::vector<ShardId>& shards, std::optional<float> loss);

  /// Takes what the client knows of the answers. REQUIRES: it is drained.
  void NoteAnswers();
  absl::Status LandFragments();
  void LandNoted();

  // Constant after construction.
  const Options options_;
  LocalSteps& steps_;
  ParameterClient& servers_;

  // Since the last Settle.
  std::vector<ParameterRange> without_effect_;
  std::vector<ParameterRange> landed_;  // With fragments alone.

  // With fragments: the state of the push that is being computed.
  uint64_t left_after_ = 0;               // The number of steps after which a part left last.
  bool is_on_the_way_ = false;            // A part has left, and its weights have not landed.
  std::optional<std::string> nonfinite_;  // Why a part did not leave: its values are not finite.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_LOCAL_EXCHANGE_H_

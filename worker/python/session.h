#ifndef SLIPSTREAM_WORKER_PYTHON_SESSION_H_
#define SLIPSTREAM_WORKER_PYTHON_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/tensor_layout.h"
#include "common/local/shared_arena.h"
#include "common/memory/aligned_buffer.h"
#include "common/model_file/model_header.h"
#include "common/protocol/batch_ranges.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/tensor_set.h"
#include "common/settings/run_spec.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/joining.h"
#include "worker/client/parameter_client.h"
#include "worker/client/server_addresses.h"
#include "worker/client/weights_reader.h"
#include "worker/data/batch_order.h"
#include "worker/python/callers_model.h"
#include "worker/training/gradient_clip.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/local_exchange.h"
#include "worker/training/local_steps.h"
#include "worker/training/measures.h"
#include "worker/training/nonfinite_steps.h"
#include "worker/training/step_figures.h"
#include "worker/training/unit_fetcher.h"
#include "worker/training/work_source.h"

namespace slipstream {

/// One worker of a run, whose model, examples and loop are another program's:
///
///   auto session = Session::Join(options, interruption);            // Heartbeats begin.
///   session->Synchronize(layout, examples, first);    // weights() are the run's.
///   while (auto work = session->Next(); work->has_value()) {
///     … compute values from weights(), write them to values() …
///     session->Push({.examples = …, .loss = …});
///   }
///   session->Finish();                                // weights() are the final ones.
///
/// The run's worker.algorithm decides what is pushed: gradients, or under local_sgd and diloco
/// the difference of the weights that Next brought and those that local steps have led to, or under
/// publish whole weights; then Next brings none but the first. The caller may change weights()
/// between Next and Push: the next ones are sent whole. Under downpour it may go on from the
/// weights that it has led to, as Next may bring none.
///
/// Where workers keep their weights (easgd, eamsgd), they are in the caller's own memory. weights()
/// are the servers', and FetchForPush brings the newest before each Push.
///
/// After BeginLocalSteps, the run's algorithm makes all of this as in any worker. The caller takes
/// steps on local_weights(), and says when:
///
///   while (auto work = session->Next(); work->has_value()) {
///     if (session->has_to_exchange()) session->ExchangeWeights();
///     for (…) {  // Each mini-batch of the work.
///       … compute a gradient; if it is the last, and weights are kept, call FetchForPush …
///       session->OnGradient(gradient);
///       … step …
///       if (session->has_to_exchange()) session->ExchangeWeights();
///     }
///     session->Push({.examples = …});
///   }
///
/// Where workers measure the weights (evaluation.by), a heartbeat may order that at any time:
///
///   if (session->is_ordered()) {
///     session->BeginEvaluation();
///     … measure *measured_weights() …
///     session->EndEvaluation({.loss = …}, examples, directory);
///   }
///
/// Codes of failures: UNAVAILABLE, a server cannot be reached; FAILED_PRECONDITION, the worker is
/// no member any more; ALREADY_EXISTS, the call comes at a wrong time (misuse); OUT_OF_RANGE, the
/// run has finished; ABORTED, it failed; INVALID_ARGUMENT, what was given does not fit the run;
/// RESOURCE_EXHAUSTED, the run takes no more workers; CANCELLED, after an interruption.
///
/// Not thread-safe: one owner, though functions that follow one another may be called by different
/// threads. EndTraining and what is constant may be used by any thread.
class Session {
 public:
  struct Options {
    /// host:port of server 0.
    std::string coordinator;

    /// The id to take part under; the lowest free one if it is absent.
    std::optional<WorkerId> worker;
    std::shared_ptr<grpc::ChannelCredentials> credentials;
  };

  /// The work that Next asks for.
  struct Work {
    /// The mini-batches that the next push stands for.
    BatchRanges batches;
  };

  struct Values {
    /// The number of examples that the values are computed from: at least 1, at most
    /// training.batch_size for each mini-batch.
    uint32_t examples = 0;

    /// The loss, for status and logs. One that is not finite is left out.
    std::optional<float> loss;

    /// The caller's own number for whole weights, for readers.
    uint64_t label = 0;

    /// The tensors that the values have no gradient for (PushTrailer::absent).
    TensorSet absent = {};
  };

  /// `interruption` must outlive the session. Whoever stops it ends all waits, now and later, from
  /// any thread.
  static absl::StatusOr<std::unique_ptr<Session>> Join(const Options& options,
                                                       Interruption& interruption);

  /// Leaves the run, at once.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const RunSpec& settings() const { return settings_; }
  const Identity& identity() const { return joined_.identity; }
  const std::vector<std::string>& servers() const { return joined_.servers; }

  /// Agrees with the other workers on the model, and on the number of examples of an epoch (0 where
  /// the settings say it). `first` are the weights to start from if this worker is the first;
  /// otherwise they do not count. Waits until the run has weights, and reads them into weights().
  absl::Status Synchronize(const ModelProposal& model, std::span<const float> first);

  /// Returns the memory of the model's weights and of the values to push, in the layout's order.
  /// REQUIRES: Synchronize was called, and succeeded or failed after it had made them.
  std::span<float> weights() { return weights_.span(); }
  std::span<float> values() { return values_; }
  const TensorLayout& layout() const { return layout_; }

  /// Waits for the answers to the last push, and returns the next work, for which weights() are
  /// there; nothing once there is none. Until the work is pushed or skipped it is returned again;
  /// after an evaluation with newer weights, unless the caller goes on from its own. Where workers
  /// keep their weights, values() are then what of the last push had no effect, and 0 elsewhere.
  absl::StatusOr<std::optional<Work>> Next();

  /// For a caller that keeps its weights: reads the servers' newest into weights(), just before the
  /// push that is relative to them. Returns false if the work at hand is not wanted any more.
  absl::StatusOr<bool> FetchForPush();

  // Local steps.

  /// Has the run's algorithm decide what the caller's steps on local_weights() come to, from the
  /// weights at hand on. Returns whether there is work at hand: it is given up if fragments of its
  /// push have left. REQUIRES: the algorithm has local weights.
  absl::StatusOr<bool> BeginLocalSteps();

  /// The weights to step, since BeginLocalSteps: weights(), unless these land apart. Then only
  /// BeginLocalSteps, FetchForPush, ExchangeWeights, Push and Finish use them.
  std::span<float> local_weights() {
    return settings_.worker.lands_apart() ? own_weights_.span() : weights_.span();
  }

  /// Leaves to the caller again what steps come to.
  void EndLocalSteps();

  /// Tells the algorithm of a gradient before the step: the values of each tensor, or null for one
  /// without. They may be left out unless the algorithm pushes gradients. REQUIRES: the tensors
  /// have the layout's sizes.
  absl::Status OnGradient(std::vector<const float*> tensors);

  /// After Next and after each step: whether ExchangeWeights has anything to do. It undoes the last
  /// push where that had no effect, takes over weights that have landed, and pushes fragments.
  bool has_to_exchange() const;
  absl::Status ExchangeWeights();

  /// Returns the examples of a mini-batch, of those that servers hand out; valid until the next
  /// call. REQUIRES: training.work is handed_out.
  std::span<const uint32_t> ExamplesOf(uint64_t batch) { return order_->Examples(batch); }

  /// Begins the push of values() for the work at hand, so that parts of it may leave before the
  /// rest is there. Push completes it; Next gives it up.
  absl::Status Begin(uint32_t examples, uint64_t label = 0);

  /// Says that values() are final from this one on. Has no effect where no push was begun.
  void Release(size_t from);

  /// Pushes values() for the work at hand. They must stay as they are until Next returns. Values
  /// that are not finite are left out: returns false; INTERNAL if there were too many in a row.
  absl::StatusOr<bool> Push(Values values);

  /// Leaves out the work at hand. INTERNAL if there was too much of that in a row.
  absl::Status Skip();

  /// Waits until all answers to the last push are there.
  absl::Status Await();

  /// Returns the newest answer of each shard to a push; the defaults before the first.
  std::vector<PushReply> replies() const { return client_->replies(); }

  /// Reads the newest weights, at any time after Synchronize.
  absl::StatusOr<WeightsReader::Reading> Read(std::span<float> weights);

  /// Waits until the run is over, and reads the final weights into weights(). Work that is left is
  /// left out if EndTraining was called; otherwise the call is misuse, as others would wait for it.
  /// Returns false if an evaluation is to be made first; then it is to be called again.
  absl::StatusOr<bool> Finish();

  /// Returns whether this worker was asked to measure the weights, and has not yet. May be called
  /// while other calls are under way, except for those of an evaluation.
  bool is_ordered() const { return heartbeat_->HasOrder(last_order_); }

  /// Reads the weights that are to be measured. REQUIRES: is_ordered().
  absl::Status BeginEvaluation();

  /// The weights that were read last. The caller may keep them, and must not change them before
  /// EndEvaluation.
  const std::shared_ptr<std::vector<float>>& measured_weights() const { return measured_weights_; }

  /// Notes how many examples were measured so far, of any number: as long as it grows, the servers
  /// do not ask another worker. Between BeginEvaluation and EndEvaluation.
  void OnMeasured(uint64_t examples);

  /// Reports the evaluation, and saves the weights to `directory` if that is asked for and the name
  /// is not empty, with what belongs to the model beside them. `examples`: the number of examples
  /// in the test set; 0 if it is unknown.
  absl::Status EndEvaluation(const TestMeasures& measures, uint64_t examples,
                             const std::string& directory, std::vector<StoredTensor> beside);

  /// Ends training for all workers, once it has begun. Returns when the coordinator has heard it.
  absl::Status EndTraining();

  /// Makes all waits end, now and later, and leaves the run. `failure` is for people.
  void Leave(const std::string& failure);

  StepFigures::Figures figures() const { return figures_.Read(absl::Now()); }

 private:
  Session(const Options& options, Interruption& interruption);
  absl::Status Start();
  absl::Status MakeMemory(size_t parameters);
  void MakeClient();
  absl::Status CheckPush(uint32_t examples) const;
  const AlgorithmRow& algorithm() const { return RowOf(settings_.worker.algorithm); }

  /// Whether a push is the gradient of one mini-batch. Where it sums up several, the caller has
  /// clipped each.
  bool clips_pushes() const {
    return algorithm().pushes == PushKind::kGradient && !algorithm().has_local_weights;
  }

  bool publishes() const { return algorithm().pushes == PushKind::kValues; }

  /// Waits until the steps for this new work may begin. CANCELLED if it is not wanted any more.
  absl::Status BeginWork(const BatchRanges& batches);

  /// Begins the steps for the work at hand, for which weights() are there.
  void BeginSteps();

  /// Begins the push of local steps: has the algorithm make what has not left yet.
  absl::Status BeginPushOfSteps(Values& values);

  /// Removes the tensors from `absent` that are changed nevertheless.
  void RemoveChanged(TensorSet& absent) const;

  /// Gives up a push of local steps of which only fragments have left.
  void AbortFragments();

  /// Reduces values() to what of the last push had no effect.
  void KeepValuesWithoutEffect();

  /// Counts a push whose values are not finite, and leaves it out. Returns false.
  absl::StatusOr<bool> LeaveOut(uint64_t batch, const std::string& what);

  /// Leaves out all work up to the end of the run.
  absl::Status LeaveOutRest();
  void AbortOpen();

  /// Ends the work at hand without a push. REQUIRES: there is some; client_->Skip has to follow.
  void GiveUpWork();

  /// Returns the failure behind `status` if an interruption caused it, and says who has the
  /// worker's id now if that is why; else `status`.
  absl::Status Cause(const absl::Status& status) const;

  // Constant after Join.
  const Options options_;
  Interruption& interruption_;
  CoordinatorClient coordinator_;
  JoinedRun joined_;
  RunSpec settings_;
  std::optional<NonfiniteSteps> nonfinite_;
  std::optional<GradientClip> clip_;

  ServerAddresses servers_;
  StepFigures figures_;
  std::unique_ptr<Heartbeat> heartbeat_;

  // Since Synchronize.
  TensorLayout layout_;
  ShardMap map_;
  std::optional<SharedArena> arena_;
  AlignedBuffer<float> own_values_;
  AlignedBuffer<float> weights_;
  std::span<float> values_;
  std::optional<BatchOrder> order_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<UnitFetcher> units_;
  std::unique_ptr<WorkSource> work_;
  std::unique_ptr<WeightsReader> reader_;

  /// The local steps of the caller's, and their exchange.
  struct Local {
    explicit Local(Session& session);

    CallersModel model;
    LocalSteps steps;
    LocalExchange exchange;
  };

  AlignedBuffer<float> own_weights_;  // Weights of local steps, where weights() land apart.
  std::unique_ptr<Local> local_;      // Between BeginLocalSteps and EndLocalSteps.

  /// A push that was begun and is not complete.
  struct OpenPush {
    uint32_t examples = 0;
    uint64_t label = 0;
    uint64_t step = 0;
    size_t end = 0;  // Values from here on were released.
    GradientFeed* feed = nullptr;
    std::optional<std::string> nonfinite;  // Why the push must not count.
  };

  /// An evaluation whose weights were read.
  struct OpenEvaluation {
    Heartbeat::Order order;
    WeightsReader::Reading reading;
    absl::Time begin;
  };

  std::optional<OpenEvaluation> evaluation_;
  std::shared_ptr<std::vector<float>> measured_weights_;  // The caller's, too.
  uint64_t epoch_examples_ = 1;                           // The number of examples of an epoch.
  uint64_t last_order_ = 0;                               // The last evaluation that was made.
  bool has_measured_ = false;                             // Since the last call of Next.

  std::optional<OpenPush> open_;
  std::optional<Work> at_hand_;
  absl::Time turn_;  // When the wait for it began.
  absl::Time work_began_;
  uint64_t steps_ = 0;
  bool is_over_ = false;  // No work is left.
  bool ends_training_ = false;
  bool has_left_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_PYTHON_SESSION_H_

#ifndef SLIPSTREAM_WORKER_TRAINING_ALL_REDUCE_CLIENT_H_
#define SLIPSTREAM_WORKER_TRAINING_ALL_REDUCE_CLIENT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/layout/tensor_layout.h"
#include "common/policy/learning_rate.h"
#include "common/settings/run_spec.h"
#include "worker/allreduce/collective.h"
#include "worker/allreduce/gradient_sum.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/first_failure.h"
#include "worker/client/gradient_client.h"
#include "worker/client/joining.h"
#include "worker/client/parameter_client.h"
#include "worker/compute/plan.h"
#include "worker/training/inner_rule.h"
#include "worker/training/interruption.h"

namespace slipstream {

/// Connects a member with all other workers of its run, whose ranks are their ids. Fails as
/// Collective::Connect does, and CANCELLED if there is an interruption before all have left their
/// contacts.
absl::StatusOr<std::unique_ptr<Collective>> ConnectWorkers(const CoordinatorClient& coordinator,
                                                           const JoinedRun& joined,
                                                           const RunSpec& settings,
                                                           Interruption& interruption);

/// The client of a worker that adds up gradients with the other workers (allreduce), and makes the
/// next weights by the rule of the optimizer, as all of them do: synchronous SGD without servers.
///
/// In round r, rank k of λ computes mini-batch r·λ + k; in the last round ranks may have none. The
/// gradients are weighted by their examples, as hardsync does it. Rank 0 publishes the weights to
/// the servers at the end of each epoch and of the run, so that they are measured, saved and read
/// there; the round that ends an epoch is reported as done only after that. All ranks compare their
/// weights each time.
///
/// Memory: the sum of the gradients and the rule's state, each as large as the model or a multiple.
///
/// Not thread-safe: one owner, which computes; another thread may report ranges to a feed.
class AllReduceClient final : public GradientClient {
 public:
  struct Options {
    /// The run's settings; only allreduce fits.
    RunSpec run;
    TensorLayout layout;

    /// The number of examples of the training set; not 0.
    uint64_t examples_per_epoch = 1;

    /// How long the coordinator takes to notice that a worker is gone.
    absl::Duration lease;

    GradientSum::Options sum;
  };

  /// `arenas`: the weights and gradients of the plan. `servers` publishes from the memory of these
  /// gradients and has pulled no weights. All references must outlive the client.
  AllReduceClient(const Options& options, std::unique_ptr<Collective> collective,
                  ModelArenas& arenas, ParameterClient& servers, Interruption& interruption);

  absl::StatusOr<Step> Advance(uint32_t slot) override;
  GradientFeed& BeginPush(uint32_t slot, const Gradient& gradient) override;
  absl::Status FinishPush(uint32_t slot, const PushTrailer& trailer) override;
  void AbortPush(uint32_t slot) override;
  void Skip(uint32_t slot) override;
  absl::Status Drain() override { return failure_.status(); }

  /// There is one stage, and nobody hands out units: the only news are that no more come.
  absl::Status OnNews(const WorkNews& news) override;

  /// The other ranks hear of the end in the next round.
  void OnOrders(const Orders& orders) override { wants_end_ |= orders.work_ends; }
  WorkWish wish() const override { return {}; }

  /// Rank 0 reports the mini-batches of all ranks as its unit, which is the whole run.
  Done done() const override;
  bool goes_on() const override { return true; }
  std::vector<Transfer> TakeTransfers() override;

 private:
  /// Takes the weights from which all ranks begin.
  absl::Status TakeFirstWeights();

  /// Takes part in the last round without a mini-batch.
  absl::Status SitOut();

  absl::StatusOr<GradientSum::Result> FinishRound();
  void Update(uint64_t examples);

  /// Compares the weights of all ranks after the mini-batches before `end`; rank 0 publishes them.
  absl::Status Publish(uint64_t end);

  /// Returns the failure of a round as the reason that people should read: the coordinator finds
  /// out which worker is gone.
  absl::Status Explain(const absl::Status& status);

  // Constant after construction.
  const uint64_t batches_per_epoch_;
  const uint64_t batches_total_;
  const absl::Duration lease_;
  const LearningRate learning_rate_;

  const std::unique_ptr<Collective> collective_;
  ModelArenas& arenas_;
  ParameterClient& servers_;
  Interruption& interruption_;
  InnerRule rule_;

  bool has_weights_ = false;
  bool wants_end_ = false;
  bool is_over_ = false;
  uint64_t done_ = 0;       // The mini-batches of all ranks that are part of the weights.
  uint64_t published_ = 0;  // Of these, the ones that rank 0 has published.
  uint64_t examples_ = 0;   // As for done_, but without those left out.
  uint64_t examples_published_ = 0;
  uint64_t step_ = 0;  // The caller's number of the open step.
  FirstFailure failure_;
  std::vector<Transfer> transfers_;

  GradientSum sum_;  // Last: its thread ends first.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_ALL_REDUCE_CLIENT_H_

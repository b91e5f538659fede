#include "worker/training/all_reduce_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/kernels/values_checksum.h"
#include "common/log/log.h"
#include "common/process/exit_code.h"
#include "worker/training/local_address.h"
#include "worker/training/nonfinite_steps.h"

namespace slipstream {
namespace {

/// The unit of work of rank 0: the mini-batches of the whole run, of all ranks.
constexpr uint64_t kUnit = 1;

/// The coordinator as the place where workers meet.
class CoordinatorPlace final : public MeetingPlace {
 public:
  CoordinatorPlace(const CoordinatorClient& coordinator, const Identity& identity,
                   const Interruption& interruption)
      : coordinator_(coordinator), identity_(identity), interruption_(interruption) {}

  absl::Status Leave(const std::string& contact) override {
    return LeaveContact(coordinator_, identity_, contact);
  }

  absl::StatusOr<std::string> Await(uint32_t rank) override {
    return AwaitContact(coordinator_, identity_, WorkerId{rank},
                        [this] { return interruption_.interrupted(); });
  }

 private:
  const CoordinatorClient& coordinator_;
  const Identity identity_;
  const Interruption& interruption_;
};

uint64_t BatchesPerEpoch(const AllReduceClient::Options& options) {
  const uint64_t batch_size = options.run.training.batch_size;
  return (options.examples_per_epoch + batch_size - 1) / batch_size;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Collective>> ConnectWorkers(const CoordinatorClient& coordinator,
                                                           const JoinedRun& joined,
                                                           const RunSpec& settings,
                                                           Interruption& interruption) {
  const absl::StatusOr<std::string> address = LocalAddressTowards(joined.servers.front());
  if (!address.ok()) return address.status();
  CoordinatorPlace place(coordinator, joined.identity, interruption);
  auto collective = Collective::Connect({.rank = Value(joined.identity.worker),
                                         .ranks = settings.cluster.workers,
                                         .address = *address},
                                        place);
  if (collective.ok()) {
    LogInfo("connected with the other workers",
            {{"workers", settings.cluster.workers}, {"from", *address}});
  }
  return collective;
}

AllReduceClient::AllReduceClient(const Options& options, std::unique_ptr<Collective> collective,
                                 ModelArenas& arenas, ParameterClient& servers,
                                 Interruption& interruption)
    : batches_per_epoch_(BatchesPerEpoch(options)),
      batches_total_(options.run.training.steps(batches_per_epoch_)),
      lease_(options.lease),
      learning_rate_(options.run.optimizer.learning_rate, options.run.optimizer.schedule,
                     {.examples_per_epoch = options.examples_per_epoch,
                      .epochs = options.run.training.epochs}),
      collective_(std::move(collective)),
      arenas_(arenas),
      servers_(servers),
      interruption_(interruption),
      rule_(options.run.optimizer, options.layout),
      sum_(*collective_, options.layout.parameters(), options.sum,
           [&interruption] { return interruption.interrupted(); }) {}

absl::StatusOr<GradientClient::Step> AllReduceClient::Advance(uint32_t) {
  failure_.Note(TakeFirstWeights());
  while (failure_.status().ok()) {
    if (is_over_) return Step(Finished{});
    const uint64_t batch = done_ + collective_->rank();
    if (batch < batches_total_) return Step(Compute{{{batch}}});
    failure_.Note(SitOut());
  }
  return failure_.status();
}

absl::Status AllReduceClient::TakeFirstWeights() {
  if (std::exchange(has_weights_, true)) return absl::OkStatus();
  const WorkUnit whole = {.id = kUnit, .first = 0, .batches = batches_total_};
  if (absl::Status status = servers_.OnNews(whole); !status.ok()) return status;
  if (absl::Status status = servers_.Advance(0).status(); !status.ok()) return status;
  return servers_.Drain();
}

GradientFeed& AllReduceClient::BeginPush(uint32_t, const Gradient& gradient) {
  step_ = gradient.step;
  return sum_.Begin({.gradient = arenas_.gradients_host(),
                     .examples = gradient.examples,
                     .wants_end = wants_end_,
                     .last_change = gradient.last_change});
}

absl::Status AllReduceClient::FinishPush(uint32_t, const PushTrailer& trailer) {
  sum_.feed().Seal(trailer);
  const absl::StatusOr<GradientSum::Result> result = FinishRound();
  failure_.Note(result.status());
  if (result.ok()) {
    transfers_.push_back({.step = step_,
                          .lanes = {{.push_begin = result->begin,
                                     .push_end = result->end,
                                     .answered = result->end,
                                     .end = result->end,
                                     .busy = result->busy}}});
  }
  return failure_.status();
}

void AllReduceClient::AbortPush(uint32_t) { sum_.feed().Abort(); }

void AllReduceClient::Skip(uint32_t) { failure_.Note(FinishRound().status()); }

absl::Status AllReduceClient::SitOut() {
  sum_.Begin({.wants_end = wants_end_});
  return FinishRound().status();
}

absl::StatusOr<GradientSum::Result> AllReduceClient::FinishRound() {
  const absl::StatusOr<GradientSum::Result> result = sum_.Finish();
  if (!result.ok()) return Explain(result.status());
  if (result->examples > 0) Update(result->examples);
  const uint64_t end = std::min(batches_total_, done_ + collective_->ranks());
  const bool ends_epoch = end / batches_per_epoch_ > done_ / batches_per_epoch_;
  is_over_ = result->ends || end == batches_total_;
  if (is_over_ || ends_epoch) {
    if (absl::Status status = Publish(end); !status.ok()) return status;
  }
  done_ = end;
  return result;
}

void AllReduceClient::Update(uint64_t examples) {
  const StepSize step = {.rate = static_cast<float>(learning_rate_.At(examples_))};
  const auto inverse_divisor = static_cast<float>(1.0 / static_cast<double>(examples));
  const std::span<float> weights = arenas_.weights_host();
  rule_.BeginStep();
  for (const ParameterRange& piece : rule_.pieces()) {
    rule_.Update(piece, weights.subspan(piece.begin, piece.size()),
                 sum_.sum().subspan(piece.begin, piece.size()), step, inverse_divisor);
  }
  arenas_.WeightsArrived({0, weights.size()});
  examples_ += examples;
}

absl::Status AllReduceClient::Publish(uint64_t end) {
  const std::span<const float> weights = arenas_.weights_host();
  if (const auto wrong = NonfinitePart(std::nullopt, weights, Encoding::kFp32, 0, "weights")) {
    return DivergedError(
        fmt::format("training diverged: the updates up to mini-batch {} led to {}. Lower "
                    "optimizer.learning_rate, or let it rise (optimizer.schedule.warmup_epochs)",
                    end - 1, *wrong));
  }
  const absl::StatusOr<bool> is_same = sum_.IsSame(ValuesChecksum(weights));
  if (!is_same.ok()) return Explain(is_same.status());
  if (!*is_same) {
    return absl::InternalError(fmt::format(
        "after mini-batch {} the workers have different weights, though all made them of the same "
        "sums: run the same build of ps_worker on machines with sound memory",
        end - 1));
  }
  // Where all was left out, the weights are still those that were published last.
  if (collective_->rank() != 0 || examples_ == examples_published_) return absl::OkStatus();
  const uint64_t batches = end - published_;
  servers_.OnOrders({.steps = batches});
  const absl::StatusOr<Step> step = servers_.Advance(0);
  if (!step.ok()) return step.status();
  const auto* compute = std::get_if<Compute>(&*step);
  PS_CHECK(compute != nullptr && CountOf(compute->batches) == batches);
  std::ranges::copy(weights, arenas_.gradients_host().begin());
  servers_.BeginPush(0, {.batches = compute->batches,
                         .examples = static_cast<uint32_t>(examples_ - examples_published_),
                         .step = step_});
  if (absl::Status pushed = servers_.FinishPush(0, {}); !pushed.ok()) return pushed;
  published_ = end;
  examples_published_ = examples_;
  return servers_.Drain();
}

absl::Status AllReduceClient::Explain(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return status;
  LogWarning("a round failed; waiting for the coordinator to say why",
             {{"reason", status.message()}});
  const bool nobody_knows = interruption_.Sleep(2 * lease_);
  return nobody_knows ? status : absl::CancelledError("stopped");
}

absl::Status AllReduceClient::OnNews(const WorkNews& news) {
  if (std::holds_alternative<NoMoreUnits>(news)) return absl::OkStatus();
  return absl::InternalError(
      "the coordinator names units or stages in a run whose workers add up gradients themselves");
}

GradientClient::Done AllReduceClient::done() const {
  if (collective_->rank() != 0) return {};
  return {.units = {{.id = kUnit, .batches_done = done_}}};
}

std::vector<GradientClient::Transfer> AllReduceClient::TakeTransfers() {
  return std::exchange(transfers_, {});
}

}  // namespace slipstream

// The part of Coordinator that orders evaluations: which worker measures the weights, and how the
// run ends.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/duration_text.h"
#include "server/core/coordinator.h"

namespace slipstream {

bool Coordinator::AdvanceEvaluation(absl::Time now) {
  if (evaluations_.final_done()) {
    const double loss = evaluations_.results().back().test_loss;
    if (!std::isfinite(loss)) {
      end_reason_ = EndReason::kDiverged;
      return Fail(fmt::format("training diverged: the final weights give loss {}",
                              std::isnan(loss) ? "nan" : fmt::format("{}", loss)),
                  now);
    }
    if (const std::string why = evaluations_.WhyNotSaved(); !why.empty()) {
      AddNote(true, "the trained weights were not saved", {{"reason", why}});
    }
    MoveTo(Phase::kFinished, now);
    return true;
  }
  if (const auto lack = AwaitReturn(1, "to measure the final weights", now)) {
    return Fail(*lack, now);
  }
  if (membership_.live() == 0) return false;
  GiveUpLateEvaluator(now);
  if (!evaluations_.due()) return false;
  const std::optional<WorkerId> evaluator = evaluations_.Choose(membership_.LiveWorkers());
  if (!evaluator.has_value()) {
    return Fail(fmt::format("no worker measured the final weights within {}, though {} live",
                            DurationText(start_timeout_), membership_.live()),
                now);
  }
  AssignEvaluation(*evaluator, now);
  return false;
}

void Coordinator::GiveUpLateEvaluator(absl::Time now) {
  if (!evaluations_.open().has_value()) return;
  // Nobody can measure while the weights of a shard are not there.
  if (AnyAway()) evaluation_heard_ = now;
  // Nothing waits for a result during training, so the limit counts from the start of this phase.
  const absl::Time waiting_since = std::max(evaluation_heard_, phase_since_);
  if (now - waiting_since <= start_timeout_) return;
  AddNote(true, "evaluation given up, as it did not get on",
          {{"worker", Value(evaluations_.open()->worker)},
           {"for_seconds", absl::ToDoubleSeconds(start_timeout_)}});
  evaluations_.GiveUpHolder();
  ++changes_;
  ++journal_changes_;
}

void Coordinator::OnMeasured(const Identity& worker, uint64_t evaluation, uint64_t examples,
                             absl::Time now) {
  const std::optional<Evaluations::Order> order = EvaluationFor(worker.worker);
  if (!membership_.Check(worker).ok() || !order.has_value()) return;
  if (order->number != evaluation || examples <= measured_) return;
  measured_ = examples;
  evaluation_heard_ = now;
}

absl::Status Coordinator::OnSaving(const Identity& worker, Saving saving, absl::Time now) {
  if (absl::Status live = membership_.Check(worker); !live.ok()) return live;
  if (saving.state == Saving::State::kCannot) {
    AddNote(true, "a worker cannot save weights",
            {{"worker", Value(worker.worker)}, {"reason", saving.failure}});
  }
  evaluations_.OnSaving(worker.worker, std::move(saving));
  ++journal_changes_;
  // One that comes later does not end a run that has done work.
  if (membership_.workers().at(worker.worker).founding) FailIfNobodySaves(now);
  return absl::OkStatus();
}

void Coordinator::FailIfNobodySaves(absl::Time now) {
  // Later, the weights are worth more than the place, which an operator may yet mend.
  const bool has_just_begun =
      phase_ == Phase::kInitializing || (phase_ == Phase::kTraining && epochs_done() == 0);
  if (!is_measured_ || !has_just_begun) return;
  const std::string why = evaluations_.WhyNobodySaves(membership_.LiveWorkers());
  if (why.empty()) return;
  Fail("no worker can save the trained weights: " + why, now);
}

void Coordinator::AssignEvaluation(WorkerId worker, absl::Time now) {
  if (!evaluations_.Assign(worker)) return;
  ++journal_changes_;
  evaluation_heard_ = now;
  measured_ = 0;
  const Evaluations::Order& order = *evaluations_.open();
  AddNote(false, "evaluation ordered",
          {{"worker", Value(order.worker)}, {"epoch", order.epoch}, {"final", order.is_final}});
}

void Coordinator::NoteSkipped(uint32_t epoch) {
  const std::optional<Evaluations::Order>& open = evaluations_.open();
  AddNote(false, "evaluation skipped",
          {{"epoch", epoch},
           {"reason", open.has_value() ? fmt::format("the one of epoch {} still runs", open->epoch)
                                       : std::string("the final one takes its place")}});
}

}  // namespace slipstream

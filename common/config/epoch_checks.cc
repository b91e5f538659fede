#include "common/config/epoch_checks.h"

#include <fmt/format.h>

namespace slipstream {
namespace {

/// Checks that the learning rate gets on with a run whose end nobody knows.
void CheckScheduleAdvances(const RunDraft& draft, DiagnosticList& diagnostics) {
  constexpr const char* kWarmup = "optimizer.schedule.warmup_epochs";
  constexpr const char* kKind = "optimizer.schedule.kind";
  const ScheduleSpec& schedule = draft.spec.optimizer.schedule;
  if (!draft.spec.is_endless() || !draft.IsUsable("training.max_steps")) return;
  const auto report = [&](const char* path, const char* what) {
    diagnostics.Report(draft.KeySource(path),
                       fmt::format("{} counts epochs, and with training.work own they have no "
                                   "length yet, so that {}; set training.max_steps, which makes "
                                   "the run one epoch, or data.examples, the examples of an epoch",
                                   path, what));
  };
  if (draft.IsUsable(kWarmup) && schedule.warmup_epochs > 0) {
    report(kWarmup, "the learning rate would stay 0");
  }
  if (draft.IsUsable(kKind) && schedule.kind != ScheduleSpec::Kind::kConstant) {
    report(kKind, "the learning rate would never fall");
  }
}

/// Checks that nothing has to be done between epochs of a run that is one.
void CheckBetweenEpochs(const RunDraft& draft, DiagnosticList& diagnostics) {
  const RunSpec& run = draft.spec;
  const auto report = [&](const char* path) {
    if (!draft.IsUsable(path)) return;
    diagnostics.Report(draft.KeySource(path),
                       fmt::format("{} is for the time between two epochs, and with training.work "
                                   "own the whole run is one; set data.examples, the examples of "
                                   "an epoch, and training.epochs",
                                   path));
  };
  if (run.training.epochs > 1) {
    diagnostics.Report(
        draft.KeySource("training.epochs"),
        "with training.work own, epochs need \"data.examples\", the number of examples "
        "that count as one; without it the whole run is one, and ends by max_steps or "
        "max_seconds, or when a worker or psctl stop ends it");
    return;
  }
  if (!run.policies_before.empty()) report("consistency.before");
  if (run.training.target_accuracy > 0) report("training.target_accuracy");
  if (run.model_files.save_every_epochs > 0) report("model.save_every_epochs");
  // The default evaluates the final weights, too.
  if (run.evaluation.every_epochs > 1) report("evaluation.every_epochs");
}

}  // namespace

void CheckEpochs(const RunDraft& draft, DiagnosticList& diagnostics) {
  for (const char* key :
       {"model.from", "data.from", "data.examples", "training.work", "training.epochs"}) {
    if (!draft.IsUsable(key)) return;
  }
  if (!draft.spec.is_one_epoch()) return;
  CheckBetweenEpochs(draft, diagnostics);
  CheckScheduleAdvances(draft, diagnostics);
}

}  // namespace slipstream

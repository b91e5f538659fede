#include <fmt/format.h>

#include <functional>
#include <set>
#include <string>

#include "common/config/field_table.h"
#include "common/config/run_checks.h"
#include "common/model/presets.h"

namespace slipstream {
namespace {

std::string ChoiceOf(const std::string& path, const RunSpec& spec) {
  return std::get<std::string>(std::get<ScalarValue>(FindField(path)->get(spec)));
}

void ResetField(const Field& field, RunDraft& draft) {
  field.set(draft.spec, field.default_value());
  draft.given.erase(field.path);
}

/// Returns the condition for which the field has no meaning: its own, or one of the key that
/// decides about it. REQUIRES: the field does not apply.
const Condition& UnmetCondition(const Field& field, const RunSpec& spec) {
  const Field* decider = FindField(field.condition->path);
  return decider->Applies(spec) ? *field.condition : UnmetCondition(*decider, spec);
}

void ResolveConditions(RunDraft& draft, DiagnosticList& diagnostics) {
  std::set<std::string, std::less<>> without_meaning;
  for (const Field& field : Fields()) {
    if (!draft.IsGiven(field.path) || field.Applies(draft.spec)) continue;
    const Condition& condition = UnmetCondition(field, draft.spec);
    if (!draft.IsUsable(condition.path)) continue;
    // If the deciding key has no meaning itself, that was reported already, or is no error.
    const bool is_said = without_meaning.contains(field.condition->path);
    without_meaning.insert(field.path);
    if (!is_said && draft.OriginOf(field.path) >= draft.OriginOf(condition.path)) {
      diagnostics.Report(draft.KeySource(field.path),
                         fmt::format("\"{}\" belongs to {} {}, and {} is {}", field.name(),
                                     condition.path, fmt::join(condition.choices, " or "),
                                     condition.path, ChoiceOf(condition.path, draft.spec)));
    }
    ResetField(field, draft);
  }
}

/// A net is given by its name or by its layers. If both are given, the one of the stronger source
/// counts.
void ResolveModel(RunDraft& draft, DiagnosticList& diagnostics) {
  for (const char* path : {"model.input", "model.layers"}) {
    if (!draft.IsGiven(path) || !draft.IsGiven("model.preset")) continue;
    if (draft.OriginOf(path) > draft.OriginOf("model.preset")) {
      ResetField(*FindField("model.preset"), draft);
      continue;
    }
    if (draft.OriginOf(path) == draft.OriginOf("model.preset")) {
      diagnostics.Report(
          draft.KeySource(path),
          fmt::format("\"{}\" and \"preset\" exclude each other", FindField(path)->name()));
    }
    ResetField(*FindField(path), draft);
  }
  if (auto preset = FindPreset(draft.spec.model.preset)) {
    preset->loss = draft.spec.model.loss;
    draft.spec.model = *preset;
  }
}

/// The size of a softsync round follows from n, or is c. If both are given, the one of the stronger
/// source counts.
void ResolveRoundSize(RunDraft& draft, DiagnosticList& diagnostics) {
  constexpr std::string_view kFixed = "consistency.c";
  constexpr std::string_view kShare = "consistency.n";
  const bool has_both = draft.IsGiven(kFixed) && draft.IsGiven(kShare);
  if (!has_both || draft.spec.consistency.parameters["c"] == 0) return;
  const bool is_from_one_source = draft.OriginOf(kFixed) == draft.OriginOf(kShare);
  if (is_from_one_source && draft.Changes(kShare)) {
    diagnostics.Report(draft.KeySource(kFixed),
                       "\"c\" and \"n\" exclude each other: both set how many gradients an update "
                       "combines");
  }
  const bool is_fixed = draft.OriginOf(kFixed) > draft.OriginOf(kShare);
  if (!is_from_one_source) ResetField(*FindField(is_fixed ? kShare : kFixed), draft);
}

/// A learning rate that fits SGD is far too large for Adam. So the default follows from the rule,
/// and a rate from a weaker source is dropped if a stronger source changes the rule.
void ResolveLearningRate(RunDraft& draft, const std::string& section, double initial,
                         double& rate) {
  const std::string kind = section + ".kind";
  const std::string path = section + ".learning_rate";
  const bool is_for_this_rule =
      draft.OriginOf(path) >= draft.OriginOf(kind) || !draft.Changes(kind);
  if (draft.IsGiven(path) && is_for_this_rule) return;
  draft.given.erase(path);
  rate = initial;
}

void ResolveRates(RunDraft& draft) {
  OptimizerSpec& optimizer = draft.spec.optimizer;
  ResolveLearningRate(draft, "optimizer", RowOf(optimizer.kind).learning_rate,
                      optimizer.learning_rate);
  WorkerSpec::Outer& outer = draft.spec.worker.outer;
  const AlgorithmRow& algorithm = RowOf(draft.spec.worker.algorithm);
  // outer_learning_rate is for deltas, which have a rate in them already.
  const bool pushes_gradients =
      algorithm.has_local_weights && algorithm.pushes == PushKind::kGradient;
  const RuleRow& rule = RowOf(outer.kind);
  const double of_rule = pushes_gradients ? rule.learning_rate : rule.outer_learning_rate;
  const bool is_as_published = outer.kind == algorithm.outer;
  ResolveLearningRate(draft, "worker.outer",
                      is_as_published ? algorithm.outer_learning_rate.value_or(of_rule) : of_rule,
                      outer.learning_rate);
}

/// Sets the key at `path` to a value that the choice of the key `bringer` brings, unless the key
/// was given.
template <typename Value>
void Bring(RunDraft& draft, const std::string& bringer, const std::string& path, Value brought,
           Value& value) {
  const auto before = draft.given.find(path);
  if (before != draft.given.end() && !before->second.is_brought) return;
  // Nobody knows what a choice would bring whose name is wrong.
  const bool is_valid = draft.IsUsable(bringer);
  if (value == brought && is_valid) return;
  const FieldValue weaker = FindField(path)->get(draft.spec);
  draft.given[path] = {.origin = draft.OriginOf(bringer),
                       .key = draft.KeySource(bringer),
                       .value = draft.KeySource(bringer),
                       .items = {},
                       .is_valid = is_valid,
                       .weaker = weaker,
                       .changes = value != brought,
                       .is_brought = true};
  value = brought;
}

}  // namespace

void BringDefaults(RunDraft& draft) {
  RunSpec& spec = draft.spec;
  const AlgorithmRow& algorithm = RowOf(spec.worker.algorithm);
  const auto bring = [&draft](const std::string& path, auto brought, auto& value) {
    Bring(draft, "worker.algorithm", path, brought, value);
  };
  bring("consistency.policy", algorithm.policy, spec.consistency.policy);
  bring("optimizer.kind", algorithm.inner, spec.optimizer.kind);
  bring("worker.outer.kind", algorithm.outer, spec.worker.outer.kind);
  bring("optimizer.staleness_scaling", algorithm.scaling, spec.optimizer.staleness_scaling);
  bring("readers.versions_kept", algorithm.versions_kept, spec.readers.versions_kept);
  const bool is_published = algorithm.pushes == PushKind::kValues;
  bring("model.from", is_published ? SuppliedBy::kWorkers : SuppliedBy::kSettings, spec.model_from);
  using By = EvaluationSpec::By;
  Bring(draft, "model.from", "data.from", spec.model_from, spec.data.from);
  using Work = TrainingSpec::Work;
  const bool has_own_work = is_published && spec.data.from == SuppliedBy::kWorkers;
  bring("training.work", has_own_work ? Work::kOwn : Work::kHandedOut, spec.training.work);
  // Whether lanes apply depends on the algorithm.
  const bool is_free = spec.worker.has_free_lanes() && FindField("worker.lanes")->Applies(spec);
  Bring(draft, "worker.lanes", "training.pipeline_depth",
        is_free ? 2u : TrainingSpec().pipeline_depth, spec.training.pipeline_depth);
  // The test set, if there is one, is with whoever has the examples.
  const bool is_theirs = spec.data.from == SuppliedBy::kWorkers;
  Bring(draft, "data.from", "evaluation.by", is_theirs ? By::kNobody : By::kWorkers,
        spec.evaluation.by);
}

void ResolveRun(RunDraft& draft, DiagnosticList& diagnostics) {
  ResolveConditions(draft, diagnostics);
  ResolveRoundSize(draft, diagnostics);
  ResolveModel(draft, diagnostics);
  ResolveRates(draft);
}

}  // namespace slipstream

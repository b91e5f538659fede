#include "common/settings/learning_warnings.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "common/settings/algorithm_rows.h"
#include "common/settings/optimizer_rows.h"
#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

// The limits below lie between what learned and what stayed at chance in five epochs of
// Fashion-MNIST with LeNet-5; deploy/examples/README.md has the figures.

/// Returns the mean staleness that the conservation law foretells under a policy, (dλ − 1)/c; 0
/// where no push is ever stale.
double ExpectedStaleness(const RunSpec& run, const ConsistencySpec& policy) {
  if (policy.traits().one_per_member || policy.traits().workers_make_weights()) return 0;
  const uint64_t under_way = uint64_t{run.cluster.workers} * run.training.pipeline_depth;
  return static_cast<double>(under_way - 1) / policy.round_size(run.cluster.workers);
}

/// A policy of the run, and what follows from it.
struct Stage {
  const RunSpec& run;
  const ConsistencySpec& policy;
  double staleness;
  OptimizerSpec servers;  // The rule that servers follow.

  /// The distance, in lengths of a push, that stale pushes drive the weights on.
  double drift() const {
    const auto stride = RowOf(servers.kind).stride;
    return stride == nullptr ? 0 : staleness * stride(servers.parameters, servers.learning_rate);
  }
  bool pushes_deltas() const {
    return RowOf(run.worker.algorithm).has_local_weights && run.pushes() == PushKind::kDelta;
  }
  bool scales() const {
    const bool guards = policy.max_staleness.action != StalenessGuardSpec::Action::kNone;
    return guards || run.optimizer.staleness_scaling != kDefaultScaling;
  }
  std::string text() const {
    return fmt::format(
        "under consistency.policy {}, where a push is {:.2g} versions old on average,",
        RowOf(policy.policy).name, staleness);
  }
};

/// Momentum of the servers builds up stale deltas.
std::string OuterMomentum(const Stage& stage) {
  constexpr double kDriftMax = 5;
  if (!stage.pushes_deltas() || !RowOf(stage.servers.kind).builds_up) return "";
  if (stage.drift() <= kDriftMax) return "";
  return fmt::format(
      "worker.outer: {} with learning_rate {} and momentum {} builds up stale deltas {} and the "
      "run may not learn (Liu et al. 2024, arXiv 2401.09135); set worker.outer.kind "
      "delayed_nesterov, which they propose, or consistency.policy hardsync",
      RowOf(stage.servers.kind).name, stage.run.worker.outer.learning_rate,
      stage.servers.parameters["momentum"], stage.text());
}

/// Momentum of the workers' steps makes deltas long.
std::string InnerMomentum(const Stage& stage) {
  constexpr double kDriftMax = 2;
  const bool keeps_weights = RowOf(stage.run.worker.algorithm).keeps_weights;
  if (!stage.pushes_deltas() || keeps_weights) return "";
  if (!RowOf(stage.run.optimizer.kind).builds_up) return "";
  if (stage.drift() <= kDriftMax) return "";
  return fmt::format(
      "optimizer.kind {} makes the deltas of worker.algorithm {} long, and {} the run may not "
      "learn at worker.outer.learning_rate {}; set optimizer.kind sgd, a smaller outer rate, or "
      "consistency.policy hardsync",
      RowOf(stage.run.optimizer.kind).name, RowOf(stage.run.worker.algorithm).name, stage.text(),
      stage.run.worker.outer.learning_rate);
}

/// Steps are too long for stale gradients, be it by the rate or by momentum that builds them up.
std::string StaleGradients(const Stage& stage) {
  constexpr double kDriftMax = 1.4;
  if (stage.pushes_deltas() || stage.scales()) return "";
  // Workers with weights of their own push the sum of their gradients.
  const bool sums = RowOf(stage.run.worker.algorithm).has_local_weights;
  const double summed = sums ? static_cast<double>(stage.run.worker.quantum()) : 1;
  if (stage.drift() * summed <= kDriftMax) return "";
  const RuleRow& rule = RowOf(stage.servers.kind);
  const std::string momentum =
      rule.builds_up ? fmt::format(" and momentum {}", stage.servers.parameters["momentum"]) : "";
  return fmt::format(
      "{} with learning_rate {}{} is too fast for stale {} {} and the run may not learn (Zhang et "
      "al. 2015, arXiv 1511.05950: 15-softsync of 30 workers stays at chance); set "
      "optimizer.staleness_scaling "
      "per_gradient, as they do, or a smaller rate",
      rule.name, stage.servers.learning_rate, momentum, sums ? "sums of gradients" : "gradients",
      stage.text());
}

/// Steps of lamb are as long as they are, however old the gradient is.
std::string StaleLamb(const Stage& stage) {
  constexpr double kDriftMax = 0.02;
  const double drift = stage.staleness * stage.servers.learning_rate;
  const RuleRow& rule = RowOf(stage.servers.kind);
  if (!rule.has_steps_of_one_length() || stage.scales() || drift <= kDriftMax) return "";
  return fmt::format(
      "{} takes steps of one length, however old a gradient is, and {} the run may not learn at "
      "learning_rate {} (it is published for large synchronous batches: You et al. 2020, arXiv "
      "1904.00962); set optimizer.staleness_scaling mean, half the rate, or consistency.policy "
      "hardsync",
      rule.name, stage.text(), stage.servers.learning_rate);
}

/// Pushes of one round that are added up draw the center beyond the workers.
std::string ElasticSwing(const Stage& stage) {
  if (!RowOf(stage.run.worker.algorithm).sums_pushes) return "";
  const double elasticity = stage.run.worker.parameters["elasticity"];
  const uint32_t workers = stage.run.cluster.workers;
  const uint32_t round = stage.policy.round_size(workers);
  if (elasticity * round / workers <= 2) return "";
  return fmt::format(
      "an update adds up {} pushes of worker.algorithm {}, each of elasticity/workers = {}/{}, and "
      "so draws the center to the other side of the workers and ever further; set consistency.n "
      "instead of c, or a smaller worker.elasticity",
      round, RowOf(stage.run.worker.algorithm).name, elasticity, workers);
}

/// The rate never becomes what the settings say.
std::string LongWarmup(const Stage& stage) {
  const double warmup = stage.run.optimizer.schedule.warmup_epochs;
  if (warmup < stage.run.training.epochs) return "";
  return fmt::format(
      "optimizer.schedule.warmup_epochs {} is not below training.epochs {}, so that the learning "
      "rate rises until the end; warm up for less, or train for longer",
      warmup, stage.run.training.epochs);
}

std::string LateSteps(const Stage& stage) {
  const ScheduleSpec& schedule = stage.run.optimizer.schedule;
  if (schedule.kind != ScheduleSpec::Kind::kStep || schedule.at_epochs.empty()) return "";
  const double last = schedule.at_epochs.back();
  if (last < stage.run.training.epochs) return "";
  return fmt::format(
      "optimizer.schedule.at_epochs has {}, and the run ends after training.epochs {}, so that the "
      "learning rate does not fall there",
      last, stage.run.training.epochs);
}

}  // namespace

std::vector<std::string> LearningWarnings(const RunSpec& run) {
  std::vector<std::string> warnings;
  const std::vector<PolicyStage> stages = run.stages();
  for (const auto& find : {OuterMomentum, InnerMomentum, StaleGradients, StaleLamb, ElasticSwing,
                           LongWarmup, LateSteps}) {
    for (const PolicyStage& stage : stages) {
      std::string warning = find({.run = run,
                                  .policy = stage.consistency,
                                  .staleness = ExpectedStaleness(run, stage.consistency),
                                  .servers = run.server_optimizer(stage.consistency)});
      if (warning.empty()) continue;
      warnings.push_back(std::move(warning));
      break;  // One policy is enough to say it.
    }
  }
  return warnings;
}

}  // namespace slipstream

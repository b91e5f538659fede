#ifndef SLIPSTREAM_COMMON_SETTINGS_OPTIMIZER_ROWS_H_
#define SLIPSTREAM_COMMON_SETTINGS_OPTIMIZER_ROWS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "common/settings/parameters.h"

namespace slipstream {

/// The axis of update rules. A row holds the properties that other code depends on; the kernels are
/// in common/kernels/rules. The values are the places in kRuleRows.
enum class RuleKind : uint8_t {
  kSgd,
  kMomentum,
  kNesterov,
  kAdam,
  kAdamW,
  kLamb,
  kAdagrad,
  kRmsProp,
  kDelayedNesterov,
  kAssign
};

inline constexpr std::array kRuleParameters = {
    ParameterRow{.key = "momentum",
                 .doc = "The share of the last step that is kept in the next.",
                 .initial = 0.9,
                 .max = kShareMax},
    ParameterRow{.key = "beta1",
                 .doc = "The share of the gradients' running mean that is kept.",
                 .initial = 0.9,
                 .max = kShareMax},
    ParameterRow{.key = "beta2",
                 .doc = "The share of their squares' running mean that is kept.",
                 .initial = 0.999,
                 .max = kShareMax},
    ParameterRow{
        .key = "epsilon",
        .doc = "Added to the root of the squares' mean or sum, which a step is divided by.",
        .initial = 1e-8,
        .min = 1e-20,
        .max = 1},
    ParameterRow{.key = "rho",
                 .doc = "The share of the gradients' squares' running mean that is kept.",
                 .initial = 0.99,
                 .max = kShareMax},
    ParameterRow{.key = "momentum_every",
                 .doc = "The momentum advances once in so many updates; the number of workers is a "
                        "good choice.",
                 .initial = 4,
                 .min = 1,
                 .max = 1'000'000,
                 .is_whole = true},
};

using RuleParameters = ParameterValues<kRuleParameters>;

struct RuleRow {
  RuleKind kind;
  std::string_view name;
  std::string_view doc;
  ParameterKeys parameters = {};

  /// The default of optimizer.learning_rate.
  double learning_rate = 0.05;

  /// The default of worker.outer.learning_rate. A delta is as long as the local steps that it sums
  /// up, so sgd with 1 gives the mean of the workers' weights.
  double outer_learning_rate = 1;

  /// Completes "NAME …" with what the rule does with optimizer.weight_decay, if it does not add it
  /// to the gradient.
  std::string_view decay_doc = "";

  /// The number of arrays of the weights' size that the rule keeps from one update to the next.
  uint32_t state_arrays = 0;

  /// Set if a step depends on norms over whole tensors: shards are cut between tensors, and no
  /// update begins before its gradient is complete.
  bool measures_tensors = false;

  /// Set if the size of a step depends on the rate and not on the gradients' size. Compensation by
  /// the mean staleness then scales the step.
  bool normalises = false;

  /// Set if what an update does depends on its number, so that a tensor without a gradient must not
  /// miss one: its gradient is 0.
  bool counts_updates = false;

  /// Set if the rule makes weights of pushed weights (PushKind::kValues), and not of gradients. It
  /// has no rate, decay or clipping, and takes one push for each version.
  bool takes_values = false;

  /// Set if an update goes on in the direction of the ones before, so that stale steps build up.
  bool builds_up = false;

  /// Returns how often its own length a gradient moves the weights in the end, at this rate; null
  /// if the step does not grow with the gradient.
  double (*stride)(const RuleParameters& parameters, double rate) = nullptr;

  /// Whether a step is as long as the rate and the weights make it, whatever the gradient.
  constexpr bool has_steps_of_one_length() const { return normalises && measures_tensors; }

  /// Whether an update does nothing but add a multiple of the gradient, and of the weights, to each
  /// weight, so that several may be under way at once.
  constexpr bool adds() const { return state_arrays == 0 && !measures_tensors && !takes_values; }
};

constexpr double StrideOfMomentum(const RuleParameters& parameters, double rate) {
  return rate / (1 - parameters["momentum"]);
}

inline constexpr std::array kRuleRows = {
    RuleRow{.kind = RuleKind::kSgd,
            .name = "sgd",
            .doc = "the gradient itself",
            .stride = [](const RuleParameters&, double rate) { return rate; }},
    RuleRow{.kind = RuleKind::kMomentum,
            .name = "momentum",
            .doc = "a decaying sum of gradients",
            .parameters = {"momentum"},
            .outer_learning_rate = 0.1,
            .state_arrays = 1,
            .builds_up = true,
            .stride = StrideOfMomentum},
    RuleRow{.kind = RuleKind::kNesterov,
            .name = "nesterov",
            .doc = "momentum that looks one step ahead",
            .parameters = {"momentum"},
            .outer_learning_rate = 0.1,
            .state_arrays = 1,
            .builds_up = true,
            .stride = StrideOfMomentum},
    RuleRow{.kind = RuleKind::kAdam,
            .name = "adam",
            .doc = "the gradients' running mean, over the root of that of their squares",
            .parameters = {"beta1", "beta2", "epsilon"},
            .learning_rate = 0.001,
            .outer_learning_rate = 0.01,
            .state_arrays = 2,
            .normalises = true},
    RuleRow{.kind = RuleKind::kAdamW,
            .name = "adamw",
            .doc = "adam, with the decay taken off the weights themselves",
            .parameters = {"beta1", "beta2", "epsilon"},
            .learning_rate = 0.001,
            .outer_learning_rate = 0.01,
            .decay_doc = "takes it, times the learning rate, off the weights",
            .state_arrays = 2,
            .normalises = true},
    RuleRow{.kind = RuleKind::kLamb,
            .name = "lamb",
            .doc = "adam's step, made as long as a share of the norm of the tensor it changes",
            .parameters = {"beta1", "beta2", "epsilon"},
            .learning_rate = 0.01,
            .outer_learning_rate = 0.01,
            .decay_doc = "adds it to the step before that is scaled",
            .state_arrays = 2,
            .measures_tensors = true,
            .normalises = true},
    RuleRow{.kind = RuleKind::kAdagrad,
            .name = "adagrad",
            .doc = "the gradient, over the root of the sum of all squares so far",
            .parameters = {"epsilon"},
            .learning_rate = 0.01,
            .outer_learning_rate = 0.01,
            .state_arrays = 1,
            .normalises = true},
    RuleRow{.kind = RuleKind::kRmsProp,
            .name = "rmsprop",
            .doc = "the gradient, over the root of its squares' running mean",
            .parameters = {"rho", "epsilon"},
            .learning_rate = 0.001,
            .outer_learning_rate = 0.001,
            .state_arrays = 1,
            .normalises = true},
    RuleRow{.kind = RuleKind::kDelayedNesterov,
            .name = "delayed_nesterov",
            .doc = "nesterov whose momentum advances once in several updates",
            .parameters = {"momentum", "momentum_every"},
            .outer_learning_rate = 0.4,
            .state_arrays = 2,
            .counts_updates = true,
            .stride =
                [](const RuleParameters& parameters, double rate) {
                  return StrideOfMomentum(parameters, rate) / parameters["momentum_every"];
                }},
    RuleRow{.kind = RuleKind::kAssign,
            .name = "assign",
            .doc = "whole weights, which are the next version; with worker.algorithm publish alone",
            .takes_values = true},
};
static_assert(AreInOrder(kRuleRows));

inline constexpr RuleKind kDefaultRule = RuleKind::kSgd;

/// The rule that makes weights of pushed weights.
inline constexpr RuleKind kRuleOfValues =
    std::ranges::find_if(kRuleRows, &RuleRow::takes_values)->kind;

constexpr const RuleRow& RowOf(RuleKind kind) {
  return *std::ranges::find(kRuleRows, kind, &RuleRow::kind);
}

/// The axis of staleness compensations; common/policy/staleness_compensations.cc has their
/// formulas. The values are the places in kScalingRows.
enum class StalenessScaling : uint8_t {
  kNone,
  kPerGradient,
  kMean,
  kPolynomial,
  kDelayCompensated,
  kInverseSqrt,
  kRudra,
  kDelayAdaptive,
  kGapAware
};

inline constexpr std::array kScalingParameters = {
    ParameterRow{.key = "staleness_power",
                 .doc = "A gradient of staleness σ counts (1 + σ) to the minus this.",
                 .initial = 0.5,
                 .max = 10},
    ParameterRow{
        .key = "delay_compensation",
        .doc = "The factor λ of g + λ g² (θ_now − θ_base), which brings a gradient g up to date.",
        .initial = 0.04,
        .max = 1e6},
    ParameterRow{
        .key = "delay_strength",
        .doc = "λ₀ of g + λ g² (θ_now − θ_base), where λ = λ₀/√m and m is the running mean of g².",
        .initial = 2,
        .max = 1e6},
    ParameterRow{.key = "reference_batch",
                 .doc = "B, the number of examples per update for which learning_rate is right.",
                 .initial = 128,
                 .min = 1,
                 .max = 1e9,
                 .is_whole = true},
};

using ScalingParameters = ParameterValues<kScalingParameters>;

/// The sizes of a run on which its learning rate may depend.
struct RunScale {
  double workers = 1;     // λ
  double batch_size = 1;  // μ
  double round_size = 1;  // c, the number of gradients in an update.

  /// Set if an update has one gradient of each worker, all of the same weights.
  bool one_per_member = false;
};

struct ScalingRow {
  StalenessScaling kind;
  std::string_view name;
  std::string_view doc;
  ParameterKeys parameters = {};

  /// Set if each gradient has a factor of its own, by its staleness.
  bool scales_gradients = false;

  /// Set if the factor of a round depends on the bases of its gradients, and so is not known before
  /// the round closes.
  bool scales_rounds = false;

  /// Set if the compensation compares the weights that a gradient was computed from with those that
  /// it is applied to. Shards then keep the former while the gradient is on its way.
  bool uses_base_weights = false;

  /// Set if the compensation keeps an array of the weights' size, a number for each weight.
  bool keeps_history = false;

  /// Set if gradients of the newest weights change that array, too.
  bool folds_fresh_gradients = false;

  /// Returns the factor of the learning rate, the same from the run's begin to its end; null if
  /// that is 1.
  double (*rate_factor)(const ScalingParameters& parameters, const RunScale& run) = nullptr;
};

inline constexpr std::array kScalingRows = {
    ScalingRow{.kind = StalenessScaling::kNone, .name = "none", .doc = "all gradients count alike"},
    ScalingRow{.kind = StalenessScaling::kPerGradient,
               .name = "per_gradient",
               .doc = "each gradient is divided by its staleness",
               .scales_gradients = true},
    ScalingRow{.kind = StalenessScaling::kMean,
               .name = "mean",
               .doc = "the rate is divided by the mean staleness of the last 100 updates",
               .scales_rounds = true},
    ScalingRow{.kind = StalenessScaling::kPolynomial,
               .name = "polynomial",
               .doc = "gradients count less by a power of their staleness",
               .parameters = {"staleness_power"},
               .scales_gradients = true},
    ScalingRow{.kind = StalenessScaling::kDelayCompensated,
               .name = "delay_compensated",
               .doc = "gradients are brought up to date by how far the weights have moved",
               .parameters = {"delay_compensation"},
               .uses_base_weights = true},
    ScalingRow{.kind = StalenessScaling::kInverseSqrt,
               .name = "inverse_sqrt",
               .doc = "gradients count less by the root of their staleness, 1/(1 + √σ)",
               .scales_gradients = true},
    // α₀ √(λμ/B) for hardsync and α₀/n for n-softsync (Gupta, Zhang, Wang, arXiv 1509.04210).
    ScalingRow{.kind = StalenessScaling::kRudra,
               .name = "rudra",
               .doc =
                   "the rate follows the size of the run: it is multiplied by the root of "
                   "λμ/reference_batch under hardsync and backup, and by c/λ, at most 1, elsewhere",
               .parameters = {"reference_batch"},
               .rate_factor =
                   [](const ScalingParameters& parameters, const RunScale& run) {
                     if (!run.one_per_member)
                       return std::min(1.0, run.round_size / std::max(1.0, run.workers));
                     return std::sqrt(run.workers * run.batch_size / parameters["reference_batch"]);
                   }},
    ScalingRow{.kind = StalenessScaling::kDelayAdaptive,
               .name = "delay_adaptive",
               .doc = "as delay_compensated, by less where gradients are large",
               .parameters = {"delay_strength"},
               .uses_base_weights = true,
               .keeps_history = true,
               .folds_fresh_gradients = true},
    ScalingRow{.kind = StalenessScaling::kGapAware,
               .name = "gap_aware",
               .doc = "each value counts less the further its weight has moved, in usual steps",
               .uses_base_weights = true,
               .keeps_history = true},
};
static_assert(AreInOrder(kScalingRows));

/// Without compensation: all gradients count alike.
inline constexpr StalenessScaling kDefaultScaling = StalenessScaling::kNone;

constexpr const ScalingRow& RowOf(StalenessScaling kind) {
  return *std::ranges::find(kScalingRows, kind, &ScalingRow::kind);
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_OPTIMIZER_ROWS_H_

#ifndef SLIPSTREAM_COMMON_SETTINGS_ALGORITHM_ROWS_H_
#define SLIPSTREAM_COMMON_SETTINGS_ALGORITHM_ROWS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/limits.h"
#include "common/base/push_kind.h"
#include "common/settings/optimizer_rows.h"
#include "common/settings/parameters.h"
#include "common/settings/policy_rows.h"

namespace slipstream {

/// The axis of worker algorithms: what a worker pushes, and when. A row holds the properties that
/// other code depends on; worker/algorithm has what the algorithm does with the model. The values
/// are the places in kAlgorithmRows.
enum class AlgorithmKind : uint8_t {
  kGradient,
  kLocalSgd,
  kDiloco,
  kFedbuff,
  kDownpour,
  kEasgd,
  kEamsgd,
  kPublish
};

inline constexpr std::array kAlgorithmParameters = {
    ParameterRow{
        .key = "steps",
        .doc = "The number of steps that a worker takes between two pushes, one mini-batch each.",
        .initial = 8,
        .min = 1,
        .max = 10'000,
        .is_whole = true},
    ParameterRow{.key = "push_every",
                 .doc = "The number of mini-batches between two pushes of a worker, which applies "
                        "the gradient of each to its own weights.",
                 .initial = 4,
                 .min = 1,
                 .max = 10'000,
                 .is_whole = true},
    ParameterRow{.key = "fetch_every",
                 .doc = "The most mini-batches between two fetches of weights, a multiple of "
                        "push_every; in between, a worker goes on from its own weights. 0 fetches "
                        "with each push.",
                 .initial = 0,
                 .max = 1'000'000,
                 .is_whole = true,
                 .is_off_at_zero = true},
    ParameterRow{.key = "fragments",
                 .doc = "The number of parts of the model that are exchanged one after another in "
                        "the course of steps; divides the number of servers. 0 or 1 exchanges the "
                        "whole model at once.",
                 .initial = 0,
                 .max = 256,
                 .is_whole = true,
                 .is_off_at_zero = true},
    ParameterRow{.key = "fragment_delay",
                 .doc = "The number of steps that a worker takes while a fragment is exchanged, "
                        "below steps/fragments.",
                 .initial = 0,
                 .max = 10'000,
                 .is_whole = true,
                 .is_off_at_zero = true},
    ParameterRow{.key = "mixing",
                 .doc = "α, the share of a worker's own weights that it keeps when those of a "
                        "fragment arrive. Published with 0.5 where fragment_delay is above 0.",
                 .initial = 0,
                 .max = kShareMax,
                 .is_off_at_zero = true},
    ParameterRow{.key = "elasticity",
                 .doc = "β, the share of their distance by which the workers together draw the "
                        "servers' weights to their own; each draws by β/workers.",
                 .initial = 0.9,
                 .min = 0.001,
                 .max = 1},
};

using AlgorithmParameters = ParameterValues<kAlgorithmParameters>;

struct AlgorithmRow {
  AlgorithmKind kind;
  std::string_view name;
  std::string_view doc;
  ParameterKeys parameters = {};
  PushKind pushes = PushKind::kGradient;

  /// Set if the worker takes steps of its own, by optimizer's rule, between a pull and the push
  /// that follows. Servers then follow worker.outer. The worker computes one push at a time, and
  /// the results since its last push are lost if its process ends.
  bool has_local_weights = false;

  /// Set if a worker keeps its weights from push to push. It fetches those of the servers just
  /// before a push, as what the push is relative to.
  bool keeps_weights = false;

  /// Set if servers add up what workers push, instead of taking the mean.
  bool sums_pushes = false;

  // The algorithm is published with these defaults of other keys, or needs them.

  /// The default of worker.outer.kind, for an algorithm with local weights.
  RuleKind outer = kDefaultRule;

  /// The default of worker.outer.learning_rate with this outer kind; null for the rule's own.
  std::optional<double> outer_learning_rate = {};

  /// The default of optimizer.kind.
  RuleKind inner = kDefaultRule;

  /// The default of optimizer.staleness_scaling.
  StalenessScaling scaling = kDefaultScaling;

  /// The default of consistency.policy.
  PolicyKind policy = kDefaultPolicy;

  /// Why it goes together with no other policy, to complete "needs consistency.policy POLICY, …";
  /// empty if it does.
  std::string_view why_policy = "";

  /// The default of readers.versions_kept.
  uint32_t versions_kept = 1;

  /// Returns the number of mini-batches of one push; null if that is one.
  uint64_t (*quantum)(const AlgorithmParameters& parameters) = nullptr;

  /// Returns the number of pushes from one fetch of weights to the next; null if each push fetches.
  uint64_t (*pushes_per_fetch)(const AlgorithmParameters& parameters) = nullptr;

  /// Whether a push is a gradient of weights that the servers gave, so that the mean or the sum of
  /// several is one as well.
  constexpr bool pushes_gradients_of_pulled() const {
    return pushes == PushKind::kGradient && !has_local_weights;
  }
};

// The quanta of algorithms that push after worker.steps or worker.push_every mini-batches.

constexpr uint64_t StepsOf(const AlgorithmParameters& parameters) {
  return static_cast<uint64_t>(parameters["steps"]);
}
constexpr uint64_t PushEveryOf(const AlgorithmParameters& parameters) {
  return static_cast<uint64_t>(parameters["push_every"]);
}

constexpr uint64_t PushesPerFetchOf(const AlgorithmParameters& parameters) {
  const auto fetch_every = static_cast<uint64_t>(parameters["fetch_every"]);
  return std::max<uint64_t>(1, fetch_every / PushEveryOf(parameters));
}

constexpr uint64_t NeverFetchAgain(const AlgorithmParameters&) { return kNeverFetches; }

inline constexpr std::array kAlgorithmRows = {
    AlgorithmRow{.kind = AlgorithmKind::kGradient,
                 .name = "gradient",
                 .doc = "the gradient of each mini-batch"},
    // Local SGD (Stich, ICLR 2019, arXiv 1805.09767), federated averaging (McMahan et al., 2017).
    AlgorithmRow{.kind = AlgorithmKind::kLocalSgd,
                 .name = "local_sgd",
                 .doc = "how far several local steps have led from the weights pulled",
                 .parameters = {"steps"},
                 .pushes = PushKind::kDelta,
                 .has_local_weights = true,
                 .quantum = StepsOf},
    // Douillard et al., arXiv 2311.08105; the outer rate and momentum are theirs, and so is
    // hardsync: the momentum would build up stale deltas. Fragments are of arXiv 2501.18512.
    AlgorithmRow{.kind = AlgorithmKind::kDiloco,
                 .name = "diloco",
                 .doc = "local steps of adamw, and nesterov over how far they have led",
                 .parameters = {"steps", "fragments", "fragment_delay", "mixing"},
                 .pushes = PushKind::kDelta,
                 .has_local_weights = true,
                 .outer = RuleKind::kNesterov,
                 .outer_learning_rate = 0.7,
                 .inner = RuleKind::kAdamW,
                 .policy = PolicyKind::kHardsync,
                 .quantum = StepsOf},
    // Nguyen et al., AISTATS 2022, arXiv 2106.06639: servers apply buffers of consistency.c deltas,
    // each weighed by 1/√(1 + σ).
    AlgorithmRow{.kind = AlgorithmKind::kFedbuff,
                 .name = "fedbuff",
                 .doc = "local steps into a buffer of updates, where stale ones count less",
                 .parameters = {"steps"},
                 .pushes = PushKind::kDelta,
                 .has_local_weights = true,
                 .scaling = StalenessScaling::kPolynomial,
                 .why_policy = "whose rounds are its buffers",
                 .quantum = StepsOf},
    // Dean et al., NIPS 2012; Adagrad on the servers is theirs, too.
    AlgorithmRow{.kind = AlgorithmKind::kDownpour,
                 .name = "downpour",
                 .doc =
                     "the sum of several steps' gradients, which the worker has applied to its own "
                     "weights meanwhile",
                 .parameters = {"push_every", "fetch_every"},
                 .has_local_weights = true,
                 .outer = RuleKind::kAdagrad,
                 .quantum = PushEveryOf,
                 .pushes_per_fetch = PushesPerFetchOf},
    // Zhang, Choromanska, LeCun, NIPS 2015, arXiv 1412.6651; β = 0.9 is theirs.
    AlgorithmRow{.kind = AlgorithmKind::kEasgd,
                 .name = "easgd",
                 .doc = "elastic averaging: workers and servers keep weights of their own, and "
                        "each push draws both towards each other",
                 .parameters = {"push_every", "elasticity"},
                 .pushes = PushKind::kDelta,
                 .has_local_weights = true,
                 .keeps_weights = true,
                 .sums_pushes = true,
                 .policy = PolicyKind::kAsync,
                 .quantum = PushEveryOf},
    AlgorithmRow{.kind = AlgorithmKind::kEamsgd,
                 .name = "eamsgd",
                 .doc = "elastic averaging with nesterov momentum on the workers",
                 .parameters = {"push_every", "elasticity"},
                 .pushes = PushKind::kDelta,
                 .has_local_weights = true,
                 .keeps_weights = true,
                 .sums_pushes = true,
                 .inner = RuleKind::kNesterov,
                 .policy = PolicyKind::kAsync,
                 .quantum = PushEveryOf},
    AlgorithmRow{.kind = AlgorithmKind::kPublish,
                 .name = "publish",
                 .doc = "whole weights, of a program that trains by itself and has readers follow",
                 .pushes = PushKind::kValues,
                 .inner = RuleKind::kAssign,
                 .policy = PolicyKind::kAsync,
                 .why_policy = "under which each push is a version",
                 .versions_kept = 2,
                 .pushes_per_fetch = NeverFetchAgain},
};
static_assert(AreInOrder(kAlgorithmRows));

inline constexpr AlgorithmKind kDefaultAlgorithm = AlgorithmKind::kGradient;

constexpr const AlgorithmRow& RowOf(AlgorithmKind kind) {
  return kAlgorithmRows.at(static_cast<size_t>(kind));
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_ALGORITHM_ROWS_H_

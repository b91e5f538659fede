#ifndef SLIPSTREAM_COMMON_RUN_ALGORITHM_ROWS_H_
#define SLIPSTREAM_COMMON_RUN_ALGORITHM_ROWS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/push_kind.h"
#include "common/run/optimizer_rows.h"
#include "common/run/parameters.h"

namespace slipstream {

/// The axis of worker algorithms: what a worker pushes, and when. A row holds the properties that
/// other code depends on; worker/algorithm has what the algorithm does with the model. The values
/// are the places in kAlgorithmRows.
enum class AlgorithmKind : uint8_t { kGradient, kLocalSgd };

inline constexpr std::array kAlgorithmParameters = {
    ParameterRow{
        .key = "steps",
        .doc = "The number of steps that a worker takes between two pushes, one mini-batch each.",
        .initial = 8,
        .min = 1,
        .max = 10'000,
        .is_whole = true},
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

  /// The default of worker.outer.kind, for an algorithm with local weights.
  RuleKind outer = RuleKind::kSgd;

  /// Returns the number of mini-batches of one push; null if that is one.
  uint64_t (*quantum)(const AlgorithmParameters& parameters) = nullptr;
};

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
                 .quantum =
                     [](const AlgorithmParameters& parameters) {
                       return static_cast<uint64_t>(parameters["steps"]);
                     }},
};
static_assert(AreInOrder(kAlgorithmRows));

constexpr const AlgorithmRow& RowOf(AlgorithmKind kind) {
  return kAlgorithmRows.at(static_cast<size_t>(kind));
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RUN_ALGORITHM_ROWS_H_

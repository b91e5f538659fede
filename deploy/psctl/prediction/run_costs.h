#ifndef SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_RUN_COSTS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_RUN_COSTS_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "deploy/psctl/prediction/exchange_costs.h"

namespace slipstream {

/// The costs of a run where it is to run, from which its speed is predicted. Times are in seconds.
struct RunCosts {
  /// A mini-batch of μ examples takes compute_fixed + compute_per_example · μ, on average; times
  /// are log-normal, and spread is their standard deviation by their mean.
  double compute_fixed = 0;
  double compute_per_example = 0;
  double compute_spread = 0;

  /// An update of the whole model by the servers' rule, and adding one whole gradient to a round.
  double update = 0;
  double fold = 0;

  /// The link of each host, or within a machine what moves values there.
  LinkCosts link;

  /// The same between workers that add up their gradients themselves.
  LinkCosts ring;

  /// The processors that all workers and servers share; 0 if each is a machine of its own.
  double processors = 0;

  /// Set if the same processors also do the link's work, as they do within a machine.
  bool moves_by_processors = false;

  double ComputeSeconds(double examples) const {
    return compute_fixed + compute_per_example * examples;
  }
};

enum class CostUnit { kSeconds, kBytesPerSecond, kPlain };

/// A figure among the costs: how flags and JSON name it, and where RunCosts has it.
struct CostFigure {
  /// The name in JSON; with - for _ it is the flag.
  std::string_view key;
  std::string_view doc;
  CostUnit unit = CostUnit::kSeconds;
  double& (*of)(RunCosts& costs) = nullptr;
};

inline constexpr std::array kCostFigures = {
    CostFigure{"compute_fixed", "the part of a mini-batch's computing that does not grow with it",
               CostUnit::kSeconds, [](RunCosts& c) -> double& { return c.compute_fixed; }},
    CostFigure{"compute_per_example", "computing one example", CostUnit::kSeconds,
               [](RunCosts& c) -> double& { return c.compute_per_example; }},
    CostFigure{"compute_spread", "deviation of computing times by their mean", CostUnit::kPlain,
               [](RunCosts& c) -> double& { return c.compute_spread; }},
    CostFigure{"update_time", "an update of the whole model", CostUnit::kSeconds,
               [](RunCosts& c) -> double& { return c.update; }},
    CostFigure{"fold_time", "adding one whole gradient to a round", CostUnit::kSeconds,
               [](RunCosts& c) -> double& { return c.fold; }},
    CostFigure{"link_latency", "alpha of a link", CostUnit::kSeconds,
               [](RunCosts& c) -> double& { return c.link.latency; }},
    CostFigure{"link_bandwidth", "a link's rate each way", CostUnit::kBytesPerSecond,
               [](RunCosts& c) -> double& { return c.link.bytes_per_second; }},
    CostFigure{"message_overhead", "what sending one message costs a processor (LogP's o)",
               CostUnit::kSeconds, [](RunCosts& c) -> double& { return c.link.message; }},
    CostFigure{"ring_latency", "alpha between workers, for allreduce", CostUnit::kSeconds,
               [](RunCosts& c) -> double& { return c.ring.latency; }},
    CostFigure{"ring_bandwidth", "the rate between workers, for allreduce",
               CostUnit::kBytesPerSecond,
               [](RunCosts& c) -> double& { return c.ring.bytes_per_second; }},
    CostFigure{"processors", "shared by all workers and servers; 0: a machine for each",
               CostUnit::kPlain, [](RunCosts& c) -> double& { return c.processors; }},
};

/// A figure and where it comes from, such as "measured".
struct KnownCost {
  double value = 0;
  std::string origin;
};

/// The costs that are known, in the order of kCostFigures.
using KnownCosts = std::array<std::optional<KnownCost>, kCostFigures.size()>;

/// Returns the place of a figure in kCostFigures. REQUIRES: there is such a figure.
constexpr size_t PlaceOfCost(std::string_view key) {
  size_t place = 0;
  while (kCostFigures.at(place).key != key) ++place;
  return place;
}

/// Reads "50us", "1.5ms", "10Gbit", "100MB" (of a second), or a plain number, as the unit asks for;
/// nothing if it is none, or below 0.
std::optional<double> ParseCost(CostUnit unit, const std::string& text);

/// Returns "1.53 ms", "9.77 GB/s" or "0.08".
std::string CostText(CostUnit unit, double value);

/// Takes from `more` what `known` lacks.
void AddMissing(KnownCosts& known, const KnownCosts& more);

/// Returns the costs, where the ring has what the link has if it was not said otherwise, and what
/// nobody said is RunCosts' default.
RunCosts CostsOf(const KnownCosts& known);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_PREDICTION_RUN_COSTS_H_

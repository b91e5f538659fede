#include "tests/simulation/weighing.h"

#include <algorithm>
#include <cmath>

namespace slipstream {
namespace {

constexpr size_t kWindowUpdates = 100;

}  // namespace

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double Weighing::WindowMean() const {
  const size_t first = means_.size() - std::min(means_.size(), kWindowUpdates);
  return MeanOf({means_.begin() + static_cast<std::ptrdiff_t>(first), means_.end()});
}

double Weighing::ShareOf(double lag) const {
  const OptimizerSpec& optimizer = scenario_.run.optimizer;
  const StalenessGuardSpec& guard = scenario_.guard();
  const auto bound = static_cast<double>(guard.bound);
  const bool scales = guard.action == StalenessGuardSpec::Action::kScale && lag > bound;
  const double share = scales ? bound / lag : 1.0;
  switch (optimizer.staleness_scaling) {
    case StalenessScaling::kPerGradient:
      return share / std::max(1.0, lag);
    case StalenessScaling::kPolynomial:
      return share * std::pow(1 + lag, -optimizer.scaling_parameters["staleness_power"]);
    case StalenessScaling::kInverseSqrt:
      return share / (1 + std::sqrt(lag));
    default:
      return share;
  }
}

Weighing::Factors Weighing::Take(uint32_t stage, const std::vector<Entry>& entries,
                                 const std::vector<double>& lags) {
  means_.push_back(MeanOf(lags));
  const ConsistencySpec policy = scenario_.PolicyOf(stage);
  const OptimizerSpec optimizer = scenario_.run.server_optimizer(policy);
  Factors factors = {.rate = optimizer.learning_rate};
  double of_round = 1;
  if (scenario_.run.optimizer.staleness_scaling == StalenessScaling::kMean) {
    (RowOf(optimizer.kind).normalises ? factors.scale : of_round) = 1 / std::max(1.0, WindowMean());
  }
  double examples = 0;
  for (const Entry& entry : entries) examples += entry.push->made.examples;
  for (size_t i = 0; i < entries.size(); ++i) {
    double part = scenario_.HasRounds(stage) ? entries[i].push->made.examples / examples
                                             : 1.0 / static_cast<double>(entries.size());
    if (RowOf(scenario_.run.worker.algorithm).sums_pushes) part = 1;
    factors.shares.push_back(of_round * part * ShareOf(lags[i]));
  }
  return factors;
}

}  // namespace slipstream

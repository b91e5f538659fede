#include "deploy/psctl/prediction/staleness_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/functional/function_ref.h"
#include "common/base/check.h"

namespace slipstream {
namespace {

constexpr double kDeviations = 9;  // Beyond them lies less than 1e-18.
constexpr int kStrips = 1200;

/// Returns P(Z > z) of a normal variable.
double Above(double z) { return std::erfc(z / std::numbers::sqrt2) / 2; }

/// Returns the time of the worker that is `z` deviations slower than usual, on the scale of
/// logarithms.
double TimeOf(double z, double spread) {
  const double variance = std::log1p(spread * spread);
  return std::exp(std::sqrt(variance) * z - variance / 2);
}

/// Returns ∫ f(z) φ(z) dz by the trapezoidal rule, which converges fast for what ends so flat.
double Expectation(absl::FunctionRef<double(double)> of) {
  const double strip = 2 * kDeviations / kStrips;
  double sum = 0;
  for (int i = 0; i <= kStrips; ++i) {
    const double z = i * strip - kDeviations;
    sum += of(z) * std::exp(-z * z / 2);
  }
  return sum * strip / std::sqrt(2 * std::numbers::pi);
}

/// Returns the chance that at least `count` gradients of others arrive where `others` are expected.
double AtLeast(double count, double others, double spread) {
  if (spread <= 0) return count <= others ? 1 : 0;
  return Expectation([&](double z) {
    const double expected = others * TimeOf(z, spread);
    return Above((count - 0.5 - expected) / (spread * std::sqrt(expected)));
  });
}

}  // namespace

double MeanStaleness(double under_way, double per_update) { return (under_way - 1) / per_update; }

double StalenessBeyond(double others, uint32_t per_update, double spread, double bound) {
  PS_CHECK(per_update > 0);
  if (others <= 0) return 0;
  // With k gradients of the round there before, K more make ⌊(k + K)/c⌋ updates.
  const double updates = std::floor(bound) + 1;
  const uint32_t places = std::min(per_update, 32u);
  double sum = 0;
  for (uint32_t place = 0; place < places; ++place) {
    const double before = std::floor((place + 0.5) * per_update / places);
    sum += AtLeast(updates * per_update - before, others, spread);
  }
  return std::min(1.0, sum / places);
}

double FastestOf(uint32_t fastest, uint32_t workers, double spread) {
  PS_CHECK(fastest > 0 && fastest <= workers);
  if (spread <= 0 || workers == 1) return 1;
  // X_(K:λ) has the density λ (λ − 1 over K − 1) F^(K − 1) (1 − F)^(λ − K) f.
  const double k = fastest;
  const double n = workers;
  const double log_count = std::lgamma(n + 1) - std::lgamma(k) - std::lgamma(n - k + 1);
  return Expectation([&](double z) {
    const double log_weight = (k - 1) * std::log(Above(-z)) + (n - k) * std::log(Above(z));
    return TimeOf(z, spread) * std::exp(log_count + log_weight);
  });
}

}  // namespace slipstream

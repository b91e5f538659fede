#include "deploy/psctl/compare/mean_interval.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>

#include "common/base/check.h"

namespace slipstream {
namespace {

/// The quantiles for 1 to 30 degrees of freedom.
constexpr std::array kQuantiles = {
    12.70620, 4.30265, 3.18245, 2.77645, 2.57058, 2.44691, 2.36462, 2.30600, 2.26216, 2.22814,
    2.20099,  2.17881, 2.16037, 2.14479, 2.13145, 2.11991, 2.10982, 2.10092, 2.09302, 2.08596,
    2.07961,  2.07387, 2.06866, 2.06390, 2.05954, 2.05553, 2.05183, 2.04841, 2.04523, 2.04227};

}  // namespace

double StudentQuantile95(size_t degrees) {
  PS_CHECK(degrees > 0);
  if (degrees <= kQuantiles.size()) return kQuantiles[degrees - 1];
  // This is the expansion around the normal distribution (Abramowitz and Stegun, 26.7.5). Its next
  // term is below 1e-5, because there are more than 30 degrees.
  const double z = 1.959964;
  const auto n = static_cast<double>(degrees);
  const double z3 = z * z * z;
  const double z5 = z3 * z * z;
  const double z7 = z5 * z * z;
  return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
}

MeanInterval MeanOf(std::span<const double> values) {
  PS_CHECK(!values.empty());
  const auto count = static_cast<double>(values.size());
  MeanInterval result;
  result.count = values.size();
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  const double deviation = std::sqrt(squares / (count - 1));
  result.half_width = StudentQuantile95(values.size() - 1) * deviation / std::sqrt(count);
  return result;
}

MeanInterval MeanInterval::Times(double factor) const {
  MeanInterval product = *this;
  product.mean *= factor;
  if (product.half_width) *product.half_width *= factor;
  return product;
}

std::string MeanInterval::Text(int decimals) const {
  const std::string text = fmt::format("{:.{}f}", mean, decimals);
  return half_width ? fmt::format("{} ± {:.{}f}", text, *half_width, decimals) : text;
}

}  // namespace slipstream

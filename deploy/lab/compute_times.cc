#include "deploy/lab/compute_times.h"

#include <cmath>
#include <numbers>

namespace slipstream {
namespace {

/// The random streams of the run's seed from this number on draw the times; other streams of the
/// seed are those of a real run.
constexpr uint64_t kTimeStreams = uint64_t{1} << 40;

/// Returns a number of the standard normal distribution (Box and Muller, 1958).
double Normal(RandomStream& draws) {
  const double radius = std::sqrt(-2 * std::log(1 - draws.Unit()));
  return radius * std::cos(2 * std::numbers::pi * draws.Unit());
}

/// Returns a factor of mean 1.
double LogNormal(RandomStream& draws, double sigma) {
  return sigma == 0 ? 1 : std::exp(sigma * Normal(draws) - sigma * sigma / 2);
}

/// Returns a factor of mean 1.
double Pareto(RandomStream& draws, double alpha) {
  return (alpha - 1) / alpha * std::pow(1 - draws.Unit(), -1 / alpha);
}

}  // namespace

ComputeTimes::ComputeTimes(const WorldSpec& world, uint32_t workers, uint64_t seed)
    : compute_(world.compute) {
  const auto slow = static_cast<uint32_t>(std::lround(compute_.slow_share * workers));
  for (uint32_t i = 0; i < workers; ++i) {
    Worker& worker = workers_.emplace_back(Worker{RandomStream(seed, kTimeStreams + i)});
    worker.factor = LogNormal(worker.draws, compute_.machines_sigma);
    if (i >= workers - slow) worker.factor *= compute_.slower;
    if (const VirtualWorkerSpec* own = world.Find(WorkerId{i})) worker.factor *= own->slower;
  }
}

absl::Duration ComputeTimes::Next(WorkerId worker, uint32_t examples) {
  Worker& of = workers_[Value(worker)];
  double factor = of.factor;
  switch (compute_.spread) {
    case ComputeTimeSpec::Spread::kNone:
      break;
    case ComputeTimeSpec::Spread::kLogNormal:
      factor *= LogNormal(of.draws, compute_.sigma);
      break;
    case ComputeTimeSpec::Spread::kPareto:
      factor *= Pareto(of.draws, compute_.alpha);
      break;
  }
  return factor * (compute_.fixed + examples * compute_.per_example);
}

}  // namespace slipstream

// The rows of the axis of compensations, and their registry.

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/kernels/delay_compensated.h"
#include "common/kernels/gap_aware.h"
#include "common/policy/staleness_compensation.h"

namespace slipstream {
namespace {

using Made = std::unique_ptr<const StalenessCompensation>;

/// Multiplies each gradient by 1/σ for σ > 0, else by 1 (Zhang, Gupta, Lian, Liu: Staleness-aware
/// async-SGD, arXiv 1511.05950).
class PerGradient final : public StalenessCompensation {
 public:
  double GradientFactor(uint64_t staleness) const override {
    return staleness == 0 ? 1 : 1 / static_cast<double>(staleness);
  }
};

/// Multiplies each round by 1/max(1, ⟨σ⟩), which tends to 1/n for n-softsync (arXiv 1509.04210).
class Mean final : public StalenessCompensation {
 public:
  double RoundFactor(double mean_staleness) const override {
    return 1 / std::max(1.0, mean_staleness);
  }
};

/// Multiplies each gradient by (1 + σ)^−a (Xie, Koyejo, Gupta: Asynchronous federated optimization,
/// FedAsync, arXiv 1903.03934).
class Polynomial final : public StalenessCompensation {
 public:
  explicit Polynomial(const OptimizerSpec& optimizer)
      : power_(optimizer.scaling_parameters["staleness_power"]) {}

  double GradientFactor(uint64_t staleness) const override {
    return std::pow(1 + static_cast<double>(staleness), -power_);
  }

 private:
  const double power_;
};

/// Multiplies each gradient by 1/(1 + √σ), the weight of NVFlare's FedBuff.
class InverseSqrt final : public StalenessCompensation {
 public:
  double GradientFactor(uint64_t staleness) const override {
    return 1 / (1 + std::sqrt(static_cast<double>(staleness)));
  }
};

/// Replaces each gradient g by g + λ g⊙g⊙(θ_now − θ_base) (Zheng et al.: Asynchronous stochastic
/// gradient descent with delay compensation, DC-ASGD with constant λ, ICML 2017).
class DelayCompensated final : public StalenessCompensation {
 public:
  explicit DelayCompensated(const OptimizerSpec& optimizer)
      : strength_(static_cast<float>(optimizer.scaling_parameters["delay_compensation"])) {}

  void Fold(std::span<float> sum, const Segments& gradient, const MovedWeights& weights,
            std::span<float> /*history*/, const FoldTerms& terms) const override {
    FoldDelayCompensated(sum, gradient, weights.base, weights.now, strength_, terms);
  }

 private:
  const float strength_;
};

/// The same with λ = λ₀/√m, where m is the running mean of a value's squares (DC-ASGD-a). The
/// history is m.
class DelayAdaptive final : public StalenessCompensation {
 public:
  explicit DelayAdaptive(const OptimizerSpec& optimizer)
      : strength_(static_cast<float>(optimizer.scaling_parameters["delay_strength"])) {}

  void Fold(std::span<float> sum, const Segments& gradient, const MovedWeights& weights,
            std::span<float> history, const FoldTerms& terms) const override {
    FoldDelayAdapted(sum, gradient, weights.base, weights.now, history, strength_, terms);
  }

 private:
  const float strength_;
};

/// Divides each value by its gap (Barkai, Hakimi, Schuster, ICLR 2020). The history is the mean
/// size of a weight's steps.
class GapAware final : public StalenessCompensation {
 public:
  void Fold(std::span<float> sum, const Segments& gradient, const MovedWeights& weights,
            std::span<float> history, const FoldTerms& terms) const override {
    FoldGapAware(sum, gradient, weights.base, weights.now, history, terms);
  }

  void OnUpdate(std::span<const float> before, std::span<const float> after, uint64_t updates,
                std::span<float> history) const override {
    NoteStep(before, after, updates, history);
  }
};

struct Maker {
  StalenessScaling kind;
  Made (*make)(const OptimizerSpec& optimizer);
};

constexpr Maker kMakers[] = {
    {StalenessScaling::kNone,
     [](const OptimizerSpec&) -> Made { return std::make_unique<StalenessCompensation>(); }},
    {StalenessScaling::kPerGradient,
     [](const OptimizerSpec&) -> Made { return std::make_unique<PerGradient>(); }},
    {StalenessScaling::kMean,
     [](const OptimizerSpec&) -> Made { return std::make_unique<Mean>(); }},
    {StalenessScaling::kPolynomial,
     [](const OptimizerSpec& optimizer) -> Made {
       return std::make_unique<Polynomial>(optimizer);
     }},
    {StalenessScaling::kInverseSqrt,
     [](const OptimizerSpec&) -> Made { return std::make_unique<InverseSqrt>(); }},
    {StalenessScaling::kRudra,  // The row's factor is all there is.
     [](const OptimizerSpec&) -> Made { return std::make_unique<StalenessCompensation>(); }},
    {StalenessScaling::kDelayCompensated,
     [](const OptimizerSpec& optimizer) -> Made {
       return std::make_unique<DelayCompensated>(optimizer);
     }},
    {StalenessScaling::kDelayAdaptive,
     [](const OptimizerSpec& optimizer) -> Made {
       return std::make_unique<DelayAdaptive>(optimizer);
     }},
    {StalenessScaling::kGapAware,
     [](const OptimizerSpec&) -> Made { return std::make_unique<GapAware>(); }},
};

static_assert(std::ranges::all_of(kScalingRows, [](const ScalingRow& row) {
  return std::ranges::count(kMakers, row.kind, &Maker::kind) == 1;
}));

}  // namespace

void StalenessCompensation::Fold(std::span<float>, const Segments&, const MovedWeights&,
                                 std::span<float>, const FoldTerms&) const {
  PS_CHECK(false);  // The row says that this compensation needs no base weights.
}

std::unique_ptr<const StalenessCompensation> MakeCompensation(const OptimizerSpec& optimizer) {
  return std::ranges::find(kMakers, optimizer.staleness_scaling, &Maker::kind)->make(optimizer);
}

}  // namespace slipstream

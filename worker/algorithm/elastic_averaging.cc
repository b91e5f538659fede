// Elastic averaging (Zhang, Choromanska, LeCun, NIPS 2015, arXiv 1412.6651): a worker trains
// weights x of its own, and the servers hold the center x̃. Every τ steps, an elastic force e = α(x
// − x̃), α = β/λ, draws both towards each other: x ← x − e, and the servers add the e of all workers
// to x̃. The force is of the weights that the step's gradient is of, as in the paper's algorithm 1.
// With Nesterov's momentum in the workers' steps it is EAMSGD.
//
// Servers subtract what is pushed, as from a gradient, so the worker pushes −e.

#include "worker/algorithm/algorithm_makers.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

class ElasticAveraging final : public WorkerAlgorithm {
 public:
  explicit ElasticAveraging(float alpha) : alpha_(alpha) {}

  void OnLanding(LocalModel& model, ParameterRange range, bool /*answers_push*/) const override {
    model.CombineWithin(range, Arena::kAnchor, -alpha_, Arena::kWeights, alpha_, Arena::kLanding);
    model.CombineWithin(range, Arena::kWeights, 1, Arena::kWeights, 1, Arena::kAnchor);
  }

  void OnGradient(LocalModel& model, const Step& step) const override {
    model.Step(step.learning_rate);
  }

  void BeforePush(LocalModel& model, ParameterRange range) const override {
    model.CopyWithin(range, Arena::kGradient, Arena::kAnchor);
  }

  void OnRefused(LocalModel& model, ParameterRange range) const override {
    model.CombineWithin(range, Arena::kWeights, 1, Arena::kWeights, -1, Arena::kAnchor);
  }

 private:
  const float alpha_;
};

}  // namespace

std::unique_ptr<const WorkerAlgorithm> MakeElasticAveraging(const AlgorithmOptions& options) {
  const double alpha = options.parameters["elasticity"] / options.workers;
  return std::make_unique<ElasticAveraging>(static_cast<float>(alpha));
}

}  // namespace slipstream

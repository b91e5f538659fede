// Local SGD (Stich, ICLR 2019, arXiv 1805.09767; as federated averaging, McMahan et al., AISTATS
// 2017): a worker starts from the weights θ that it pulled, takes H steps of its own, θ_local ←
// step(θ_local), and pushes Δ = θ − θ_local. When the servers subtract the mean of the workers' Δ
// from θ, the result is the mean of the workers' weights.

#include "worker/algorithm/algorithm_makers.h"

namespace slipstream {
namespace {

class LocalSgd final : public WorkerAlgorithm {
 public:
  void BeforeSteps(LocalModel& model) const override {
    using Arena = LocalModel::Arena;
    model.CopyWithin({0, model.parameters()}, Arena::kAnchor, Arena::kWeights);
  }

  void OnGradient(LocalModel& model, const Step& step) const override {
    model.Step(step.learning_rate);
  }

  void BeforePush(LocalModel& model, ParameterRange range) const override {
    using Arena = LocalModel::Arena;
    model.CombineWithin(range, Arena::kGradient, 1, Arena::kAnchor, -1, Arena::kWeights);
  }
};

}  // namespace

std::unique_ptr<const WorkerAlgorithm> MakeLocalSgd(const AlgorithmOptions&) {
  return std::make_unique<LocalSgd>();
}

}  // namespace slipstream

// DiLoCo (Douillard et al., arXiv 2311.08105) does on the worker what local SGD does. Streaming
// DiLoCo (arXiv 2501.18512) cuts the model into fragments, which are exchanged one after another. A
// fragment's push is Δ = θ − θ_local, where θ are its weights when it landed last, and steps go on
// meanwhile. When the servers' new θ land, θ_local ← α θ_local + (1 − α) θ.

#include "worker/algorithm/algorithm_makers.h"

namespace slipstream {
namespace {

using Arena = LocalModel::Arena;

class StreamingDiloco final : public WorkerAlgorithm {
 public:
  /// `mixing`: α.
  explicit StreamingDiloco(float mixing) : mixing_(mixing) {}

  void OnLanding(LocalModel& model, ParameterRange range, bool answers_push) const override {
    if (answers_push) {
      model.CombineWithin(range, Arena::kWeights, mixing_, Arena::kWeights, 1 - mixing_,
                          Arena::kLanding);
    } else {
      // Nothing of the steps since the last landing is on the way, so the next push has to be as
      // far from θ as this one would have been.
      model.CombineWithin(range, Arena::kWeights, 1, Arena::kWeights, -1, Arena::kAnchor);
      model.CombineWithin(range, Arena::kWeights, 1, Arena::kWeights, 1, Arena::kLanding);
    }
    model.CopyWithin(range, Arena::kAnchor, Arena::kLanding);
  }

  void OnGradient(LocalModel& model, const Step& step) const override {
    model.Step(step.learning_rate);
  }

  void BeforePush(LocalModel& model, ParameterRange range) const override {
    model.CombineWithin(range, Arena::kAnchor, 1, Arena::kAnchor, -1, Arena::kWeights);
  }

 private:
  const float mixing_;
};

}  // namespace

std::unique_ptr<const WorkerAlgorithm> MakeDiloco(const AlgorithmOptions& options) {
  if (options.fragments == 1) return MakeLocalSgd(options);
  return std::make_unique<StreamingDiloco>(static_cast<float>(options.parameters["mixing"]));
}

}  // namespace slipstream

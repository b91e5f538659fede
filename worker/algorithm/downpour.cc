// Downpour SGD (Dean et al., NIPS 2012): between two pushes, a worker takes steps of its own with
// the gradient of each mini-batch, and accrues these gradients. It pushes their sum. Its next steps
// start from the weights of the answer, or, where it fetches weights less often than it pushes,
// from those that it has reached.

#include "worker/algorithm/algorithm_makers.h"

namespace slipstream {
namespace {

class Downpour final : public WorkerAlgorithm {
 public:
  void OnGradient(LocalModel& model, const Step& step) const override {
    using Arena = LocalModel::Arena;
    const float earlier = step.number == 0 ? 0 : 1;
    const Arena accrued = step.number == 0 ? Arena::kGradient : Arena::kAnchor;
    model.Combine(Arena::kAnchor, earlier, accrued, 1, Arena::kGradient);
    model.Step(step.learning_rate);
  }

  void BeforePush(LocalModel& model, ParameterRange range) const override {
    using Arena = LocalModel::Arena;
    model.CopyWithin(range, Arena::kGradient, Arena::kAnchor);
  }
};

}  // namespace

std::unique_ptr<const WorkerAlgorithm> MakeDownpour(const AlgorithmOptions&) {
  return std::make_unique<Downpour>();
}

}  // namespace slipstream

#ifndef SLIPSTREAM_WORKER_TRAINING_SHARED_MODEL_H_
#define SLIPSTREAM_WORKER_TRAINING_SHARED_MODEL_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "common/memory/block_locks.h"
#include "worker/compute/plan.h"
#include "worker/compute/weights_gate.h"

namespace slipstream {

/// The weights of a worker whose threads compute at once and step the same weights without waiting
/// for each other (Recht et al., Hogwild, NIPS 2011).
///
/// Plans multiply with kernels that read weights many times and know no atomics, so no plan
/// computes from these weights themselves. Each thread has a plan with weights of its own, and
/// copies the shared ones there before each mini-batch, which takes little time beside a backward
/// pass. Copies and steps go block by block (block_locks.h), so two blocks of a copy may be of
/// different steps, which is what Hogwild allows.
///
/// Thread-safe in ForEachBlock and CopyWeights. The other calls are those of ModelArenas, by its
/// rules: the threads do not run then.
class SharedModel final : public ModelArenas {
 public:
  /// `gradient`: the memory of the values to be pushed, as large as the model. It must outlive this
  /// object.
  SharedModel(size_t parameters, std::span<float> gradient)
      : weights_(parameters), gradient_(gradient), gate_(parameters), locks_(parameters) {}

  std::span<float> weights_host() override { return weights_; }
  void WeightsArrived(ParameterRange range) override { gate_.Arrived(range); }
  void ExpectWeights() override { gate_.Expect(); }
  void RevokeWeights(ParameterRange range) override { gate_.Revoke(range); }
  void AbandonWeights() override { gate_.Abandon(); }
  std::span<float> gradients_host() override { return gradient_; }

  /// Waits until all weights have arrived, before the threads run. Returns false if they will not
  /// come, or if some were replaced by another version's: the threads must not run then.
  bool AwaitWeights() {
    gate_.Enter();
    const bool have_come = gate_.Await({0, weights_.size()});
    const bool are_of_one_version = gate_.Leave();
    return have_come && are_of_one_version;
  }

  /// Calls function(part) for the parts of `range` as BlockLocks::ForEachBlock does. Others that
  /// may use the same values at once do so in such calls, too.
  template <typename Function>
  void ForEachBlock(ParameterRange range, const Function& function) {
    locks_.ForEachBlock(range.begin, range.end, [&](size_t begin, size_t end) {
      function(ParameterRange{begin, end});
    });
  }

  /// Copies the weights as they are. `to` is as large as the model.
  void CopyWeights(std::span<float> to) {
    ForEachBlock({0, weights_.size()}, [&](ParameterRange part) {
      std::ranges::copy(weights_host().subspan(part.begin, part.size()),
                        to.begin() + static_cast<ptrdiff_t>(part.begin));
    });
  }

 private:
  std::vector<float> weights_;  // While threads run: each block under its lock.
  const std::span<float> gradient_;
  WeightsGate gate_;
  BlockLocks locks_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_TRAINING_SHARED_MODEL_H_

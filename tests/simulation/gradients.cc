#include "tests/simulation/gradients.h"

#include <algorithm>
#include <array>
#include <vector>

#include "common/base/check.h"
#include "common/base/philox.h"
#include "worker/algorithm/local_model.h"
#include "worker/algorithm/worker_algorithm.h"

namespace slipstream {
namespace {

// The first of the seed's streams for noise: one for each mini-batch and shard.
constexpr uint64_t kNoiseStreams = uint64_t{1} << 32;
constexpr uint64_t kShardsMax = 8;

/// Computes the gradient of a mini-batch at one shard's dense positions.
void ComputeGradient(uint64_t seed, uint64_t batch, uint32_t shard, std::span<const float> weights,
                     std::span<float> gradient) {
  RandomStream noise(seed, kNoiseStreams + batch * kShardsMax + shard);
  for (size_t i = Gradients::kSlots; i < Gradients::kShardValues; ++i) {
    gradient[i] = 0.05f * weights[i] + noise.Uniform(-0.5f, 0.5f);
  }
}

/// One shard's part of a worker's local model.
class ShardModel final : public LocalModel {
 public:
  explicit ShardModel(std::span<const float> weights)
      : arenas_{std::vector<float>(weights.begin(), weights.end()),
                std::vector<float>(weights.size()), std::vector<float>(weights.size()),
                std::vector<float>(weights.size())} {}

  std::vector<float>& values(Arena arena) { return arenas_.at(static_cast<size_t>(arena)); }

  void Step(double learning_rate) override {
    std::vector<float>& weights = values(Arena::kWeights);
    for (size_t i = 0; i < weights.size(); ++i) {
      weights[i] -= static_cast<float>(learning_rate) * values(Arena::kGradient)[i];
    }
  }

  void CombineWithin(ParameterRange range, Arena out, float a, Arena x, float b, Arena y) override {
    for (size_t i = range.begin; i < range.end; ++i) {
      values(out)[i] = a * values(x)[i] + b * values(y)[i];
    }
  }
  size_t parameters() const override { return arenas_.front().size(); }

 private:
  std::array<std::vector<float>, 4> arenas_;  // Indexed by Arena.
};

/// Returns the weights that a worker which keeps its own has when it pushes. They follow from the
/// push's mini-batches alone, so that a push can be computed again without the worker's past.
std::vector<float> KeptWeights(uint64_t seed, const BatchRanges& batches, uint32_t shard) {
  const std::vector<float> none(Gradients::kShardValues);
  std::vector<float> weights(Gradients::kShardValues);
  ComputeGradient(seed, batches.front().first, shard, none, weights);
  return weights;
}

float ElasticityOf(const RunSpec& run) {
  return static_cast<float>(run.worker.parameters["elasticity"] / run.cluster.workers);
}

/// Computes what an algorithm that keeps its weights pushes to one shard.
void ComputeKept(const Scenario& scenario, const BatchRanges& batches, uint32_t shard,
                 std::span<const float> landing, std::span<float> pushed) {
  using Arena = LocalModel::Arena;
  const RunSpec& run = scenario.run;
  ShardModel model(KeptWeights(scenario.seed, batches, shard));
  std::ranges::copy(landing, model.values(Arena::kLanding).begin());
  const auto algorithm = MakeWorkerAlgorithm(
      run.worker.algorithm, {.parameters = run.worker.parameters, .workers = run.cluster.workers});
  const ParameterRange all = {0, model.parameters()};
  algorithm->OnLanding(model, all, false);
  algorithm->OnGradient(model, {.learning_rate = run.optimizer.learning_rate});
  algorithm->BeforePush(model, all);
  std::ranges::copy(model.values(Arena::kGradient), pushed.begin());
  std::ranges::fill(pushed.first(Gradients::kSlots), 0.0f);
}

/// Computes what an algorithm with local weights pushes to one shard. All of its pushes between two
/// fetches start from the weights fetched, and not from where its last steps led, so that a push
/// can be computed again without the worker's past. For the same reason a fragment's push is that
/// of all steps of its mini-batches.
void ComputeLocally(const Scenario& scenario, const BatchRanges& batches, uint32_t shard,
                    std::span<const float> weights, std::span<float> pushed) {
  using Arena = LocalModel::Arena;
  ShardModel model(weights);
  const auto algorithm = MakeWorkerAlgorithm(scenario.run.worker.algorithm);
  uint64_t steps = 0;
  algorithm->BeforeSteps(model);
  ForEachBatch(batches, [&](uint64_t batch) {
    ComputeGradient(scenario.seed, batch, shard, model.values(Arena::kWeights),
                    model.values(Arena::kGradient));
    algorithm->OnGradient(
        model, {.number = steps++, .learning_rate = scenario.run.optimizer.learning_rate});
  });
  algorithm->BeforePush(model, {0, model.parameters()});
  std::ranges::copy(model.values(Arena::kGradient), pushed.begin());
}

}  // namespace

Gradients::Gradients(const Scenario& scenario) : scenario_(scenario), is_taken_(kSlots) {
  for (uint32_t shard = 0; shard < scenario.shards; ++shard) {
    // The name is built in two steps, since gcc 12 has a false warning for operator+ here.
    std::string name = "of-shard-";
    name += std::to_string(shard);
    PS_CHECK(layout_.Append(name, {kShardValues}).ok());
  }
}

std::vector<float> Gradients::InitialWeights() const {
  std::vector<float> weights(layout_.parameters());
  RandomStream noise(scenario_.seed, kNoiseStreams - 1);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (i % kShardValues >= kSlots) weights[i] = noise.Uniform(-1, 1);
  }
  return weights;
}

Gradients::Gradient Gradients::Compute(const BatchRanges& batches, std::span<const float> weights) {
  Gradient gradient = {.slot = static_cast<uint32_t>(batches.front().first),
                       .batches = batches,
                       .examples = 0,
                       .values = std::vector<float>(weights.size())};
  ForEachBatch(batches, [&](uint64_t batch) { gradient.examples += scenario_.ExamplesOf(batch); });
  if (is_taken_.at(gradient.slot)) {
    const auto first_spare = is_taken_.begin() + scenario_.batches_total();
    const auto spare = std::find(first_spare, is_taken_.end(), false);
    PS_CHECK(spare != is_taken_.end());
    gradient.slot = static_cast<uint32_t>(spare - is_taken_.begin());
  }
  is_taken_[gradient.slot] = true;
  const std::span<float> values = gradient.values;
  for (uint32_t shard = 0; shard < scenario_.shards; ++shard) {
    const size_t begin = size_t{shard} * kShardValues;
    const std::span<const float> base = weights.subspan(begin, kShardValues);
    const std::span<float> pushed = values.subspan(begin, kShardValues);
    const AlgorithmRow& algorithm = RowOf(scenario_.run.worker.algorithm);
    if (algorithm.keeps_weights) {
      ComputeKept(scenario_, batches, shard, base, pushed);
    } else if (algorithm.has_local_weights) {
      ComputeLocally(scenario_, batches, shard, base, pushed);
    } else {
      ComputeGradient(scenario_.seed, batches.front().first, shard, base, pushed);
    }
    pushed[gradient.slot] = 1.0f;
  }
  return gradient;
}

void Gradients::ComputeDense(const Scenario& scenario, const BatchRanges& batches, uint32_t shard,
                             std::span<const float> weights, std::span<float> gradient) {
  if (!RowOf(scenario.run.worker.algorithm).has_local_weights) {
    return ComputeGradient(scenario.seed, batches.front().first, shard, weights, gradient);
  }
  if (RowOf(scenario.run.worker.algorithm).keeps_weights) {
    const std::vector<float> kept = KeptWeights(scenario.seed, batches, shard);
    const float alpha = ElasticityOf(scenario.run);
    for (size_t i = kSlots; i < kShardValues; ++i) {
      gradient[i] = -alpha * kept[i] + alpha * weights[i];
    }
    return;
  }
  const auto rate = static_cast<float>(scenario.run.optimizer.learning_rate);
  std::vector<float> local(weights.begin(), weights.end());
  std::vector<float> of_batch(weights.size());
  std::vector<float> sum(weights.size());
  ForEachBatch(batches, [&](uint64_t batch) {
    ComputeGradient(scenario.seed, batch, shard, local, of_batch);
    for (size_t i = kSlots; i < kShardValues; ++i) {
      local[i] -= rate * of_batch[i];
      sum[i] += of_batch[i];
    }
  });
  if (RowOf(scenario.run.worker.algorithm).pushes == PushKind::kGradient) {
    std::copy(sum.begin() + kSlots, sum.end(), gradient.begin() + kSlots);
    return;
  }
  for (size_t i = kSlots; i < kShardValues; ++i) gradient[i] = weights[i] - local[i];
}

}  // namespace slipstream

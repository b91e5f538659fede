// Trains a preset on random examples with one thread and prints the images per second of the median
// step: forward, backward and momentum update, as deep-learning frameworks measure a step. On a GPU
// a step is what it is for a worker, whose server does the updates: a batch is gathered and goes
// up, while the one before is computed, all weights go up, all gradients come down.
//
//   compute_benchmark mlp|lenet5|cifar_quick BATCH SECONDS
//       [fastest|bf16|onednn|plain|cuda|cuda-tf32|cuda-bf16]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/model/net_shapes.h"
#include "common/model/presets.h"
#include "tests/worker/compute/random_batch.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/compute/cuda/cuda_device.h"
#include "worker/compute/plan.h"
#include "worker/data/dataset.h"
#include "worker/model/initial_values.h"
#include "worker/training/batch_feed.h"

namespace slipstream {
namespace {

using Seconds = std::chrono::duration<double>;

// A vector register at a time on every x86-64, which is enough for a loop that waits for memory.
using Floats = float __attribute__((vector_size(16), aligned(4), may_alias));
constexpr size_t kFloats = sizeof(Floats) / sizeof(float);

void MomentumStep(std::span<float> weights, std::span<float> velocity,
                  std::span<const float> gradients) {
  constexpr float kRate = 1e-3f, kMomentum = 0.9f;
  size_t i = 0;
  for (; i + kFloats <= weights.size(); i += kFloats) {
    const auto& gradient = reinterpret_cast<const Floats&>(gradients[i]);
    auto& speed = reinterpret_cast<Floats&>(velocity[i]);
    speed = kMomentum * speed + gradient;
    reinterpret_cast<Floats&>(weights[i]) -= kRate * speed;
  }
  for (; i < weights.size(); ++i) {
    velocity[i] = kMomentum * velocity[i] + gradients[i];
    weights[i] -= kRate * velocity[i];
  }
}

struct Choice {
  CpuKernels kernels = CpuKernels::kFastest;
  Precision precision = Precision::kFp32;
  bool is_cuda = false;

  absl::StatusOr<std::unique_ptr<Device>> Open() const {
    if (is_cuda) return NewCudaDevice(0);
    return NewCpuDevice(kernels);
  }
};

void Step(Plan& plan, const Batch& batch, std::span<float> velocity, const Choice& choice) {
  if (!plan.StartStep(batch, nullptr).ok() || !plan.FinishStep().ok()) std::abort();
  if (!choice.is_cuda) MomentumStep(plan.weights_host(), velocity, plan.gradients_host());
  plan.WeightsArrived({0, velocity.size()});
}

constexpr uint64_t kBatches = 20;

/// As many batches of examples as are taken in turn.
Dataset RandomExamples(const NetShapes& shapes, size_t count) {
  Dataset data;
  data.shape = shapes.input();
  data.outputs = shapes.outputs();
  for (uint64_t i = 0; i < kBatches; ++i) {
    const RandomBatch random(count, data.shape.elements(), data.outputs, i);
    const Batch batch = random.batch();
    data.examples.insert(data.examples.end(), batch.examples.begin(), batch.examples.end());
    data.labels.insert(data.labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return data;
}

/// On a processor, where workers gather what the cache then holds, the data set as it lies.
Batch NthBatch(const Dataset& data, size_t count, uint64_t index, BatchFeed* feed) {
  if (feed != nullptr) return feed->Take(index);
  const size_t first = index % kBatches * count;
  return {.examples = std::span(data.examples)
                          .subspan(first * data.shape.elements(), count * data.shape.elements()),
          .labels = std::span(data.labels).subspan(first, count),
          .index = index};
}

int Run(std::string_view preset, size_t count, double seconds, const Choice& choice) {
  const ModelSpec model = *FindPreset(preset);
  const auto shapes = std::get<NetShapes>(InferShapes(model));
  const auto device = choice.Open();
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.status().ToString().c_str());
    return 1;
  }
  auto plan = (*device)->Prepare(model, {.batch_size_max = static_cast<uint32_t>(count),
                                         .threads = 1,
                                         .precision = choice.precision});
  if (!plan.ok()) {
    std::fprintf(stderr, "%s\n", plan.status().ToString().c_str());
    return 1;
  }
  FillInitialValues(shapes.layout, 1, (*plan)->weights_host());
  const Dataset data = RandomExamples(shapes, count);
  std::optional<BatchFeed> feed;
  if (choice.is_cuda) feed.emplace(data, static_cast<uint32_t>(count), 1, **plan);
  const auto batch = [&](uint64_t index) {
    return NthBatch(data, count, index, feed ? &*feed : nullptr);
  };
  std::vector<float> velocity(shapes.layout.parameters());

  uint64_t next = 0;
  while (next < 3) Step(**plan, batch(next++), velocity, choice);
  std::vector<double> steps;
  const auto start = std::chrono::steady_clock::now();
  auto now = start;
  while (now - start < Seconds(seconds)) {
    const auto before = now;
    Step(**plan, batch(next++), velocity, choice);
    now = std::chrono::steady_clock::now();
    steps.push_back(Seconds(now - before).count());
  }
  std::sort(steps.begin(), steps.end());
  const double median = steps[steps.size() / 2];
  std::printf("net=%s batch=%zu steps=%zu p50_us=%.1f p10_us=%.1f images_per_s=%.0f\n",
              std::string(preset).c_str(), count, steps.size(), median * 1e6,
              steps[steps.size() / 10] * 1e6, static_cast<double>(count) / median);
  return 0;
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  using slipstream::Choice;
  using slipstream::CpuKernels;
  const std::map<std::string, Choice> choices = {
      {"fastest", {}},
      {"bf16", {.precision = slipstream::Precision::kBf16}},
      {"onednn", {.kernels = CpuKernels::kOneDnn}},
      {"plain", {.kernels = CpuKernels::kPlain}},
      {"cuda", {.is_cuda = true}},
      {"cuda-tf32", {.precision = slipstream::Precision::kTf32, .is_cuda = true}},
      {"cuda-bf16", {.precision = slipstream::Precision::kBf16, .is_cuda = true}}};
  const std::string chosen = argc > 4 ? argv[4] : "fastest";
  const long batch = argc > 2 ? std::atol(argv[2]) : 0;
  const double seconds = argc > 3 ? std::atof(argv[3]) : 0;
  if (argc < 4 || argc > 5 || !slipstream::FindPreset(argv[1]) || batch < 1 || seconds <= 0 ||
      !choices.contains(chosen)) {
    std::fprintf(stderr,
                 "usage: %s mlp|lenet5|cifar_quick BATCH SECONDS "
                 "[fastest|bf16|onednn|plain|cuda|cuda-tf32|cuda-bf16]\n",
                 argv[0]);
    return 2;
  }
  return slipstream::Run(argv[1], static_cast<size_t>(batch), seconds, choices.at(chosen));
}

// Trains a preset on random examples with one thread and prints the images per second of the median
// step. A step consists of forward pass, backward pass and momentum update, as deep-learning
// frameworks measure it. On a GPU a step is that of a worker, whose server does the updates: a
// batch is gathered from the examples that the GPU keeps, all weights go up, and all gradients come
// down.
//
//   compute_benchmark PRESET BATCH SECONDS
//       [fastest|bf16|onednn|plain|cuda|cuda-tf32|cuda-bf16|cuda-any|cuda-tf32-any|cuda-bf16-any]
//
// Choices that end with "any" may add in any order.
//
// If - is its only argument, the program reads such arguments from each line of its input and
// answers with a line. It keeps prepared plans, since starting costs more than measuring.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "common/log/logging.h"
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

// One vector register of every x86-64, which is enough for a loop limited by memory.
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
  bool deterministic = true;

  absl::StatusOr<std::unique_ptr<Device>> Open() const {
    if (is_cuda) return NewCudaDevice(0);
    return NewCpuDevice(kernels);
  }
};

const std::map<std::string, Choice>& Choices() {
  static const auto& choices = *new std::map<std::string, Choice>{
      {"fastest", {}},
      {"bf16", {.precision = Precision::kBf16}},
      {"onednn", {.kernels = CpuKernels::kOneDnn}},
      {"plain", {.kernels = CpuKernels::kPlain}},
      {"cuda", {.is_cuda = true}},
      {"cuda-tf32", {.precision = Precision::kTf32, .is_cuda = true}},
      {"cuda-bf16", {.precision = Precision::kBf16, .is_cuda = true}},
      {"cuda-any", {.is_cuda = true, .deterministic = false}},
      {"cuda-tf32-any", {.precision = Precision::kTf32, .is_cuda = true, .deterministic = false}},
      {"cuda-bf16-any", {.precision = Precision::kBf16, .is_cuda = true, .deterministic = false}}};
  return choices;
}

constexpr uint64_t kBatches = 20;

/// Returns kBatches batches of random examples, which steps take in turn.
Dataset RandomExamples(const NetShapes& shapes, size_t count) {
  Dataset data;
  data.shape = shapes.input();
  data.outputs = shapes.outputs();
  std::vector<float> values;
  for (uint64_t i = 0; i < kBatches; ++i) {
    const RandomBatch random(count, data.shape.elements(), data.outputs, i);
    const Batch batch = random.batch();
    values.insert(values.end(), batch.examples.begin(), batch.examples.end());
    data.labels.insert(data.labels.end(), batch.labels.begin(), batch.labels.end());
  }
  data.examples = ExampleValues(std::move(values));
  return data;
}

/// A net that is trained with batches of one size.
class Trainer {
 public:
  static absl::StatusOr<std::unique_ptr<Trainer>> New(const std::string& preset, uint32_t count,
                                                      const Choice& choice) {
    std::unique_ptr<Trainer> trainer(new Trainer(preset, count, choice));
    absl::StatusOr<std::unique_ptr<Device>> device = choice.Open();
    if (!device.ok()) return device.status();
    trainer->device_ = *std::move(device);
    absl::StatusOr<std::unique_ptr<Plan>> plan =
        trainer->device_->Prepare(trainer->model_, {.batch_size_max = count,
                                                    .precision = choice.precision,
                                                    .deterministic = choice.deterministic});
    if (!plan.ok()) return plan.status();
    trainer->plan_ = *std::move(plan);
    FillInitialValues(trainer->shapes_.layout, 1, trainer->plan_->weights_host());
    if (choice.is_cuda) trainer->feed_.emplace(trainer->data_, count, 1, *trainer->plan_);
    if (choice.is_cuda && trainer->feed_->Take(0).rows.empty()) {
      return absl::ResourceExhaustedError("the GPU does not keep the examples: the log says why");
    }
    return trainer;
  }

  /// Returns the seconds that a step takes: the median over groups of steps, after a warm-up.
  absl::StatusOr<double> Measure(double seconds) {
    std::vector<double> groups;
    const Clock::time_point start = Clock::now();
    std::optional<Clock::time_point> measured_since;
    for (Clock::time_point now = start;
         !measured_since || now - *measured_since < Seconds(seconds);) {
      const Clock::time_point before = now;
      for (int i = 0; i < group_; ++i) {
        if (const absl::Status stepped = Step(); !stepped.ok()) return stepped;
      }
      now = Clock::now();
      if (measured_since) groups.push_back(Seconds(now - before).count() / group_);
      if (!measured_since && steps_ >= kWarmSteps && now - start > kWarmTime) measured_since = now;
    }
    std::sort(groups.begin(), groups.end());
    return groups[groups.size() / 2];
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr uint64_t kWarmSteps = 3;
  static constexpr Seconds kWarmTime{0.2};

  Trainer(const std::string& preset, uint32_t count, const Choice& choice)
      : choice_(choice),
        count_(count),
        group_(choice.is_cuda ? 20 : 1),  // The same as torch_step.py.
        model_(*FindPreset(preset)),
        shapes_(std::get<NetShapes>(InferShapes(model_))),
        data_(RandomExamples(shapes_, count)),
        values_(data_.examples.All()),
        velocity_(shapes_.layout.parameters()) {}

  absl::Status Step() {
    const absl::Status started = plan_->StartStep(BatchAt(steps_++), nullptr);
    if (!started.ok()) return started;
    const absl::StatusOr<StepResult> result = plan_->FinishStep();
    if (!result.ok()) return result.status();
    if (!choice_.is_cuda) MomentumStep(plan_->weights_host(), velocity_, plan_->gradients_host());
    plan_->WeightsArrived({0, velocity_.size()});
    return absl::OkStatus();
  }

  /// Returns the batch of a step. On a CPU it is a part of the data set in place: a worker would
  /// gather it just before the step, so it would be in the cache, too.
  Batch BatchAt(uint64_t index) {
    if (feed_) return feed_->Take(index);
    const size_t values = data_.shape.elements();
    const size_t first = index % kBatches * count_;
    return {.examples = std::span(values_).subspan(first * values, count_ * values),
            .labels = std::span(data_.labels).subspan(first, count_),
            .index = index};
  }

  const Choice choice_;
  const uint32_t count_;
  const int group_;  // The number of steps that are timed together.
  const ModelSpec model_;
  const NetShapes shapes_;
  const Dataset data_;
  const std::vector<float> values_;
  std::vector<float> velocity_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Plan> plan_;
  std::optional<BatchFeed> feed_;
  uint64_t steps_ = 0;
};

/// One measurement to make.
struct Request {
  std::string preset;
  uint32_t count = 0;
  double seconds = 0;
  std::string choice = "fastest";

  static std::optional<Request> Parse(const std::string& text) {
    std::istringstream words(text);
    Request request;
    std::string more;
    if (!(words >> request.preset >> request.count >> request.seconds)) return std::nullopt;
    if (words >> more) request.choice = more;
    const bool is_valid = !(words >> more) && FindPreset(request.preset) && request.count > 0 &&
                          request.seconds > 0 && Choices().contains(request.choice);
    return is_valid ? std::optional(request) : std::nullopt;
  }
};

/// Answers requests, each with one line.
class Benchmark {
 public:
  bool Answer(const Request& request) {
    const absl::StatusOr<double> step = Measure(request);
    if (!step.ok()) {
      std::fprintf(stderr, "%s\n", step.status().ToString().c_str());
      return false;
    }
    std::printf("net=%s batch=%u choice=%s step_us=%.1f images_per_s=%.0f\n",
                request.preset.c_str(), request.count, request.choice.c_str(), *step * 1e6,
                request.count / *step);
    std::fflush(stdout);
    return true;
  }

 private:
  absl::StatusOr<double> Measure(const Request& request) {
    std::unique_ptr<Trainer>& trainer = trainers_[{request.preset, request.count, request.choice}];
    if (trainer == nullptr) {
      absl::StatusOr<std::unique_ptr<Trainer>> made =
          Trainer::New(request.preset, request.count, Choices().at(request.choice));
      if (!made.ok()) return made.status();
      trainer = *std::move(made);
    }
    return trainer->Measure(request.seconds);
  }

  std::map<std::tuple<std::string, uint32_t, std::string>, std::unique_ptr<Trainer>> trainers_;
};

int Main(const std::vector<std::string>& arguments) {
  // Log to stderr: stdout holds nothing but answers.
  StartLogging({"compute_benchmark", std::nullopt}, LogSpec::Level::kInfo, LogSpec::Format::kText);
  Benchmark benchmark;
  std::string text;
  if (arguments == std::vector<std::string>{"-"}) {
    while (std::getline(std::cin, text)) {
      const std::optional<Request> request = Request::Parse(text);
      if (!request) std::fprintf(stderr, "not a request: %s\n", text.c_str());
      if (!request || !benchmark.Answer(*request)) return 1;
    }
    return 0;
  }
  for (const std::string& argument : arguments) text += argument + " ";
  if (const std::optional<Request> request = Request::Parse(text)) {
    return benchmark.Answer(*request) ? 0 : 1;
  }
  std::fprintf(stderr,
               "usage: compute_benchmark PRESET BATCH SECONDS "
               "[fastest|bf16|onednn|plain|cuda[-tf32|-bf16][-any]], or - for such lines of its "
               "input\n");
  return 2;
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) { return slipstream::Main({argv + 1, argv + argc}); }

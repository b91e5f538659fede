// Trains a run.yaml's net in one plain loop, without any code of servers or clients: the oracle
// that a cluster is compared with. It prints one JSON object. With --weights it writes the final
// weights as raw little-endian fp32.
//
//   plain_loop run.yaml [--set key=value]… [--steps N] [--weights FILE]

#include <openssl/sha.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/config/run_config.h"
#include "common/kernels/flushed_subnormals.h"
#include "common/model/net_shapes.h"
#include "common/policy/learning_rate.h"
#include "common/settings/run_spec.h"
#include "tests/support/example_values.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/compute/plan.h"
#include "worker/data/batch_order.h"
#include "worker/data/dataset.h"
#include "worker/data/load_data.h"
#include "worker/data/model_fit.h"
#include "worker/model/initial_values.h"

namespace slipstream {
namespace {

struct Arguments {
  std::string config;
  Overrides overrides;
  uint64_t steps = UINT64_MAX;
  std::string weights_file;
};

/// The examples of one mini-batch, copied together.
struct Gathered {
  std::vector<float> examples;
  std::vector<uint32_t> labels;
  std::vector<float> targets;

  void Fill(const Dataset& data, std::span<const uint32_t> indices) {
    examples.clear();
    labels.clear();
    targets.clear();
    for (uint32_t index : indices) {
      const std::vector<float> example = ExampleOf(data, index);
      examples.insert(examples.end(), example.begin(), example.end());
      if (data.is_labelled()) labels.push_back(data.labels[index]);
      const auto target = data.target(index);
      targets.insert(targets.end(), target.begin(), target.end());
    }
  }

  Batch batch(uint64_t index) const { return {examples, labels, index, targets}; }
};

class PlainLoop {
 public:
  PlainLoop(const RunSpec& run, const TensorLayout& layout, std::unique_ptr<Plan> plan)
      : run_(run),
        layout_(layout),
        plan_(std::move(plan)),
        velocity_(plan_->weights_host().size(), 0.0f),
        square_(velocity_) {}

  void Train(const Dataset& data, uint64_t steps_max) {
    BatchOrder order(data.count(), run_.training.batch_size, run_.seed);
    const uint64_t steps = order.batches_per_epoch() * run_.training.epochs;
    const LearningRate schedule(
        run_.optimizer.learning_rate, run_.optimizer.schedule,
        {.examples_per_epoch = data.count(), .epochs = run_.training.epochs});
    uint64_t examples = 0;
    for (uint64_t step = 0; step < std::min(steps, steps_max); ++step) {
      batch_.Fill(data, order.Examples(step));
      Check(plan_->StartStep(batch_.batch(step), nullptr));
      const auto result = plan_->FinishStep();
      Check(result.status());
      rate_ = static_cast<float>(schedule.At(examples));
      examples += order.Examples(step).size();
      power1_ *= run_.optimizer.parameters["beta1"];
      power2_ *= run_.optimizer.parameters["beta2"];
      for (const Tensor& tensor : layout_.tensors()) Step(tensor);
      plan_->WeightsArrived({0, plan_->weights_host().size()});
    }
  }

  /// Returns the mean loss and, if there are classes, the accuracy, as members of a JSON object.
  std::string Measures(const Dataset& data) {
    double loss = 0;
    std::optional<uint64_t> correct;
    for (uint32_t begin = 0; begin < data.count(); begin += run_.training.batch_size) {
      std::vector<uint32_t> indices;
      for (uint32_t i = begin; i < data.count() && i < begin + run_.training.batch_size; ++i) {
        indices.push_back(i);
      }
      batch_.Fill(data, indices);
      const auto result = plan_->Evaluate(batch_.batch(0));
      Check(result.status());
      loss += static_cast<double>(result->loss) * static_cast<double>(indices.size());
      if (result->correct) correct = correct.value_or(0) + *result->correct;
    }
    const auto count = static_cast<double>(data.count());
    const std::string accuracy =
        correct ? std::to_string(static_cast<double>(*correct) / count) : "null";
    return "\"test_loss\": " + std::to_string(loss / count) + ", \"test_accuracy\": " + accuracy;
  }

  std::span<const float> weights() { return plan_->weights_host(); }

 private:
  static void Check(const absl::Status& status) {
    if (status.ok()) return;
    std::cerr << "plain_loop: " << status.ToString() << "\n";
    std::exit(1);
  }

  void Step(const Tensor& tensor) {
    const OptimizerSpec& rule = run_.optimizer;
    double decay = rule.weight_decay;
    double factor = 1;
    if (const auto item = FindTensorOptions(rule.per_tensor, tensor.name)) {
      decay = rule.per_tensor[*item].weight_decay.value_or(decay);
      factor = rule.per_tensor[*item].learning_rate_factor.value_or(1);
    }
    if (factor == 0) return;
    const auto rate = static_cast<float>(rate_ * factor);
    const FlushedSubnormals flushed;
    if (RowOf(rule.kind).normalises) {
      UpdateByAdam(tensor, rate, decay);
    } else {
      Update(tensor, rate, static_cast<float>(decay));
    }
  }

  /// Computes v ← m v + (g + d θ); θ ← θ − α v, in fp32 and in this order of operations.
  void Update(const Tensor& tensor, float rate, float decay) {
    const bool has_momentum = run_.optimizer.kind == OptimizerSpec::Kind::kMomentum;
    const auto momentum =
        has_momentum ? static_cast<float>(run_.optimizer.parameters["momentum"]) : 0.0f;
    const std::span<float> weights = plan_->weights_host();
    const std::span<const float> gradient = plan_->gradients_host();
    for (size_t i = tensor.offset; i < tensor.offset + tensor.size(); ++i) {
      const float g = gradient[i] + decay * weights[i];
      velocity_[i] = momentum * velocity_[i] + g;
      weights[i] = weights[i] - rate * velocity_[i];
    }
  }

  /// Computes Adam as in algorithm 1 of Kingma and Ba, with the bias corrections of both means
  /// folded into factors. AdamW applies its weight decay apart from the gradient.
  void UpdateByAdam(const Tensor& tensor, double rate, double weight_decay) {
    const OptimizerSpec& rule = run_.optimizer;
    const double beta1 = rule.parameters["beta1"], beta2 = rule.parameters["beta2"];
    const bool is_adamw = rule.kind == OptimizerSpec::Kind::kAdamW;
    const auto decay = static_cast<float>(is_adamw ? 0 : weight_decay);
    const auto kept = static_cast<float>(is_adamw ? 1 - rate * weight_decay : 1);
    const auto step = static_cast<float>(rate / (1 - power1_));
    const auto scale = static_cast<float>(1 / std::sqrt(1 - power2_));
    const auto b1 = static_cast<float>(beta1), c1 = static_cast<float>(1 - beta1);
    const auto b2 = static_cast<float>(beta2), c2 = static_cast<float>(1 - beta2);
    const auto epsilon = static_cast<float>(rule.parameters["epsilon"]);
    const std::span<float> weights = plan_->weights_host();
    const std::span<const float> gradient = plan_->gradients_host();
    for (size_t i = tensor.offset; i < tensor.offset + tensor.size(); ++i) {
      const float g = gradient[i] + decay * weights[i];
      velocity_[i] = b1 * velocity_[i] + c1 * g;
      square_[i] = b2 * square_[i] + c2 * (g * g);
      weights[i] =
          kept * weights[i] - step * velocity_[i] / (std::sqrt(square_[i]) * scale + epsilon);
    }
  }

  const RunSpec& run_;
  const TensorLayout& layout_;
  std::unique_ptr<Plan> plan_;
  std::vector<float> velocity_;  // Adam's first moment, if the rule is Adam.
  std::vector<float> square_;
  float rate_ = 0;     // The rate of the current step.
  double power1_ = 1;  // Powers of Adam's betas.
  double power2_ = 1;
  Gathered batch_;
};

std::string Sha256(std::span<const float> values) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(values.data()), values.size_bytes(), digest);
  std::string text;
  for (unsigned char byte : digest) {
    char hex[3];
    std::snprintf(hex, sizeof(hex), "%02x", byte);
    text += hex;
  }
  return text;
}

Arguments ParseArguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--set" && has_value) {
      arguments.overrides.set.emplace_back(argv[++i]);
    } else if (argument == "--steps" && has_value) {
      arguments.steps = std::stoull(argv[++i]);
    } else if (argument == "--weights" && has_value) {
      arguments.weights_file = argv[++i];
    } else {
      arguments.config = argument;
    }
  }
  return arguments;
}

int Main(int argc, char** argv) {
  const Arguments arguments = ParseArguments(argc, argv);
  const ConfigResult config = LoadRunConfig(arguments.config, arguments.overrides);
  if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&config)) {
    for (const Diagnostic& error : *errors) std::cerr << error.ToString() << "\n";
    return 78;
  }
  const auto& run = std::get<RunSpec>(config);
  const auto shapes = std::get<NetShapes>(InferShapes(run.model));
  auto data = LoadData(run.data, run.model, run.seed);
  if (const auto fit = data.ok() ? FitToModel(shapes, *data) : data.status(); !fit.ok()) {
    std::cerr << "plain_loop: " << fit.ToString() << "\n";
    return 74;
  }
  auto plan = NewCpuDevice()->Prepare(
      run.model, {.batch_size_max = run.training.batch_size, .seed = run.seed});
  if (!plan.ok()) {
    std::cerr << "plain_loop: " << plan.status().ToString() << "\n";
    return 1;
  }
  FillInitialValues(shapes.layout, run.seed, (*plan)->weights_host(), shapes.normal_weights);
  (*plan)->WeightsArrived({0, shapes.layout.parameters()});

  PlainLoop loop(run, shapes.layout, *std::move(plan));
  loop.Train(data->train, arguments.steps);

  const auto weights = loop.weights();
  if (!arguments.weights_file.empty()) {
    std::ofstream file(arguments.weights_file, std::ios::binary);
    file.write(reinterpret_cast<const char*>(weights.data()),
               static_cast<std::streamsize>(weights.size_bytes()));
    if (!file) return 74;
  }
  std::printf("{%s, \"weights_sha256\": \"%s\"}\n", loop.Measures(data->test).c_str(),
              Sha256(weights).c_str());
  return 0;
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) { return slipstream::Main(argc, argv); }

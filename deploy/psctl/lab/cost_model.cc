#include "deploy/psctl/lab/cost_model.h"

#include <algorithm>
#include <variant>

#include "absl/status/statusor.h"
#include "common/model/net_shapes.h"
#include "deploy/psctl/config/run_plan.h"

namespace slipstream {
namespace {

// Forward multiplications for which a core computes the gradients, in a second: cifar_quick has 12
// million of them, and a core of the machine of deploy/docs/performance.md does 2,200 examples.
constexpr double kSpeed = 2.7e10;

// The examples of a set that has to be read to be known: those of the published image sets.
constexpr double kExamplesGuess = 50'000;

double ExamplesOf(const RunSpec& spec) {
  if (spec.data.format == DataSpec::Format::kSynthetic) return spec.data.train_examples;
  return spec.data.examples > 0 ? static_cast<double>(spec.data.examples) : kExamplesGuess;
}

double WorkOf(const RunSpec& spec) {
  double examples = ExamplesOf(spec) * spec.training.epochs;
  if (spec.training.max_steps > 0) {
    const double steps = static_cast<double>(spec.training.max_steps);
    examples = std::min(examples, steps * spec.training.batch_size);
  }
  return examples * MultiplicationsPerExample(spec.model);
}

/// Returns about how much memory the cell takes, without any measurement.
uint64_t BytesOf(const RunSpec& spec, GridEngine engine, uint32_t threads) {
  const absl::StatusOr<RunPlan> plan = PlanRun(spec);
  if (!plan.ok()) return 0;
  if (engine == GridEngine::kProcesses) return plan->machine_bytes;
  const DataMemory data = plan->data.value_or(DataMemory());
  const uint64_t servers = plan->server_bytes * spec.cluster.servers.size();
  // A learner holds a version of the weights, and its gradient while that is under way.
  const uint64_t versions = uint64_t{spec.cluster.workers} * plan->parameters * 2 * sizeof(float);
  return data.shared + data.each + servers + versions + threads * plan->worker_bytes;
}

}  // namespace

double MultiplicationsPerExample(const ModelSpec& model) {
  const auto inferred = InferShapes(model);
  const auto* const net = std::get_if<NetShapes>(&inferred);
  if (net == nullptr) return 0;
  double sum = 0;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const auto inputs = static_cast<double>(net->shapes[i].elements());
    const auto outputs = static_cast<double>(net->shapes[i + 1].elements());
    if (std::holds_alternative<DenseLayer>(model.layers[i])) sum += inputs * outputs;
    if (const auto* conv = std::get_if<Conv2dLayer>(&model.layers[i])) {
      sum += outputs * net->shapes[i].channels * conv->kernel * conv->kernel;
    }
  }
  return sum;
}

uint64_t CellBytes(const RunSpec& spec, GridEngine engine, uint64_t peak) {
  if (engine == GridEngine::kVirtual) return peak;
  const absl::StatusOr<RunPlan> plan = PlanRun(spec);
  const uint64_t data = plan.ok() && plan->data ? plan->data->shared : 0;
  const uint64_t shared = std::min(peak, data);
  const ClusterSpec& cluster = spec.cluster;
  const uint64_t servers = cluster.servers.size() * (uint64_t{1} + cluster.groups());
  return shared + (peak - shared) * (servers + cluster.workers);
}

void CostModel::Learn(const Cell& cell, const CellCost& cost) {
  const RunSpec& spec = cell.settings;
  for (const uint32_t batch_size : {spec.training.batch_size, 0u}) {
    Sum& sum = learned_[batch_size];
    sum.work += WorkOf(spec);
    sum.core_seconds += cost.cpu_seconds;
    sum.wall_seconds += cost.wall_seconds;
  }
  uint64_t& bytes = bytes_[spec.cluster.workers];
  bytes = std::max(bytes, cost.peak_bytes);
}

const CostModel::Sum* CostModel::LearnedFor(uint32_t batch_size) const {
  for (const uint32_t size : {batch_size, 0u}) {
    const auto found = learned_.find(size);
    if (found != learned_.end() && found->second.work > 0) return &found->second;
  }
  return nullptr;
}

double CostModel::CoreSeconds(const Cell& cell) const {
  const Sum* const learned = LearnedFor(cell.settings.training.batch_size);
  const double seconds_per_work =
      learned == nullptr ? 1 / kSpeed : learned->core_seconds / learned->work;
  return WorkOf(cell.settings) * seconds_per_work;
}

double CostModel::WallSeconds(const Cell& cell, size_t cores) const {
  const Sum* const learned = LearnedFor(cell.settings.training.batch_size);
  if (learned == nullptr) return CoreSeconds(cell) / static_cast<double>(cores);
  return WorkOf(cell.settings) * learned->wall_seconds / learned->work;
}

CostEstimate CostModel::Estimate(const Cell& cell, uint32_t threads) const {
  const RunSpec& spec = cell.settings;
  CostEstimate estimate = {.core_seconds = CoreSeconds(cell),
                           .bytes = BytesOf(spec, engine_, threads),
                           .is_learned = LearnedFor(spec.training.batch_size) != nullptr};
  const auto measured = bytes_.find(spec.cluster.workers);
  if (measured != bytes_.end() && measured->second > 0) estimate.bytes = measured->second;
  return estimate;
}

}  // namespace slipstream

#include "deploy/lab/compute_costs.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/model/net_shapes.h"
#include "deploy/lab/measured_times.h"
#include "worker/compute/device_claim.h"
#include "worker/compute/open_device.h"
#include "worker/compute/plan.h"
#include "worker/model/initial_values.h"

namespace slipstream {
namespace {

constexpr int kTurns = 6;

/// Random examples, with answers for either loss.
struct RandomExamples {
  std::vector<float> examples;
  std::vector<uint32_t> labels;
  std::vector<float> targets;

  RandomExamples(size_t count, size_t inputs, uint32_t outputs)
      : examples(count * inputs), labels(count), targets(count * outputs) {
    RandomStream random(1, 0);
    for (float& value : examples) value = random.Uniform(-1, 1);
    for (float& value : targets) value = random.Uniform(-1, 1);
    for (uint32_t& label : labels) label = random.Below(outputs);
  }

  Batch First(size_t count, const NetShapes& net, ModelSpec::Loss loss) const {
    Batch batch = {.examples = std::span(examples).first(count * net.input().elements())};
    if (loss == ModelSpec::Loss::kCrossEntropy) {
      batch.labels = std::span(labels).first(count);
    } else {
      batch.targets = std::span(targets).first(count * net.outputs());
    }
    return batch;
  }
};

}  // namespace

ComputeCosts FitComputeCosts(std::vector<ComputeCosts::Point> points) {
  PS_CHECK(!points.empty());
  const auto count = static_cast<double>(points.size());
  double x = 0, y = 0, xx = 0, xy = 0;
  for (const ComputeCosts::Point& point : points) {
    x += point.batch_size;
    y += point.seconds;
    xx += static_cast<double>(point.batch_size) * point.batch_size;
    xy += point.batch_size * point.seconds;
  }
  const double determinant = count * xx - x * x;
  ComputeCosts costs;
  costs.per_example = determinant > 0 ? (count * xy - x * y) / determinant : -1;
  costs.fixed = (y - costs.per_example * x) / count;
  if (costs.per_example < 0 || costs.fixed < 0) {
    // Through the origin: one point, or times that noise has bent.
    costs.fixed = 0;
    costs.per_example = xy / xx;
  }
  costs.points = std::move(points);
  return costs;
}

absl::StatusOr<ComputeCosts> MeasureCompute(const RunSpec& run, absl::Duration budget) {
  const std::variant<NetShapes, ShapeError> shapes = InferShapes(run.model);
  if (const auto* error = std::get_if<ShapeError>(&shapes)) {
    return absl::InvalidArgumentError("model: " + error->Text());
  }
  const auto& net = std::get<NetShapes>(shapes);
  const uint32_t size = run.training.batch_size;
  DeviceClaim claim;
  const absl::StatusOr<std::unique_ptr<Device>> device =
      OpenDevice(run.compute.device, WorkerId{0}, claim);
  if (!device.ok()) return device.status();
  const absl::StatusOr<std::unique_ptr<Plan>> plan =
      (*device)->Prepare(run.model, {.batch_size_max = size,
                                     .seed = run.seed,
                                     .precision = run.compute.precision,
                                     .deterministic = run.compute.deterministic});
  if (!plan.ok()) return plan.status();
  FillInitialValues(net.layout, run.seed, (*plan)->weights_host(), net.normal_weights);
  (*plan)->WeightsArrived({0, net.layout.parameters()});

  const RandomExamples random(size, net.input().elements(), net.outputs());
  const std::set<uint32_t> sizes = {std::max(1u, size / 4), std::max(1u, size / 2), size};
  const MeasuringClock clock =
      IsProcessor(run.compute.device) ? MeasuringClock::kThread : MeasuringClock::kSteady;
  std::map<uint32_t, std::vector<double>> times;
  const double wall_begin = ReadClock(MeasuringClock::kSteady);
  const double thread_begin = ReadClock(MeasuringClock::kThread);
  absl::Status failed;
  // The sizes take turns, so that a busy while of the machine meets all of them.
  for (int turn = 0; turn < kTurns; ++turn) {
    for (const uint32_t count : sizes) {
      const Batch batch = random.First(count, net, run.model.loss);
      const auto step = [&] {
        absl::Status done = (*plan)->StartStep(batch, nullptr);
        if (done.ok()) done = (*plan)->FinishStep().status();
        failed.Update(done);
      };
      const absl::Duration part = budget / (kTurns * static_cast<double>(sizes.size()));
      const std::vector<double> taken = TimesOf(step, clock, part, /*calls_min=*/1);
      times[count].insert(times[count].end(), taken.begin(), taken.end());
      if (!failed.ok()) return failed;
    }
  }
  const double thread_time = ReadClock(MeasuringClock::kThread) - thread_begin;
  const double share = thread_time / (ReadClock(MeasuringClock::kSteady) - wall_begin);
  std::vector<ComputeCosts::Point> points;
  for (const auto& [count, taken] : times) {
    points.push_back({.batch_size = count, .seconds = Median(taken)});
  }
  const double spread =
      (Quantile(times[size], 0.84) - Quantile(times[size], 0.16)) / 2 / points.back().seconds;
  ComputeCosts costs = FitComputeCosts(std::move(points));
  costs.spread = spread;
  costs.processor_share = std::min(1.0, share);
  return costs;
}

}  // namespace slipstream

#include "worker/training/saved_model.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "common/model_file/weights_digest.h"
#include "worker/compute/cpu/cpu_device.h"
#include "worker/compute/plan.h"
#include "worker/data/load_data.h"
#include "worker/data/model_fit.h"
#include "worker/training/model_keeper.h"
#include "worker/training/model_shapes.h"
#include "worker/training/test_measures.h"

namespace slipstream {

absl::StatusOr<RunSpec> SettingsOf(const ModelFile& file, const std::string& path,
                                   const std::optional<std::string>& config,
                                   const Overrides& overrides) {
  ConfigResult result;
  if (config) {
    result = LoadRunConfig(*config, overrides);
  } else {
    const auto settings = file.metadata().find(kModelSettings);
    if (settings == file.metadata().end()) {
      return absl::InvalidArgumentError(
          fmt::format("{}: its metadata hold no {}, so it tells nothing of its run; name the run's "
                      "with --config",
                      path, kModelSettings));
    }
    result = ParseRunConfig(settings->second, path + "'s settings", overrides);
  }
  return ToStatusOr(std::move(result));
}

absl::StatusOr<ModelEvaluation> EvaluateModel(const ModelFile& file, const RunSpec& settings) {
  const absl::StatusOr<NetShapes> net = ShapesOf(settings.model);
  if (!net.ok()) return net.status();
  const std::unique_ptr<Device> device = NewCpuDevice();
  const absl::StatusOr<std::unique_ptr<Plan>> plan = device->Prepare(
      settings.model, {.batch_size_max = kTestBatchSize, .seed = settings.seed, .trains = false});
  if (!plan.ok()) return plan.status();
  const std::span<float> weights = (*plan)->weights_host();
  if (absl::Status read = file.Read(net->layout, weights); !read.ok()) return read;
  (*plan)->WeightsArrived({0, weights.size()});

  absl::StatusOr<Dataset> test = LoadTestData(settings.data, settings.model, settings.seed);
  if (!test.ok()) return test.status();
  if (absl::Status fit = FitToModel(*net, *test); !fit.ok()) return fit;
  const absl::StatusOr<TestMeasures> measures =
      MeasureOnTest(**plan, *test, [](size_t) { return true; });
  if (!measures.ok()) return measures.status();
  return ModelEvaluation{.name = settings.name,
                         .measures = *measures,
                         .data = DataSource(settings.data),
                         .examples = test->count(),
                         .parameters = weights.size(),
                         .weights_sha256 = WeightsSha256(weights)};
}

}  // namespace slipstream

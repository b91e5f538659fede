#include "worker/training/first_weights.h"

#include <string>

#include "absl/status/statusor.h"
#include "common/log/log.h"
#include "common/model_file/model_file.h"
#include "common/model_file/weights_digest.h"
#include "worker/model/initial_values.h"

namespace slipstream {

absl::Status FillFirstWeights(const RunSpec& run, const NetShapes& net, std::span<float> weights) {
  const std::string& path = run.model_files.init;
  if (path.empty()) {
    FillInitialValues(net.layout, run.seed, weights, net.normal_weights);
    return absl::OkStatus();
  }
  const absl::StatusOr<ModelFile> file = ModelFile::Open(path);
  absl::Status read = file.ok() ? file->Read(net.layout, weights) : file.status();
  if (!read.ok()) {
    return absl::Status(read.code(), "model.init: " + std::string(read.message()));
  }
  LogInfo("starting from saved weights", {{"path", path}, {"sha256", WeightsSha256(weights)}});
  return absl::OkStatus();
}

}  // namespace slipstream

#include "worker/training/model_keeper.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "common/base/check.h"
#include "common/config/field_table.h"
#include "common/config/run_text.h"
#include "common/files/whole_file.h"
#include "common/model_file/model_file.h"
#include "common/process/version.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

/// Returns a setting as run.yaml spells it.
std::string Setting(const char* path, const RunSpec& settings) {
  const Field& field = *FindField(path);
  return WriteField(field.type, field.get(settings));
}

std::string FileName(const ModelFacts& facts) {
  if (facts.is_final) return "model.safetensors";
  return fmt::format("model-epoch-{:04}.safetensors", facts.epoch);
}

}  // namespace

ModelMetadata DescribeModel(const RunSpec& settings, const ModelFacts& facts) {
  std::vector<uint64_t> versions;
  for (const Version version : facts.versions) versions.push_back(Value(version));
  ModelMetadata metadata = {
      {"written_by", fmt::format("slipstream {}", kVersion)},
      {"run", settings.name},
      {"seed", fmt::format("{}", settings.seed)},
      {"epoch", fmt::format("{}", facts.epoch)},
      {"final", facts.is_final ? "true" : "false"},
      {"versions", fmt::format("{}", fmt::join(versions, ","))},
      {"test_loss", fmt::format("{}", facts.measures.loss)},
      {"test_examples", fmt::format("{}", facts.test_examples)},
      {kWeightsSha256, facts.weights_sha256},
      {kModelSettings, ToYaml(settings)},
  };
  if (facts.measures.accuracy) {
    metadata.emplace("test_accuracy", fmt::format("{}", *facts.measures.accuracy));
  }
  if (settings.data.from == SuppliedBy::kSettings) {
    metadata.emplace("data_format", Setting("data.format", settings));
  }
  if (settings.model_from == SuppliedBy::kWorkers) return metadata;
  if (settings.model.preset.empty()) {
    metadata.emplace("layers", Setting("model.layers", settings));
  } else {
    metadata.emplace("preset", settings.model.preset);
  }
  return metadata;
}

absl::StatusOr<std::string> ModelKeeper::Keep(const ModelFacts& facts,
                                              std::span<const float> weights,
                                              const std::vector<StoredTensor>& beside) const {
  PS_CHECK(keeps());
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) {
    return absl::DataLossError(fmt::format("cannot make {}: {}", directory_, error.message()));
  }
  // Removes files that a killed worker left half-written; each may be as large as the model.
  RemoveAbandonedFiles(directory_);
  const fs::path path = fs::absolute(directory_, error) / FileName(facts);
  if (error) return absl::DataLossError(fmt::format("{}: {}", directory_, error.message()));
  const absl::Status written =
      WriteModelFile(path, layout_, DescribeModel(settings_, facts), weights, beside);
  if (!written.ok()) return written;
  return path.lexically_normal().string();
}

}  // namespace slipstream

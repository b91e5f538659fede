#include "worker/training/model_keeper.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "common/base/check.h"
#include "common/config/field_table.h"
#include "common/config/run_text.h"
#include "common/files/whole_file.h"
#include "common/log/log.h"
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

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

template <typename Value>
std::string TextOf(const absl::StatusOr<Value>& result) {
  return TextOf(result.status());
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

ModelKeeper::ModelKeeper(uint64_t run, const std::vector<std::string>& directories,
                         RunSpec settings, TensorLayout layout)
    : run_(fmt::format("{:016x}", run)),
      directories_(directories),
      settings_(std::move(settings)),
      layout_(std::move(layout)) {
  std::erase(directories_, "");
}

template <typename Result>
Result ModelKeeper::InFirst(const std::string& name,
                            const std::function<Result(const std::string& path)>& use) const {
  PS_CHECK(keeps());
  std::optional<Result> first;
  for (const std::string& directory : directories_) {
    std::error_code error;
    fs::create_directories(directory, error);
    const fs::path path = error ? fs::path() : fs::absolute(directory, error) / name;
    if (!error) {
      // No other place is taken then: a user has to decide what becomes of that model.
      if (absl::Status free = CheckReplaceable(path.string()); !free.ok()) return free;
    }
    Result result = error ? Result(absl::DataLossError(
                                fmt::format("cannot make {}: {}", directory, error.message())))
                          : use(path.lexically_normal().string());
    if (result.ok()) return result;
    if (first.has_value()) continue;
    if (directories_.size() > 1) {
      LogWarning("another directory is tried for weights", {{"reason", TextOf(result)}});
    }
    first = std::move(result);
  }
  return *std::move(first);
}

absl::Status ModelKeeper::Try() const {
  const auto try_path = [this](const std::string& path) -> absl::Status {
    std::error_code error;
    const fs::space_info space = fs::space(fs::path(path).parent_path(), error);
    const uint64_t needed = layout_.parameters() * sizeof(float);
    if (!error && space.available < needed) {
      return absl::DataLossError(fmt::format("{} needs {} bytes, and its disk has {} left", path,
                                             needed, space.available));
    }
    return WholeFile::Create(path).status();
  };
  const uint32_t first_epoch = settings_.model_files.save_every_epochs;
  if (first_epoch > 0) {
    absl::Status of_epoch = InFirst<absl::Status>(FileName({.epoch = first_epoch}), try_path);
    if (!of_epoch.ok()) return of_epoch;
  }
  return InFirst<absl::Status>(FileName({.is_final = true}), try_path);
}

absl::Status ModelKeeper::CheckReplaceable(const std::string& path) const {
  std::error_code error;
  if (settings_.model_files.overwrite || !fs::exists(path, error)) return absl::OkStatus();
  const absl::StatusOr<ModelFile> there = ModelFile::Open(path);
  std::string what = "no model of this run";
  if (there.ok()) {
    const ModelMetadata& metadata = there->metadata();
    const auto run = metadata.find(kModelRun);
    if (run != metadata.end() && run->second == run_) return absl::OkStatus();
    const auto name = metadata.find("run");
    what = fmt::format("the model of another run, {}", name == metadata.end() ? "?" : name->second);
  }
  return absl::DataLossError(fmt::format(
      "{} is {}: move it, name another directory, or let it be replaced (model.overwrite, "
      "ps_worker --overwrite)",
      path, what));
}

absl::StatusOr<std::string> ModelKeeper::Keep(const ModelFacts& facts,
                                              std::span<const float> weights,
                                              const std::vector<StoredTensor>& beside) const {
  ModelMetadata metadata = DescribeModel(settings_, facts);
  metadata.emplace(kModelRun, run_);
  const auto keep = [&](const std::string& path) -> absl::StatusOr<std::string> {
    // Removes files that a killed worker left half-written; each may be as large as the model.
    RemoveAbandonedFiles(fs::path(path).parent_path());
    const absl::Status written = WriteModelFile(path, layout_, metadata, weights, beside);
    if (!written.ok()) return written;
    return path;
  };
  return InFirst<absl::StatusOr<std::string>>(FileName(facts), keep);
}

}  // namespace slipstream

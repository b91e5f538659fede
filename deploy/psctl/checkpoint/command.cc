#include "deploy/psctl/checkpoint/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/duration_text.h"
#include "common/json/json_text.h"
#include "common/model_file/model_file.h"
#include "common/model_file/weights_digest.h"
#include "common/process/exit_code.h"
#include "common/process/output_text.h"
#include "common/process/version.h"
#include "common/settings/shards.h"
#include "deploy/psctl/checkpoint/replay.h"
#include "deploy/psctl/checkpoint/reshard.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/output_file.h"
#include "deploy/psctl/text_table.h"
#include "server/storage/checkpoint_folder.h"
#include "server/storage/checkpoint_listing.h"
#include "server/storage/checkpoint_set.h"
#include "server/storage/posix_disk.h"

namespace slipstream {
namespace {

using Listing = std::vector<ListedCheckpoint>;

std::string TimeText(absl::Time time) { return absl::FormatTime(time, absl::UTCTimeZone()); }

ExitCode Ls(const CheckpointArguments& arguments, const Listing& listed) {
  std::vector<TableRow> rows;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const absl::Time now = absl::Now();
  for (const ListedCheckpoint& each : listed) {
    const std::string run = RunDirectoryName(each.run);
    const std::string state = each.state.ok() ? "ok" : std::string(each.state.message());
    TableRow row = {run, std::to_string(Value(each.shard)),
                    std::to_string(Value(each.name.generation)),
                    std::to_string(Value(each.name.version))};
    nlohmann::ordered_json one = {{"path", each.path},
                                  {"run", run},
                                  {"shard", Value(each.shard)},
                                  {"generation", Value(each.name.generation)},
                                  {"version", Value(each.name.version)},
                                  {"on_all_shards", each.is_on_all_shards},
                                  {"state", state}};
    if (each.manifest) {
      one["stage"] = each.manifest->facts.saved.stage;
      one["saved"] = TimeText(each.manifest->saved_at);
      one["bytes"] = each.manifest->bytes();
      row.push_back(DurationText(now - each.manifest->saved_at));
      row.push_back(BytesText(each.manifest->bytes()));
    } else {
      row.insert(row.end(), {"-", "-"});
    }
    row.insert(row.end(), {each.is_on_all_shards ? "yes" : "no", state});
    rows.push_back(std::move(row));
    list.push_back(std::move(one));
  }
  WriteToStdout(arguments.format == OutputFormat::kJson
                    ? JsonText(list)
                    : FormatTable({"run", "shard", "generation", "version", "age", "size",
                                   "on all shards", "state"},
                                  rows));
  return ExitCode::kOk;
}

ExitCode Verify(Disk& disk, const CheckpointArguments& arguments, const Listing& listed) {
  ExitCode code = ExitCode::kOk;
  Listing sound;
  for (const ListedCheckpoint& each : listed) {
    const absl::StatusOr<CheckpointFolder> folder =
        CheckpointFolder::OpenAt(disk, each.path, each.run, each.shard, each.name);
    const std::vector<absl::Status> damage =
        folder.ok() ? folder->Verify() : std::vector<absl::Status>{folder.status()};
    std::error_code error;
    if (!damage.empty() && !std::filesystem::exists(each.path, error)) {
      WriteToStdout(each.path + ": was removed meanwhile\n");
      continue;
    }
    for (const absl::Status& one : damage) code = Complain(one);
    if (!damage.empty()) continue;
    WriteToStdout(fmt::format("{}: sound, {}\n", each.path, BytesText(folder->manifest().bytes())));
    sound.push_back(each);
  }
  if (!arguments.replay) return code;
  const ExitCode replayed = ReplayCheckpoints(disk, sound);
  return replayed == ExitCode::kOk ? code : replayed;
}

ExitCode Inspect(const Listing& listed) {
  if (listed.size() > 1) {
    return Complain(ExitCode::kUsage, fmt::format("there are {} checkpoints; name one, such as {}",
                                                  listed.size(), listed.back().path));
  }
  const ListedCheckpoint& one = listed.front();
  if (!one.state.ok()) return Complain(one.state);
  const absl::StatusOr<ModelFile> model = ModelFile::Open(one.path + "/" + kWeightsFile);
  if (!model.ok()) return Complain(model.status());
  const CheckpointManifest& manifest = *one.manifest;
  const CheckpointFacts& facts = manifest.facts;
  std::string text =
      FormatFacts({{"run", RunDirectoryName(facts.run)},
                   {"shard", std::to_string(Value(facts.shard))},
                   {"range", fmt::format("{}:{}", facts.range.begin, facts.range.end)},
                   {"generation", std::to_string(Value(facts.saved.generation))},
                   {"version", std::to_string(Value(facts.saved.version))},
                   {"stage", std::to_string(facts.saved.stage)},
                   {"saved", TimeText(manifest.saved_at)},
                   {"written by", "slipstream " + manifest.program}});
  std::vector<TableRow> files;
  for (const ManifestFile& file : manifest.files) {
    files.push_back({file.name, std::to_string(file.bytes), std::to_string(file.blocks.size())});
  }
  std::vector<TableRow> arrays;
  for (const ManifestArray& array : manifest.arrays) {
    arrays.push_back({array.name, std::to_string(array.values)});
  }
  std::vector<TableRow> tensors;
  for (const Tensor& tensor : model->layout().tensors()) {
    tensors.push_back({tensor.name, fmt::format("[{}]", fmt::join(tensor.shape, ", "))});
  }
  WriteToStdout(text + "\n" + FormatTable({"file", "bytes", "blocks"}, files) + "\n" +
                FormatTable({"array", "values"}, arrays) + "\n" +
                FormatTable({"tensor", "shape"}, tensors));
  return ExitCode::kOk;
}

ModelMetadata DescribeExported(const CheckpointSet& set, std::span<const float> weights) {
  std::vector<uint64_t> versions;
  for (const ListedCheckpoint& each : set.checkpoints()) {
    versions.push_back(Value(each.name.version));
  }
  return {{"written_by", fmt::format("slipstream {}", kVersion)},
          {"run", set.RunText()},
          {"versions", fmt::format("{}", fmt::join(versions, ","))},
          {kWeightsSha256, WeightsSha256(weights)}};
}

ExitCode Export(Disk& disk, const CheckpointArguments& arguments, const Listing& listed) {
  absl::StatusOr<Listing> chosen = ChooseForExport(listed, arguments.version);
  if (!chosen.ok()) return Complain(chosen.status());
  const absl::StatusOr<CheckpointSet> set = CheckpointSet::Open(disk, *std::move(chosen));
  if (!set.ok()) return Complain(set.status());
  const absl::StatusOr<TensorLayout> layout = set->JoinTensors();
  if (!layout.ok()) return Complain(layout.status());
  std::vector<float> weights(layout->parameters());
  const LoadedArray whole = {.name = kWeightsArray, .values = weights};
  const absl::Status read = set->ReadRange({0, weights.size()}, {&whole, 1});
  if (!read.ok()) return Complain(read);
  const absl::Status written =
      WriteModelFile(arguments.output, *layout, DescribeExported(*set, weights), weights);
  if (!written.ok()) return Complain(written);
  const size_t tensors = layout->tensors().size();
  WriteToStdout(fmt::format("{}: {} tensor{}, {} values, run {}, {}\n", arguments.output, tensors,
                            tensors == 1 ? "" : "s", weights.size(), set->RunText(),
                            set->VersionText()));
  return ExitCode::kOk;
}

ExitCode Carry(Disk& disk, const CheckpointArguments& arguments) {
  using Action = CheckpointArguments::Action;
  if (arguments.action == Action::kExport) {
    const absl::Status usable = CheckOutputFile(arguments.output, arguments.force);
    if (!usable.ok()) return Complain(usable);
  }
  const absl::StatusOr<Listing> listed = ListCheckpoints(disk, arguments.directory);
  if (!listed.ok()) return Complain(listed.status());
  switch (arguments.action) {
    case Action::kLs:
      return Ls(arguments, *listed);
    case Action::kVerify:
      return Verify(disk, arguments, *listed);
    case Action::kInspect:
      return Inspect(*listed);
    case Action::kExport:
      return Export(disk, arguments, *listed);
    case Action::kReshard:
      return Reshard(disk, arguments, *listed);
  }
  return ExitCode::kInternal;
}

}  // namespace

int CheckpointCommand(const CheckpointArguments& arguments) {
  PosixDisk disk;
  return static_cast<int>(Carry(disk, arguments));
}

}  // namespace slipstream

#include "worker/training/state_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/archive.h"
#include "common/base/encoding.h"
#include "common/model_file/model_file.h"
#include "common/model_file/weights_digest.h"
#include "common/process/version.h"

namespace slipstream {
namespace {

/// The key of the format's number, by which a worker's state is told from a model.
constexpr char kFormatKey[] = "worker_state_format";

constexpr char kProgramKey[] = "written_by";
constexpr std::string_view kProgramPrefix = "slipstream ";

/// The key of the checksum of all other metadata. That of the values is kWeightsSha256.
constexpr char kChecksumKey[] = "metadata_xxh3";

std::string ChecksumOf(ModelMetadata metadata) {
  metadata.erase(kChecksumKey);
  ArchiveWriter archive;
  archive(metadata);
  const std::string bytes = archive.Take();
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

ModelMetadata Describe(const StateOwner& owner, const StateMoment& moment,
                       std::span<const float> values) {
  ModelMetadata metadata(owner.begin(), owner.end());
  metadata[kFormatKey] = fmt::format("{}", kDurableFormat);
  metadata[kProgramKey] = fmt::format("{}{}", kProgramPrefix, kVersion);
  metadata["steps"] = fmt::format("{}", moment.steps);
  metadata["incarnation"] = fmt::format("{}", Value(moment.incarnation));
  metadata["pushes"] = fmt::format("{}", fmt::join(moment.pushes, ","));
  metadata["time"] = moment.time;
  metadata["scalars"] = fmt::format("{}", fmt::join(moment.scalars, ","));
  metadata[kWeightsSha256] = WeightsSha256(values);
  metadata[kChecksumKey] = ChecksumOf(metadata);
  return metadata;
}

/// Returns the value of a key; empty if there is none.
const std::string& ValueOf(const ModelMetadata& metadata, const std::string& key) {
  static const std::string kNone;
  const auto found = metadata.find(key);
  return found == metadata.end() ? kNone : found->second;
}

absl::Status CheckOwner(const ModelMetadata& metadata, const StateOwner& owner) {
  for (const auto& [key, wanted] : owner) {
    const std::string found = ValueOf(metadata, key);
    if (found == wanted) continue;
    return absl::FailedPreconditionError(
        fmt::format("it is the state of {} {}, and this is {} {}", key, found, key, wanted));
  }
  return absl::OkStatus();
}

/// Checks everything but the arrays.
absl::Status CheckMetadata(const ModelMetadata& metadata, const StateOwner& owner) {
  const std::string format = ValueOf(metadata, kFormatKey);
  if (format.empty()) return absl::DataLossError("it is not the state of a worker");
  if (ValueOf(metadata, kChecksumKey) != ChecksumOf(metadata)) {
    return absl::DataLossError("damaged: the checksum of its metadata is wrong");
  }
  uint64_t number = 0;
  if (!absl::SimpleAtoi(format, &number))
    return absl::DataLossError("it is not the state of a worker");
  std::string_view program = ValueOf(metadata, kProgramKey);
  if (program.starts_with(kProgramPrefix)) program.remove_prefix(kProgramPrefix.size());
  if (const std::string why = WhyUnreadable(number, program); !why.empty()) {
    return absl::FailedPreconditionError(why);
  }
  return CheckOwner(metadata, owner);
}

absl::StatusOr<StateMoment> MomentOf(const ModelMetadata& metadata) {
  StateMoment moment;
  uint64_t incarnation = 0;
  bool is_ok = absl::SimpleAtoi(ValueOf(metadata, "steps"), &moment.steps) &&
               absl::SimpleAtoi(ValueOf(metadata, "incarnation"), &incarnation);
  moment.incarnation = Incarnation{incarnation};
  moment.time = ValueOf(metadata, "time");
  for (const auto& text : absl::StrSplit(ValueOf(metadata, "pushes"), ',')) {
    is_ok = is_ok && absl::SimpleAtoi(text, &moment.pushes.emplace_back());
  }
  size_t scalars = 0;
  for (const auto& text : absl::StrSplit(ValueOf(metadata, "scalars"), ',')) {
    is_ok = is_ok && scalars < moment.scalars.size() &&
            absl::SimpleAtod(text, &moment.scalars[scalars++]);
  }
  if (is_ok && scalars == moment.scalars.size()) return moment;
  return absl::DataLossError("its checksums are right, but it is no state of a worker");
}

absl::Status At(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), fmt::format("{}: {}", path, std::string(status.message())));
}

}  // namespace

StateOwner OwnerOf(const RunSpec& settings, const Identity& identity, const ShardMap& map) {
  return {{"run", fmt::format("{:016x}", identity.run)},
          {"worker", fmt::format("{}", Value(identity.worker))},
          {"shard_map", fmt::format("{:016x}", map.fingerprint())},
          {"algorithm", std::string(RowOf(settings.worker.algorithm).name)},
          {"optimizer", std::string(RowOf(settings.optimizer.kind).name)},
          {"push_codec", std::string(RowOf(settings.wire.push_codec).name)}};
}

std::string StatePath(const std::string& directory, const Identity& identity) {
  return fmt::format("{}/{:016x}/worker-{}.safetensors", directory, identity.run,
                     Value(identity.worker));
}

absl::Status WriteStateFile(const std::string& path, const StateOwner& owner,
                            const StateMoment& moment, const TensorLayout& layout,
                            std::span<const float> values) {
  return WriteModelFile(path, layout, Describe(owner, moment, values), values);
}

absl::StatusOr<StateMoment> ReadStateFile(const std::string& path, const StateOwner& owner,
                                          const TensorLayout& layout, std::span<float> values) {
  const absl::StatusOr<ModelFile> file = ModelFile::Open(path);
  if (!file.ok()) return file.status();
  if (absl::Status sound = CheckMetadata(file->metadata(), owner); !sound.ok()) {
    return At(path, sound);
  }
  const absl::StatusOr<StateMoment> moment = MomentOf(file->metadata());
  if (!moment.ok()) return At(path, moment.status());
  if (absl::Status read = file->Read(layout, values); !read.ok()) return read;
  return moment;
}

}  // namespace slipstream

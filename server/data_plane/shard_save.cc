#include "server/data_plane/shard_save.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/archive.h"
#include "server/core/shard/shard_return.h"

namespace slipstream {

std::string EncodeSave(const ShardSave& save) {
  ArchiveWriter archive;
  archive(EncodeShardState(save.state), save.values.updates);
  for (const double scalar : save.values.scalars) archive(scalar);
  std::vector<Version> bases;
  for (const auto& [version, weights] : save.bases) bases.push_back(version);
  archive(save.log, bases, save.unfinished);
  return archive.Take();
}

absl::StatusOr<ShardSave> DecodeSave(std::string_view bytes) {
  ArchiveReader archive(bytes);
  std::string state;
  SavedValues values;
  archive(state, values.updates);
  for (double& scalar : values.scalars) archive(scalar);
  std::vector<Version> bases;
  uint64_t log = 0;
  std::vector<UnfinishedJob> unfinished;
  archive(log, bases, unfinished);
  if (!archive.is_complete()) {
    return absl::DataLossError("the state of the shard has the wrong length");
  }
  absl::StatusOr<ShardState> decoded = DecodeShardState(state);
  if (!decoded.ok()) return decoded.status();
  ShardSave save = {.state = *std::move(decoded),
                    .values = std::move(values),
                    .bases = {},
                    .unfinished = std::move(unfinished),
                    .log = log};
  for (const Version version : bases) save.bases[version] = nullptr;
  return save;
}

}  // namespace slipstream

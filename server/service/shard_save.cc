#include "server/service/shard_save.h"

#include "absl/status/status.h"
#include "common/base/archive.h"
#include "server/core/shard_return.h"

namespace slipstream {

std::string EncodeSave(const ShardSave& save) {
  ArchiveWriter archive;
  archive(EncodeShardState(save.state), save.values.updates);
  for (const double scalar : save.values.scalars) archive(scalar);
  return archive.Take();
}

absl::StatusOr<ShardSave> DecodeSave(std::string_view bytes) {
  ArchiveReader archive(bytes);
  std::string state;
  SavedValues values;
  archive(state, values.updates);
  for (double& scalar : values.scalars) archive(scalar);
  if (!archive.is_complete()) {
    return absl::DataLossError("the state of the shard has the wrong length");
  }
  absl::StatusOr<ShardState> decoded = DecodeShardState(state);
  if (!decoded.ok()) return decoded.status();
  return ShardSave{*std::move(decoded), std::move(values)};
}

}  // namespace slipstream

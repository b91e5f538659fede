#include "common/wire/control_wire.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/limits.h"

namespace slipstream {
namespace {

constexpr int kShardsMax = kServersMax;

}  // namespace

v1::Phase ToWire(Phase phase) { return static_cast<v1::Phase>(phase); }

v1::View ToWire(const View& view) {
  v1::View wire;
  wire.set_number(Value(view.number));
  for (const Member& member : view.members) {
    v1::Member& out = *wire.add_members();
    out.set_worker(Value(member.worker));
    out.set_incarnation(Value(member.incarnation));
    out.set_founding(member.founding);
  }
  return wire;
}

v1::Layout ToWire(const TensorLayout& layout) {
  v1::Layout wire;
  for (const Tensor& tensor : layout.tensors()) {
    v1::TensorSpec& out = *wire.add_tensors();
    out.set_name(tensor.name);
    out.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  }
  return wire;
}

v1::ShardMap ToWire(const ShardMap& map) {
  v1::ShardMap wire;
  for (uint32_t shard = 0; shard < map.shards(); ++shard) {
    const ParameterRange range = map.range(ShardId{shard});
    v1::Range& out = *wire.add_ranges();
    out.set_begin(range.begin);
    out.set_end(range.end);
  }
  wire.set_fingerprint(map.fingerprint());
  return wire;
}

absl::StatusOr<Phase> FromWire(v1::Phase wire) {
  if (wire == 0 || !v1::Phase_IsValid(wire)) {
    return absl::InvalidArgumentError("phase: " + std::to_string(wire) + " is unknown");
  }
  return static_cast<Phase>(wire);
}

absl::StatusOr<View> FromWire(const v1::View& wire) {
  if (wire.members_size() > kMembersMax) {
    return absl::InvalidArgumentError("view.members: more than " + std::to_string(kMembersMax));
  }
  View view{ViewNumber{wire.number()}, {}};
  for (const v1::Member& member : wire.members()) {
    if (!view.members.empty() && Value(view.members.back().worker) >= member.worker()) {
      return absl::InvalidArgumentError("view.members: worker " + std::to_string(member.worker()) +
                                        " is out of order");
    }
    view.members.push_back(
        {WorkerId{member.worker()}, Incarnation{member.incarnation()}, member.founding()});
  }
  return view;
}

absl::StatusOr<TensorLayout> FromWire(const v1::Layout& wire) {
  TensorLayout layout;
  for (const v1::TensorSpec& tensor : wire.tensors()) {
    std::vector<uint64_t> shape(tensor.shape().begin(), tensor.shape().end());
    if (absl::Status status = layout.Append(tensor.name(), std::move(shape)); !status.ok()) {
      return absl::InvalidArgumentError("layout.tensors: " + std::string(status.message()));
    }
  }
  return layout;
}

absl::StatusOr<ShardMap> FromWire(const v1::ShardMap& wire, const TensorLayout& layout) {
  if (wire.ranges_size() == 0 || wire.ranges_size() > kShardsMax) {
    return absl::InvalidArgumentError("shard_map.ranges: " + std::to_string(wire.ranges_size()) +
                                      " shards");
  }
  std::vector<ParameterRange> ranges;
  for (const v1::Range& range : wire.ranges()) ranges.push_back({range.begin(), range.end()});
  absl::StatusOr<ShardMap> map = ShardMap::FromRanges(layout, std::move(ranges));
  if (!map.ok()) {
    return absl::InvalidArgumentError("shard_map.ranges: " + std::string(map.status().message()));
  }
  if (wire.fingerprint() != map->fingerprint()) {
    return absl::InvalidArgumentError("shard_map.fingerprint: is not that of these ranges");
  }
  return map;
}

}  // namespace slipstream

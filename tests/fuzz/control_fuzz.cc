#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "proto/coordinator.pb.h"
#include "proto/shard.pb.h"
#include "server/control_plane/coordinator_wire.h"
#include "server/control_plane/orders_wire.h"
#include "server/status/worker_figures.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_target.h"

namespace slipstream {
namespace {

template <typename Message>
bool Parse(std::string_view input, Message& message) {
  return message.ParseFromArray(input.data(), static_cast<int>(input.size()));
}

/// Treats a layout as a coordinator does when a worker proposes it.
void CutAndSend(const TensorLayout& layout) {
  for (const uint32_t shards : {1u, 3u, 256u}) {
    for (const bool keeps_tensors_whole : {false, true}) {
      const auto map = ShardMap::Cut(layout, shards, {.keeps_tensors_whole = keeps_tensors_whole});
      if (!map.ok()) continue;
      const auto received = FromWire(ToWire(*map), layout);
      PS_CHECK(received.ok());
      PS_CHECK(*received == *map);
      for (uint32_t shard = 0; shard < shards; ++shard) {
        (void)layout.TensorsWithin(map->range(ShardId{shard}));
      }
    }
  }
}

}  // namespace

void FuzzPullRequest(std::string_view input) {
  v1::PullRequest wire;
  if (!Parse(input, wire)) return;
  const absl::StatusOr<PullRequest> request = FromWire(wire);
  if (!request.ok()) return;
  const absl::StatusOr<PullRequest> again = FromWire(ToWire(*request));
  PS_CHECK(again.ok());
  PS_CHECK(*again == *request);
}

void FuzzOrders(std::string_view input) {
  v1::SyncServerReply wire;
  if (!Parse(input, wire)) return;
  absl::StatusOr<ServerOrders> orders = FromWire(wire);
  if (!orders.ok()) return;
  if (orders->grant == 0) orders->initializer = {};  // Nobody holds the grant.
  const absl::StatusOr<ServerOrders> again = FromWire(ToWire(*orders));
  PS_CHECK(again.ok());
  PS_CHECK(*again == *orders);
}

void FuzzLayout(std::string_view input) {
  v1::PrepareModelRequest wire;
  if (!Parse(input, wire)) return;
  const absl::StatusOr<TensorLayout> layout = FromWire(wire.layout());
  if (!layout.ok()) return;
  const absl::StatusOr<TensorLayout> again = FromWire(ToWire(*layout));
  PS_CHECK(again.ok());
  PS_CHECK(*again == *layout);
  PS_CHECK(again->Fingerprint() == layout->Fingerprint());
  CutAndSend(*layout);
}

void FuzzReports(std::string_view input) {
  FuzzInput rest(input);
  const auto kind = rest.Take<uint8_t>();
  if (kind == 0) {
    v1::SyncServerRequest wire;
    if (Parse(rest.rest(), wire)) {
      PS_CHECK(FromWire(wire).pushed.size() ==
               static_cast<size_t>(wire.progress().newest_pushes_size()));
    }
  } else if (kind == 1) {
    v1::HeartbeatRequest wire;
    if (!Parse(rest.rest(), wire)) return;
    PS_CHECK(FromWire(wire.progress()).size() == static_cast<size_t>(wire.progress_size()));
    const auto figures = FiguresOf(wire, 2);
    if (!figures.ok()) return;
    // Whatever a worker sends, the figures kept about it are bounded.
    PS_CHECK(figures->recent_steps_size() <= kRecentStepsMax);
    PS_CHECK(figures->ByteSizeLong() <= size_t{4} << 10);
  } else {
    v1::ReportRequest wire;
    if (!Parse(rest.rest(), wire)) return;
    PS_CHECK(FromWire(wire.result()).versions.size() ==
             static_cast<size_t>(wire.result().versions_size()));
  }
}

}  // namespace slipstream

#ifndef SLIPSTREAM_TESTS_BENCHMARKS_SERVER_LANES_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_SERVER_LANES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/shard_group.h"

namespace slipstream::benchmarks {

/// The lanes of a worker, for contenders: they differ in how they exchange, not in their threads.
/// The clients that the lanes have of their own call nobody.
///
/// Not thread-safe: one owner.
class ServerLanes {
 public:
  explicit ServerLanes(size_t servers)
      : group_(
            std::vector<std::string>(servers, "127.0.0.1:1"), MapOf(static_cast<uint32_t>(servers)),
            {}, [](absl::Duration) { return false; }, cancel_) {}

  /// Calls `exchange` with the number of each server in parallel. Returns the first failure.
  absl::Status Run(const std::function<absl::Status(size_t)>& exchange) {
    return group_.Try(group_.all(),
                      [&](ShardClient& shard) { return exchange(Value(shard.shard())); });
  }

 private:
  static ShardMap MapOf(uint32_t servers) {
    TensorLayout layout;
    return layout.Append("all", {servers}).ok() ? ShardMap::Cut(layout, servers).value()
                                                : ShardMap();
  }

  CancelSwitch cancel_;
  ShardGroup group_;
};

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_SERVER_LANES_H_

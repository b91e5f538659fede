#ifndef SLIPSTREAM_TESTS_SERVER_DATA_PLANE_FIRST_ORDERS_H_
#define SLIPSTREAM_TESTS_SERVER_DATA_PLANE_FIRST_ORDERS_H_

#include <cstdint>

#include "common/layout/shard_map.h"
#include "server/control_plane/server_orders.h"
#include "tests/support/specs.h"

namespace slipstream {

/// Returns the orders that name the model of a run with a single shard of so many values, and let
/// worker 0 bring the initial weights under this grant.
inline ServerOrders FirstOrders(uint64_t run, uint64_t values, uint32_t members, uint64_t grant) {
  const TensorLayout layout = LayoutOf({values});
  ServerOrders orders;
  orders.number = 1;
  orders.run = run;
  orders.phase = Phase::kInitializing;
  orders.model = ModelOrders{.layout = layout,
                             .shard_map = *ShardMap::Cut(layout, 1),
                             .batches_total = 1'000'000,
                             .batches_per_epoch = 1'000'000,
                             .examples_per_epoch = 32'000'000};
  orders.view.number = ViewNumber{1};
  for (uint32_t id = 0; id < members; ++id) {
    orders.view.members.push_back({WorkerId{id}, Incarnation{id + 1}, true});
  }
  orders.grant = grant;
  orders.initializer = {run, WorkerId{0}, Incarnation{1}};
  return orders;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_DATA_PLANE_FIRST_ORDERS_H_

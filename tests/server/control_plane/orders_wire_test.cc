#include "server/control_plane/orders_wire.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/limits.h"
#include "server/control_plane/coordinator_wire.h"

namespace slipstream {
namespace {

constexpr SavedVersion kSaved{.generation = Generation{2}, .version = Version{40}, .stage = 1};

ServerOrders Orders() {
  ServerOrders orders;
  orders.number = 3;
  orders.phase = Phase::kTraining;
  return orders;
}

TEST(OrdersWireTest, ReturnsAndTheOrderToSaveArriveAsTheyWereGiven) {
  ServerOrders orders = Orders();
  orders.returns = {{.generation = Generation{3}, .from = kSaved}, {}};
  orders.save = {.number = 7, .version = Version{90}, .safe = kSaved};

  const absl::StatusOr<ServerOrders> read = FromWire(ToWire(orders));

  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, orders);
}

TEST(OrdersWireTest, NothingIsSaidOfCheckpointsWhereThereAreNone) {
  const v1::SyncServerReply wire = ToWire(Orders());

  EXPECT_EQ(wire.returns_size(), 0);
  EXPECT_FALSE(wire.has_save());
  EXPECT_EQ(*FromWire(wire), Orders());
}

TEST(OrdersWireTest, ReturnsOfMoreShardsThanARunHasAreRefused) {
  ServerOrders orders = Orders();
  orders.returns.resize(kServersMax + 1);

  EXPECT_TRUE(absl::IsInvalidArgument(FromWire(ToWire(orders)).status()));
}

TEST(OrdersWireTest, AServerReportsItsGenerationAndItsCheckpoints) {
  v1::SyncServerRequest request;
  request.set_generation(4);
  *request.add_saved() = ToWire(kSaved);

  const ServerReport report = FromWire(request);

  EXPECT_EQ(report.generation, Generation{4});
  EXPECT_EQ(report.saved, std::vector<SavedVersion>{kSaved});
}

}  // namespace
}  // namespace slipstream

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "server/service/shard_engine.h"

// Tests that a model that does not fit into memory is refused by name.

namespace slipstream {
namespace {

using testing::HasSubstr;

constexpr uint64_t kValues = uint64_t{1} << 20;
const Identity kInitializer{5, WorkerId{0}, Incarnation{1}};

ServerOrders OrdersOf(uint64_t values) {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("weight", {values}).ok());
  ServerOrders orders;
  orders.number = 1;
  orders.run = 5;
  orders.phase = Phase::kInitializing;
  orders.model = ModelOrders{.layout = layout, .shard_map = *ShardMap::Cut(layout, 1)};
  orders.grant = 1;
  orders.initializer = kInitializer;
  return orders;
}

/// Returns the shard's answer to the client that is about to send the initial weights.
absl::Status Begin(ShardEngine& engine, const ServerOrders& orders) {
  return engine
      .BeginInitialize({kInitializer, orders.grant, orders.model->shard_map.fingerprint(),
                        orders.model->layout.parameters()})
      .status();
}

ShardEngine::Options WithMemory(uint64_t bytes) {
  ShardEngine::Options options;
  options.run.cluster.workers = 2;
  options.memory_available = [bytes] { return bytes; };
  return options;
}

TEST(ShardMemoryTest, AModelThatFitsIsTaken) {
  ShardEngine engine(WithMemory((2 + 2) * 4 * kValues + (uint64_t{64} << 20)), std::nullopt);
  const ServerOrders orders = OrdersOf(kValues);

  engine.OnOrders(orders);

  EXPECT_EQ(engine.Failure(), "");
  EXPECT_TRUE(Begin(engine, orders).ok());
}

TEST(ShardMemoryTest, AWorkerWithTwoGradientsUnderWayTakesTwice) {
  ShardEngine::Options options = WithMemory((2 + 2) * 4 * kValues + (uint64_t{64} << 20));
  options.run.training.pipeline_depth = 2;
  ShardEngine engine(options, std::nullopt);

  engine.OnOrders(OrdersOf(kValues));

  EXPECT_THAT(engine.Failure(), HasSubstr("with 4 gradients under way"));
}

TEST(ShardMemoryTest, AModelThatDoesNotIsRefusedWithTheBytesItNeeds) {
  ShardEngine engine(WithMemory((2 + 2) * 4 * kValues + (uint64_t{64} << 20) - 1), std::nullopt);
  const ServerOrders orders = OrdersOf(kValues);

  engine.OnOrders(orders);

  EXPECT_THAT(engine.Failure(),
              HasSubstr("the model is too large for this server: 4.0 MiB of "
                        "weights, which with 2 gradients under way can take 80.0 MiB "
                        "(83886080 bytes) of memory"));
  const absl::Status refused = Begin(engine, orders);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(), engine.Failure());
}

}  // namespace
}  // namespace slipstream

#include "server/control_plane/orders_wire.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "common/base/limits.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "server/status/run_stage_wire.h"

namespace slipstream {
namespace {

v1::SaveOrder ToWire(const SaveOrder& order) {
  v1::SaveOrder wire;
  wire.set_number(order.number);
  wire.set_version(Value(order.version));
  if (order.safe.has_value()) *wire.mutable_safe() = slipstream::ToWire(*order.safe);
  return wire;
}

SaveOrder FromWire(const v1::SaveOrder& wire) {
  SaveOrder order = {.number = wire.number(), .version = Version{wire.version()}};
  if (wire.has_safe()) order.safe = slipstream::FromWire(wire.safe());
  return order;
}

/// Takes the returns and the order to save. Fails if there are more shards than a run can have.
absl::Status ReadCheckpoints(const v1::SyncServerReply& wire, ServerOrders& orders) {
  if (wire.returns_size() > static_cast<int>(kServersMax)) {
    return absl::InvalidArgumentError(
        fmt::format("returns: a run has at most {} shards", kServersMax));
  }
  for (const v1::ShardReturn& shard : wire.returns()) {
    orders.returns.push_back(
        {.generation = Generation{shard.generation()}, .from = slipstream::FromWire(shard.from())});
  }
  if (wire.has_save()) orders.save = FromWire(wire.save());
  return absl::OkStatus();
}

}  // namespace

v1::SavedVersion ToWire(const SavedVersion& saved) {
  v1::SavedVersion wire;
  wire.set_generation(Value(saved.generation));
  wire.set_version(Value(saved.version));
  wire.set_stage(saved.stage);
  return wire;
}

SavedVersion FromWire(const v1::SavedVersion& wire) {
  return {.generation = Generation{wire.generation()},
          .version = Version{wire.version()},
          .stage = wire.stage()};
}

v1::SyncServerReply ToWire(const ServerOrders& orders) {
  v1::SyncServerReply wire;
  wire.set_orders(orders.number);
  wire.set_run(orders.run);
  wire.set_phase(ToWire(orders.phase));
  *wire.mutable_view() = ToWire(orders.view);
  if (orders.model.has_value()) {
    *wire.mutable_layout() = ToWire(orders.model->layout);
    *wire.mutable_shard_map() = ToWire(orders.model->shard_map);
    wire.set_batches_total(orders.model->batches_total);
    wire.set_batches_per_epoch(orders.model->batches_per_epoch);
    wire.set_examples_per_epoch(orders.model->examples_per_epoch);
  }
  wire.set_grant(orders.grant);
  if (orders.grant != 0) *wire.mutable_initializer() = ToWire(orders.initializer);
  wire.set_may_exit(orders.may_exit);
  wire.set_failure(orders.failure);
  wire.set_drain_version(Value(orders.drain_version));
  wire.set_ends_work(orders.ends_work);
  wire.set_stage(orders.stage);
  for (const RunStage& stage : orders.stages) *wire.add_stages() = ToWire(stage);
  for (const auto& [instance, lag_max] : orders.awaited_readers) {
    v1::AwaitedReader& reader = *wire.add_awaited_readers();
    reader.set_instance(instance);
    reader.set_lag_max(lag_max);
  }
  for (const ShardReturn& shard : orders.returns) {
    v1::ShardReturn& of_wire = *wire.add_returns();
    of_wire.set_generation(Value(shard.generation));
    *of_wire.mutable_from() = ToWire(shard.from);
  }
  if (orders.save != SaveOrder()) *wire.mutable_save() = ToWire(orders.save);
  return wire;
}

absl::StatusOr<ServerOrders> FromWire(const v1::SyncServerReply& wire) {
  absl::StatusOr<Phase> phase = FromWire(wire.phase());
  if (!phase.ok()) return phase.status();
  absl::StatusOr<View> view = FromWire(wire.view());
  if (!view.ok()) return view.status();

  ServerOrders orders;
  orders.number = wire.orders();
  orders.run = wire.run();
  orders.phase = *phase;
  orders.view = *std::move(view);
  if (wire.has_layout()) {
    absl::StatusOr<TensorLayout> layout = FromWire(wire.layout());
    if (!layout.ok()) return layout.status();
    absl::StatusOr<ShardMap> map = FromWire(wire.shard_map(), *layout);
    if (!map.ok()) return map.status();
    orders.model = ModelOrders{.layout = *std::move(layout),
                               .shard_map = *std::move(map),
                               .batches_total = wire.batches_total(),
                               .batches_per_epoch = wire.batches_per_epoch(),
                               .examples_per_epoch = wire.examples_per_epoch()};
  }
  orders.grant = wire.grant();
  if (wire.has_initializer()) orders.initializer = FromWire(wire.initializer());
  orders.may_exit = wire.may_exit();
  orders.failure = wire.failure();
  orders.drain_version = Version{wire.drain_version()};
  orders.ends_work = wire.ends_work();
  absl::StatusOr<std::vector<RunStage>> stages = FromWire(wire.stages());
  if (!stages.ok()) return stages.status();
  orders.stages = *std::move(stages);
  orders.stage = wire.stage();
  for (const v1::AwaitedReader& reader : wire.awaited_readers()) {
    orders.awaited_readers[reader.instance()] = reader.lag_max();
  }
  if (absl::Status read = ReadCheckpoints(wire, orders); !read.ok()) return read;
  return orders;
}

}  // namespace slipstream

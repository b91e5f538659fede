// The part of ShardMachine that takes the coordinator's orders, and the first weights from the
// client that they name.

#include <utility>

#include "common/base/check.h"
#include "server/core/shard_machine.h"

namespace slipstream {
namespace {

/// Appends `more` to `output`. Orders close the open round at most once, so nothing is folded after
/// an update.
void Append(ShardOutput more, ShardOutput& output) {
  PS_CHECK(!output.update.has_value() || (more.folds.empty() && !more.update.has_value()));
  for (const Fold& fold : more.folds) output.folds.push_back(fold);
  if (more.update.has_value()) output.update = more.update;
  output.lagged.insert(output.lagged.end(), more.lagged.begin(), more.lagged.end());
  for (ShardAnswer& answer : more.answers) output.answers.push_back(std::move(answer));
  output.saves = output.saves || more.saves;
}

}  // namespace

std::optional<uint64_t> ShardMachine::ValuesOrdered(const ServerOrders& orders) const {
  if (orders.number <= state_.run.orders || has_plan() || !orders.model.has_value()) return {};
  return orders.model->shard_map.range(options_.shard).size();
}

ShardOutput ShardMachine::OnOrders(const ServerOrders& orders) {
  ShardOutput output;
  if (orders.number <= state_.run.orders) return output;
  if (const std::optional<uint64_t> values = ValuesOrdered(orders)) {
    SetPlan({.run = orders.run,
             .shard_map = orders.model->shard_map.fingerprint(),
             .count = *values,
             .batches_total = orders.model->batches_total,
             .batches_per_epoch = orders.model->batches_per_epoch,
             .examples_per_epoch = orders.model->examples_per_epoch});
  }
  state_.run.orders = orders.number;
  state_.initial_weights.Order(orders.grant, orders.initializer);
  OnStages(orders.stages);
  OnStage(orders.stage);
  Append(OnView(orders.view), output);
  Append(OnPhase(orders.phase, orders.drain_version), output);
  if (orders.ends_work) Append(OnWorkEnds(), output);
  Append(OnAwaitedReaders(orders.awaited_readers), output);
  Append(OnSaveOrder(orders.save), output);
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnSaveOrder(const SaveOrder& order) {
  ShardOutput output;
  if (!options_.saves || !state_.saves.Order(order, decided())) return output;
  SaveIfDue(output);
  return output;
}

ShardOutput ShardMachine::OnAwaitedReaders(const LagLimits& readers) {
  ShardOutput output;
  if (!is_first()) return output;
  state_.reader_pace.Adopt(readers, published());
  ServeWaiting(output);
  return output;
}

absl::Status ShardMachine::CheckInitializer(const InitializeHeader& header) const {
  return state_.initial_weights.Check(header, state_.run.plan, phase());
}

absl::StatusOr<bool> ShardMachine::OnInitialWeights(const InitializeHeader& header) {
  if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
  return state_.initial_weights.Receive(header.grant);
}

ShardOutput ShardMachine::OnInitialized(uint64_t grant) {
  PS_CHECK(has_plan());
  ShardOutput output;
  if (state_.initial_weights.Place(grant)) ServeWaiting(output);
  state_.saves.OnInitialized();
  SaveIfDue(output);
  return output;
}

}  // namespace slipstream

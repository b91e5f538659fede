// The part of ShardMachine that takes the coordinator's orders, and the first weights from the
// client that they name.

#include <fmt/format.h>

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
  if (orders.number <= state_.orders || has_plan() || !orders.model.has_value()) return {};
  return orders.model->shard_map.range(options_.shard).size();
}

ShardOutput ShardMachine::OnOrders(const ServerOrders& orders) {
  ShardOutput output;
  if (orders.number <= state_.orders) return output;
  if (const std::optional<uint64_t> values = ValuesOrdered(orders)) {
    SetPlan({.run = orders.run,
             .shard_map = orders.model->shard_map.fingerprint(),
             .count = *values,
             .batches_total = orders.model->batches_total,
             .batches_per_epoch = orders.model->batches_per_epoch,
             .examples_per_epoch = orders.model->examples_per_epoch});
  }
  state_.orders = orders.number;
  state_.grant = orders.grant;
  state_.initializer = orders.initializer;
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
  if (!options_.saves || order.number <= state_.save.number) return output;
  state_.save = order;
  if (order.version == Version{} || order.version == decided()) state_.save_is_due = true;
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
  if (!has_plan() || state_.grant == 0) {
    return absl::UnavailableError("no client has been granted initialisation yet");
  }
  if (header.shard_map != state_.plan->shard_map) {
    return absl::FailedPreconditionError("WRONG_SHARD_MAP: the model was cut by another map");
  }
  if (header.grant > state_.grant) {
    return absl::UnavailableError(
        fmt::format("grant {} is on its way, {} is known", header.grant, state_.grant));
  }
  if (header.grant < state_.grant || header.identity != state_.initializer) {
    return absl::FailedPreconditionError(
        fmt::format("initialisation is granted to worker {} under grant {}",
                    Value(state_.initializer.worker), state_.grant));
  }
  if (header.count != state_.plan->count) {
    return absl::InvalidArgumentError(
        fmt::format("SHAPE_MISMATCH: this shard holds {} values, {} are announced",
                    state_.plan->count, header.count));
  }
  if (phase() > Phase::kInitializing) {
    return absl::FailedPreconditionError("the model has its initial weights");
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ShardMachine::OnInitialWeights(const InitializeHeader& header) {
  if (absl::Status status = CheckInitializer(header); !status.ok()) return status;
  return std::exchange(state_.received_grant, header.grant) != header.grant;
}

ShardOutput ShardMachine::OnInitialized(uint64_t grant) {
  PS_CHECK(has_plan());
  ShardOutput output;
  state_.initialized_grant = grant;
  if (!std::exchange(state_.is_initialized, true)) ServeWaiting(output);
  // The weights of an earlier grant may have been saved as version 0.
  state_.last_saved.reset();
  state_.save_is_due = true;
  SaveIfDue(output);
  return output;
}

}  // namespace slipstream

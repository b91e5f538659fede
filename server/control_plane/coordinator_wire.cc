#include "server/control_plane/coordinator_wire.h"

#include <optional>
#include <string>
#include <utility>

#include "common/settings/policy_rows.h"
#include "common/wire/control_wire.h"
#include "common/wire/wire_text.h"
#include "server/control_plane/orders_wire.h"

namespace slipstream {

ServerReport FromWire(const v1::SyncServerRequest& wire) {
  ServerReport report;
  report.shard = ShardId{wire.shard()};
  report.instance = wire.instance();
  report.number = wire.call();
  report.address = wire.address();
  report.orders_seen = wire.orders_seen();
  report.run = wire.run();
  report.accepts_rollback = wire.accepts_rollback();
  report.initialized = wire.initialized();
  report.drained = wire.drained();
  report.generation = Generation{wire.generation()};
  for (const v1::SavedVersion& saved : wire.saved()) report.saved.push_back(FromWire(saved));
  report.knows_saved = wire.knows_saved();
  report.cannot_save = !wire.status().checkpoint_failure().empty();
  report.failure = wire.failure();
  report.members_max = wire.members_max();
  report.version = Version{wire.progress().version()};
  report.batches_of_rounds = wire.progress().batches_of_rounds();
  for (const v1::NewestPush& push : wire.progress().newest_pushes()) {
    report.pushed.push_back({WorkerId{push.worker()}, Incarnation{push.incarnation()},
                             push.batch_end(), WorkerClock{push.clock()}});
  }
  return report;
}

Initialization::Data DataOf(const v1::PrepareModelRequest& wire) {
  Initialization::Data data{wire.examples(), wire.data_fingerprint(), {}};
  for (const v1::FrozenTensor& frozen : wire.frozen()) {
    data.frozen.emplace(frozen.name(), frozen.digest());
  }
  return data;
}

Saving SavingOf(const v1::PrepareModelRequest& wire) {
  constexpr size_t kFailureBytesMax = 1000;
  if (!wire.has_can_save()) return {};
  if (wire.can_save()) return {Saving::State::kCan, ""};
  if (wire.saving_failure().empty()) return {Saving::State::kNotAsked, ""};
  return {Saving::State::kCannot, WireText(wire.saving_failure(), kFailureBytesMax)};
}

AggregatorReport AggregatorReportOf(const v1::SyncServerRequest& wire) {
  return {.group = wire.aggregator().group(),
          .shard = ShardId{wire.shard()},
          .instance = wire.instance(),
          .number = wire.call(),
          .address = wire.address(),
          .orders_seen = wire.orders_seen()};
}

ReaderReport FromWire(const v1::FollowRequest& wire) {
  ReaderReport report = {.instance = wire.instance(),
                         .host = wire.host(),
                         .name = wire.name(),
                         .label = wire.label(),
                         .newest = Version{wire.newest_version()},
                         .taken = wire.taken(),
                         .lost = wire.lost(),
                         .bytes = wire.bytes(),
                         .bytes_per_second = wire.bytes_per_second(),
                         .lag_sum = wire.lag_sum(),
                         .lag_highest = wire.lag_highest(),
                         .leaves = wire.leaves()};
  if (wire.has_held_version()) report.held = Version{wire.held_version()};
  if (wire.has_lag_max()) report.lag_max = wire.lag_max();
  return report;
}

std::vector<UnitReport> FromWire(const google::protobuf::RepeatedPtrField<v1::WorkProgress>& wire) {
  std::vector<UnitReport> progress;
  for (const v1::WorkProgress& of_unit : wire) {
    progress.push_back({of_unit.unit(), of_unit.batches_done()});
  }
  return progress;
}

Evaluation FromWire(const v1::EvaluationStatus& wire) {
  Evaluation evaluation;
  if (wire.has_test_accuracy()) evaluation.test_accuracy = wire.test_accuracy();
  evaluation.epochs_measured = wire.epochs_measured();
  evaluation.test_loss = wire.test_loss();
  evaluation.examples = wire.examples();
  for (uint64_t version : wire.versions()) evaluation.versions.push_back(Version{version});
  evaluation.seconds = wire.seconds();
  evaluation.model_file = wire.model_file();
  evaluation.model_failure = wire.model_failure();
  return evaluation;
}

v1::PrepareModelReply ToWire(const Preparation& preparation) {
  v1::PrepareModelReply wire;
  switch (preparation.state) {
    case Preparation::State::kWait:
      wire.set_state(v1::PrepareModelReply::WAIT);
      break;
    case Preparation::State::kGranted:
      wire.set_state(v1::PrepareModelReply::GRANTED);
      break;
    case Preparation::State::kReady:
      wire.set_state(v1::PrepareModelReply::READY);
      break;
  }
  wire.set_grant(preparation.grant);
  *wire.mutable_shard_map() = ToWire(preparation.shard_map);
  wire.set_message(preparation.message);
  return wire;
}

v1::GetWorkReply ToWire(const WorkAnswer& work) {
  v1::GetWorkReply wire;
  switch (work.state) {
    case WorkAnswer::State::kWait:
      wire.set_state(v1::GetWorkReply::WAIT);
      break;
    case WorkAnswer::State::kUnit:
      wire.set_state(v1::GetWorkReply::UNIT);
      break;
    case WorkAnswer::State::kFinished:
      wire.set_state(v1::GetWorkReply::FINISHED);
      break;
    case WorkAnswer::State::kStage:
      wire.set_state(v1::GetWorkReply::STAGE);
      break;
    case WorkAnswer::State::kReturned:
      wire.set_state(v1::GetWorkReply::RETURNED);
      wire.set_generation(Value(work.generation));
      break;
  }
  wire.set_stage(work.stage);
  if (work.state == WorkAnswer::State::kStage) {
    wire.set_policy(std::string(RowOf(work.policy).name));
    wire.set_since_stage(work.since_stage);
  }
  wire.set_unit(work.unit.number);
  wire.set_first_batch(work.unit.first);
  wire.set_batches(work.unit.batches);
  return wire;
}

v1::HeartbeatReply NewsFor(const Coordinator& coordinator, WorkerId worker) {
  v1::HeartbeatReply news;
  news.set_phase(ToWire(coordinator.phase()));
  news.set_failure(coordinator.failure());
  news.set_work_ends(coordinator.WorkEnds());
  if (const auto steps = coordinator.StepsFor(worker)) news.set_steps(*steps);
  // Not before there is something to tell: heartbeats are frequent, and servers many.
  if (coordinator.servers().may_have_moved()) {
    for (std::string& address : coordinator.servers().Addresses()) {
      news.add_servers(std::move(address));
    }
  }
  const std::optional<Evaluations::Order> order = coordinator.EvaluationFor(worker);
  if (order.has_value()) {
    news.set_evaluation(order->number);
    news.set_evaluation_epoch(order->epoch);
    news.set_evaluation_final(order->is_final);
    news.set_evaluation_saves(order->saves);
  }
  return news;
}

}  // namespace slipstream

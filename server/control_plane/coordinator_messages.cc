#include "server/control_plane/coordinator_messages.h"

#include <string>
#include <utility>

#include "common/process/version.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "server/control_plane/coordinator_wire.h"
#include "server/control_plane/orders_wire.h"

namespace slipstream {

absl::Status Take(Coordinator& coordinator, const v1::PrepareModelRequest& request,
                  absl::Time now) {
  const Identity worker = FromWire(request.identity());
  std::optional<TensorLayout> layout;
  if (request.has_layout()) {
    absl::StatusOr<TensorLayout> named = FromWire(request.layout());
    if (!named.ok()) return named.status();
    layout = *std::move(named);
  }
  absl::Status prepared = coordinator.OnPrepareModel(worker, layout, DataOf(request), now).status();
  const Saving saving = SavingOf(request);
  if (!prepared.ok() || saving.state == Saving::State::kUnknown) return prepared;
  return coordinator.OnSaving(worker, saving, now);
}

absl::Status Take(Coordinator& coordinator, const v1::FinishInitializationRequest& request,
                  absl::Time now) {
  return coordinator.OnFinishInitialization(FromWire(request.identity()), request.grant(), now);
}

absl::Status Take(Coordinator& coordinator, const v1::HeartbeatRequest& request, absl::Time now) {
  const Identity worker = FromWire(request.identity());
  absl::Status taken = coordinator.OnHeartbeat(worker, FromWire(request.progress()), now);
  if (taken.ok()) taken = coordinator.OnSpeed(worker, request.steps_per_second());
  if (taken.ok() && request.done_pushing()) taken = coordinator.OnDonePushing(worker, now);
  const bool may_end = coordinator.phase() >= Phase::kTraining && !coordinator.WorkEnds();
  if (taken.ok() && request.ends_training() && may_end) {
    taken = coordinator.OnEndTraining(EndReason::kWorker, now);
  }
  if (!taken.ok()) return taken;
  coordinator.OnMeasured(worker, request.evaluation(), request.measured_examples(), now);
  return absl::OkStatus();
}

absl::Status Take(Coordinator& coordinator, const v1::GetWorkRequest& request, absl::Time now) {
  return coordinator.OnHeartbeat(FromWire(request.identity()), FromWire(request.progress()), now);
}

absl::Status Take(Coordinator& coordinator, const v1::MeetRequest& request, absl::Time now) {
  return coordinator.OnMeet(FromWire(request.identity()), request.contact(), now);
}

absl::Status Take(Coordinator& coordinator, const v1::ReportRequest& request, absl::Time now) {
  const Identity worker = FromWire(request.identity());
  Evaluation result = FromWire(request.result());
  const std::optional<Evaluations::Order> order = coordinator.EvaluationFor(worker.worker);
  if (order.has_value() && order->number == request.evaluation()) {
    absl::Status measured =
        coordinator.servers().CheckMeasured(result.versions, /*has_ended=*/order->is_final);
    if (!measured.ok()) return measured;
  }
  return coordinator.OnReport(worker, request.evaluation(), std::move(result),
                              request.weights_sha256(), now);
}

absl::Status Take(Coordinator& coordinator, const v1::LeaveRequest& request, absl::Time now) {
  return coordinator.OnLeave(FromWire(request.identity()), request.failure(), now,
                             request.ends_run(), FromWire(request.progress()));
}

std::optional<absl::Status> AnswerTo(const Coordinator& coordinator,
                                     const v1::SyncServerRequest& request, bool is_last,
                                     v1::SyncServerReply& reply) {
  const ServerOrders& orders = coordinator.orders();
  const bool is_new = orders.number != request.orders_seen();
  const bool has_news = is_new && !coordinator.AwaitsServers();
  if (!has_news && !is_last) return std::nullopt;
  if (is_new) {
    reply = ToWire(orders);
  } else {
    reply.set_orders(orders.number);
    reply.set_run(orders.run);
    reply.set_phase(ToWire(orders.phase));
  }
  reply.set_protocol(kProtocol);
  reply.set_awaits_servers(coordinator.AwaitsServers());
  if (request.has_aggregator()) {
    reply.set_upstream(coordinator.UpstreamOf(ShardId{request.shard()}));
  }
  return absl::OkStatus();
}

std::optional<absl::Status> AnswerTo(const Coordinator& coordinator,
                                     const v1::PrepareModelRequest& request, bool is_last,
                                     v1::PrepareModelReply& reply) {
  const absl::StatusOr<Preparation> answer = coordinator.AskModel(FromWire(request.identity()));
  if (!answer.ok()) return answer.status();
  if (answer->state == Preparation::State::kWait && !is_last) return std::nullopt;
  reply = ToWire(*answer);
  return absl::OkStatus();
}

std::optional<absl::Status> AnswerTo(Coordinator& coordinator, const v1::GetWorkRequest& request,
                                     bool is_last, v1::GetWorkReply& reply) {
  WorkQuestion question = {.stage = request.stage(),
                           .generation = Generation{request.generation()},
                           .batches_wanted = request.batches_wanted()};
  if (request.has_newest_unit()) question.newest_unit = request.newest_unit();
  const absl::StatusOr<WorkAnswer> answer =
      coordinator.AskWork(FromWire(request.identity()), question);
  if (!answer.ok()) return answer.status();
  if (answer->state == WorkAnswer::State::kWait && !is_last) return std::nullopt;
  reply = ToWire(*answer);
  return absl::OkStatus();
}

std::optional<absl::Status> AnswerTo(const Coordinator& coordinator, const v1::MeetRequest& request,
                                     bool is_last, v1::MeetReply& reply) {
  const absl::StatusOr<std::string> contact =
      coordinator.AskContact(FromWire(request.identity()), WorkerId{request.worker()});
  if (!contact.ok()) return contact.status();
  if (contact->empty() && !is_last) return std::nullopt;
  reply.set_contact(*contact);
  return absl::OkStatus();
}

void Welcome(const Coordinator& coordinator, const Identity& worker, absl::Duration lease,
             v1::RegisterReply& reply) {
  *reply.mutable_identity() = ToWire(worker);
  for (std::string& address : coordinator.servers().Addresses()) {
    reply.add_servers(std::move(address));
  }
  for (std::string& address : coordinator.aggregators().AddressesFor(worker.worker)) {
    reply.add_aggregators(std::move(address));
  }
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(lease)));
  reply.set_protocol(kProtocol);
}

void Inform(const Coordinator& coordinator, const RunSpec& run, const v1::FollowRequest& request,
            v1::FollowReply& reply) {
  reply.set_protocol(kProtocol);
  reply.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(run.cluster.lease)));
  reply.set_phase(ToWire(coordinator.phase()));
  reply.set_failure(coordinator.failure());
  reply.set_newest_version(Value(coordinator.readers().newest()));
  const bool is_published = RowOf(run.worker.algorithm).pushes == PushKind::kValues;
  reply.set_first_version(is_published ? 1 : 0);
  const std::optional<ModelOrders>& model = coordinator.orders().model;
  if (!model.has_value()) return;
  if (request.wants_model() || coordinator.servers().may_have_moved()) {
    for (std::string& address : coordinator.servers().Addresses()) {
      reply.add_servers(std::move(address));
    }
  }
  if (!request.wants_model()) return;
  *reply.mutable_layout() = ToWire(model->layout);
  *reply.mutable_shard_map() = ToWire(model->shard_map);
}

}  // namespace slipstream

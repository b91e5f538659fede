#include "tests/simulation/sim_coordinator.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/log_line.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "proto/coordinator.pb.h"
#include "server/service/coordinator_wire.h"
#include "server/service/orders_wire.h"

namespace slipstream {
namespace {

template <typename Message>
Message Parsed(const std::string& bytes) {
  Message message;
  PS_CHECK(message.ParseFromString(bytes));
  return message;
}

}  // namespace

SimCoordinator::SimCoordinator(uint64_t run, const Scenario& scenario, EventQueue& queue,
                               History& history, Trace& trace)
    : run_(run),
      scenario_(scenario),
      queue_(queue),
      history_(history),
      trace_(trace),
      coordinator_(std::in_place, run, scenario.run, queue.now()),
      journal_(scenario, queue) {
  queue_.After(kCoordinatorTick, [this] { Tick(0); });
}

Phase SimCoordinator::phase_kept() const {
  if (journal_.file().empty()) return Phase::kWaitingForServers;
  return Coordinator::PeekAt(journal_.file())->phase;
}

void SimCoordinator::Kill() {
  trace_.Line("the coordinator is killed");
  is_dead_ = true;
  killed_ = queue_.now();
  ++life_;
  journal_.Kill();
  for (const Respond& respond : parked_.TakeAll()) {
    respond(absl::UnavailableError("the connection broke"), "");
  }
}

void SimCoordinator::Return() {
  trace_.Line("the coordinator comes back");
  is_dead_ = false;
  coordinator_.emplace(run_, scenario_.run, queue_.now());
  if (journal_.file().empty()) {
    journal_.Return(0);
  } else {
    PS_CHECK(coordinator_->Restore(journal_.file(), queue_.now()).ok());
    journal_.Return(coordinator_->journal_changes());
  }
  view_noted_ = coordinator_->orders().view.number;
  end_is_noted_ = coordinator_->WorkEnds();
  phase_noted_ = coordinator_->phase();
  // The journal may lack the newest pushes, whose next report renews leases again then.
  clocks_.clear();
  for (const auto& [id, worker] : coordinator_->membership().workers()) {
    clocks_[worker.incarnation] = worker.pushed;
  }
  // Each change that was made is a stage more.
  if (!scenario_.changes.empty()) changes_made_ = coordinator_->stages().size() - 1;
  history_.Add(CoordinatorReturned{killed_, queue_.now()});
  Tick(life_);
}

void SimCoordinator::OnCall(Method method, const std::string& request, const Respond& respond) {
  if (is_dead_) return respond(absl::UnavailableError("nobody listens at the address"), "");
  coordinator_->Observe(queue_.now());
  switch (method) {
    case Method::kSyncServer:
      return SyncServer(request, respond);
    case Method::kRegister:
      return Register(request, respond);
    case Method::kPrepareModel:
      return PrepareModel(request, respond);
    case Method::kFinishInitialization:
      return FinishInitialization(request, respond);
    case Method::kHeartbeat:
      return Heartbeat(request, respond);
    case Method::kGetWork:
      return GetWork(request, respond);
    case Method::kReport:
      return Report(request, respond);
    case Method::kLeave:
      return Leave(request, respond);
    case Method::kFollow:
      return Follow(request, respond);
  }
}

void SimCoordinator::Tick(uint64_t life) {
  if (life != life_) return;
  coordinator_->Tick(queue_.now());
  Change();
  Settle();
  queue_.After(kCoordinatorTick, [this, life] { Tick(life); });
}

void SimCoordinator::Change() {
  if (coordinator_->phase() != Phase::kTraining) return;
  if (!training_began_.has_value()) training_began_ = queue_.now();
  if (changes_made_ == scenario_.changes.size()) return;
  const PolicyChange& next = scenario_.changes[changes_made_];
  if (queue_.now() < *training_began_ + next.at) return;
  RunChange change = {.settings = scenario_.run, .sets_policy = true};
  change.settings.consistency = next.policy;
  // It is refused if work has ended.
  if (coordinator_->OnChange(change, queue_.now()).ok()) ++changes_made_;
}

void SimCoordinator::Settle() {
  for (const Coordinator::Note& note : coordinator_->TakeNotes()) {
    trace_.Line("{}", TextOf(note.line));
  }
  NoteChanges();
  const View& view = coordinator_->orders().view;
  if (view.number != view_noted_) Show(ViewMade{view, queue_.now(), awaited_servers_});
  view_noted_ = view.number;
  awaited_servers_ = coordinator_->servers().AnyUnheard();
  if (coordinator_->WorkEnds() && !end_is_noted_) {
    Show(WorkEnded{*coordinator_->end_reason(), queue_.now()});
  }
  end_is_noted_ = coordinator_->WorkEnds();  // A return to an earlier stage takes the end back.
  if (coordinator_->phase() != phase_noted_) {
    Show(PhaseMade{coordinator_->phase(), queue_.now()});
  }
  phase_noted_ = coordinator_->phase();

  for (const auto& [respond, answer] :
       parked_.TakeAnswered(coordinator_->changes(), queue_.now())) {
    Answer(respond, answer);
  }
}

void SimCoordinator::NoteChanges() {
  journal_.Note(coordinator_->journal_changes(), [this] { return coordinator_->Save(); });
}

void SimCoordinator::Answer(const Respond& respond, const absl::StatusOr<std::string>& answer) {
  NoteChanges();
  const auto tell = [respond, answer] {
    respond(answer.status(), answer.ok() ? *answer : std::string());
  };
  journal_.Leave(tell, [respond] { respond(absl::UnavailableError("the connection broke"), ""); });
}

void SimCoordinator::ServeOrPark(const absl::Status& event, uint32_t wait_ms, Question question,
                                 const Respond& respond) {
  std::optional<absl::StatusOr<std::string>> answer;
  if (event.ok()) {
    answer = question(wait_ms == 0);
  } else {
    answer = event;
  }
  Settle();
  if (answer.has_value()) return Answer(respond, *answer);
  parked_.Park(respond, std::move(question), absl::Milliseconds(wait_ms), queue_.now());
}

void SimCoordinator::Note(const absl::Status& status, const Identity& worker,
                          WorkerHeard::What what) {
  // Every call of a member renews its lease, even if its request is refused.
  const bool is_heard = status.ok() || (what == WorkerHeard::What::kCalled &&
                                        coordinator_->membership().Check(worker).ok());
  if (is_heard) Show(WorkerHeard{what, worker, queue_.now()});
}

void SimCoordinator::SyncServer(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::SyncServerRequest>(bytes);
  if (request.has_aggregator()) return SyncAggregator(request, respond);
  const ServerReport report = FromWire(request);
  const absl::Status recorded = coordinator_->OnServer(report, queue_.now());
  if (recorded.ok()) NotePushers(report);
  const auto question = [this, seen = request.orders_seen()](
                            bool is_last) -> std::optional<absl::StatusOr<std::string>> {
    const ServerOrders& orders = coordinator_->orders();
    const bool has_news = orders.number != seen && !coordinator_->AwaitsServers();
    if (!has_news && !is_last) return std::nullopt;
    v1::SyncServerReply reply = ToWire(orders);
    reply.set_awaits_servers(coordinator_->AwaitsServers());
    return reply.SerializeAsString();
  };
  ServeOrPark(recorded, request.wait_ms(), question, respond);
}

void SimCoordinator::SyncAggregator(const v1::SyncServerRequest& request, const Respond& respond) {
  const AggregatorReport report = AggregatorReportOf(request);
  const absl::Status recorded = coordinator_->OnAggregator(report, queue_.now()).status();
  const auto question = [this, seen = request.orders_seen(), shard = report.shard](
                            bool is_last) -> std::optional<absl::StatusOr<std::string>> {
    const ServerOrders& orders = coordinator_->orders();
    if (orders.number == seen && !is_last) return std::nullopt;
    v1::SyncServerReply reply = ToWire(orders);
    reply.set_upstream(coordinator_->UpstreamOf(shard));
    return reply.SerializeAsString();
  };
  ServeOrPark(recorded, request.wait_ms(), question, respond);
}

void SimCoordinator::NotePushers(const ServerReport& report) {
  for (const ServerReport::Pushed& pushed : report.pushed) {
    const Identity worker{coordinator_->orders().run, pushed.worker, pushed.incarnation};
    WorkerClock& clock = clocks_[pushed.incarnation];
    if (pushed.clock <= clock || !coordinator_->membership().Check(worker).ok()) continue;
    clock = pushed.clock;
    Show(WorkerHeard{WorkerHeard::What::kCalled, worker, queue_.now()});
  }
}

void SimCoordinator::Register(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::RegisterRequest>(bytes);
  Applicant applicant = {
      .host = request.host(), .process = request.process(), .instance = request.instance()};
  if (request.has_worker()) applicant.worker = WorkerId{request.worker()};
  const absl::StatusOr<Identity> identity = coordinator_->OnRegister(applicant, queue_.now());
  v1::RegisterReply reply;
  if (identity.ok()) {
    Note(absl::OkStatus(), *identity, WorkerHeard::What::kRegistered);
    *reply.mutable_identity() = ToWire(*identity);
    for (const auto& server : coordinator_->servers().servers()) {
      reply.add_servers(server->report.address);
    }
    reply.set_lease_ms(
        static_cast<uint32_t>(absl::ToInt64Milliseconds(scenario_.run.cluster.lease)));
  }
  ServeOrPark(
      identity.status(), 0, [reply](bool) { return reply.SerializeAsString(); }, respond);
}

void SimCoordinator::PrepareModel(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::PrepareModelRequest>(bytes);
  const Identity worker = FromWire(request.identity());
  std::optional<TensorLayout> layout;
  if (request.has_layout()) layout = FromWire(request.layout()).value();
  const Initialization::Data data = DataOf(request);
  const absl::Status event =
      coordinator_->OnPrepareModel(worker, layout, data, queue_.now()).status();
  Note(event, worker, WorkerHeard::What::kCalled);
  const auto question = [this, worker](bool is_last) -> std::optional<absl::StatusOr<std::string>> {
    const absl::StatusOr<Coordinator::Preparation> answer = coordinator_->AskModel(worker);
    if (!answer.ok()) return answer.status();
    if (answer->state == Coordinator::Preparation::State::kWait && !is_last) return std::nullopt;
    return ToWire(*answer).SerializeAsString();
  };
  ServeOrPark(event, request.wait_ms(), question, respond);
}

void SimCoordinator::FinishInitialization(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::FinishInitializationRequest>(bytes);
  const Identity worker = FromWire(request.identity());
  const absl::Status event =
      coordinator_->OnFinishInitialization(worker, request.grant(), queue_.now());
  Note(event, worker, WorkerHeard::What::kCalled);
  ServeOrPark(
      event, 0, [](bool) { return std::string(); }, respond);
}

void SimCoordinator::Heartbeat(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::HeartbeatRequest>(bytes);
  const Identity worker = FromWire(request.identity());
  absl::Status event =
      coordinator_->OnHeartbeat(worker, FromWire(request.progress()), queue_.now());
  if (event.ok()) event = coordinator_->OnSpeed(worker, request.steps_per_second());
  if (event.ok() && request.done_pushing()) {
    event = coordinator_->OnDonePushing(worker, queue_.now());
  }
  Note(event, worker, WorkerHeard::What::kCalled);
  const v1::HeartbeatReply reply = NewsFor(*coordinator_, worker.worker);
  ServeOrPark(
      event, 0, [reply](bool) { return reply.SerializeAsString(); }, respond);
}

void SimCoordinator::GetWork(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::GetWorkRequest>(bytes);
  const Identity worker = FromWire(request.identity());
  std::optional<uint64_t> newest;
  if (request.has_newest_unit()) newest = request.newest_unit();
  const absl::Status event =
      coordinator_->OnHeartbeat(worker, FromWire(request.progress()), queue_.now());
  Note(event, worker, WorkerHeard::What::kCalled);
  const Life life{request.life()};
  const auto question = [this, worker, newest, life, stage = request.stage()](
                            bool is_last) -> std::optional<absl::StatusOr<std::string>> {
    const absl::StatusOr<Coordinator::Work> answer =
        coordinator_->AskWork(worker, stage, newest, life);
    if (!answer.ok()) return answer.status();
    if (answer->state == Coordinator::Work::State::kWait && !is_last) return std::nullopt;
    return ToWire(*answer).SerializeAsString();
  };
  ServeOrPark(event, request.wait_ms(), question, respond);
}

void SimCoordinator::Report(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::ReportRequest>(bytes);
  const Identity worker = FromWire(request.identity());
  const absl::Status event =
      coordinator_->OnReport(worker, request.evaluation(), FromWire(request.result()),
                             request.weights_sha256(), queue_.now());
  if (event.ok() && request.result().has_test_accuracy()) {
    Show(AccuracyTaken{request.result().test_accuracy()});
  }
  Note(event, worker, WorkerHeard::What::kCalled);
  ServeOrPark(
      event, 0, [](bool) { return std::string(); }, respond);
}

void SimCoordinator::Follow(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::FollowRequest>(bytes);
  const absl::Status event = coordinator_->OnReader(FromWire(request), queue_.now()).status();
  v1::FollowReply reply;
  reply.set_phase(ToWire(coordinator_->phase()));
  const std::optional<ModelOrders>& model = coordinator_->orders().model;
  if (request.wants_model() && model.has_value()) {
    *reply.mutable_layout() = ToWire(model->layout);
    *reply.mutable_shard_map() = ToWire(model->shard_map);
  }
  ServeOrPark(
      event, 0, [reply](bool) { return reply.SerializeAsString(); }, respond);
}

void SimCoordinator::Leave(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::LeaveRequest>(bytes);
  const Identity worker = FromWire(request.identity());
  const absl::Status event = coordinator_->OnLeave(worker, request.failure(), queue_.now());
  Note(event, worker, WorkerHeard::What::kLeft);
  ServeOrPark(
      event, 0, [](bool) { return std::string(); }, respond);
}

}  // namespace slipstream

#include "tests/simulation/sim_coordinator.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/log_line.h"
#include "common/wire/shard_wire.h"
#include "proto/coordinator.pb.h"
#include "server/control_plane/coordinator_messages.h"
#include "server/control_plane/coordinator_wire.h"

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
  return PeekAtRun(journal_.file())->phase;
}

void SimCoordinator::Kill() {
  trace_.Line("the coordinator is killed");
  is_dead_ = true;
  killed_ = queue_.now();
  ++process_;
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
  Tick(process_);
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
      return ServeMember<v1::PrepareModelRequest, v1::PrepareModelReply>(request, respond);
    case Method::kFinishInitialization:
      return FinishInitialization(request, respond);
    case Method::kHeartbeat:
      return Heartbeat(request, respond);
    case Method::kGetWork:
      return ServeMember<v1::GetWorkRequest, v1::GetWorkReply>(request, respond);
    case Method::kReport:
      return Report(request, respond);
    case Method::kLeave:
      return Leave(request, respond);
    case Method::kFollow:
      return Follow(request, respond);
  }
}

void SimCoordinator::Tick(uint64_t process) {
  if (process != process_) return;
  coordinator_->Tick(queue_.now());
  Change();
  Settle();
  queue_.After(kCoordinatorTick, [this, process] { Tick(process); });
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
  for (const CoordinatorNotes::Note& note : coordinator_->TakeNotes()) {
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

template <typename Request>
Request SimCoordinator::TakeAs(const std::string& bytes, absl::Status& event) {
  const auto request = Parsed<Request>(bytes);
  event = Take(*coordinator_, request, queue_.now());
  return request;
}

template <typename Request, typename Reply>
void SimCoordinator::ServeMember(const std::string& bytes, const Respond& respond) {
  absl::Status event;
  const auto request = TakeAs<Request>(bytes, event);
  Note(event, FromWire(request.identity()), WorkerHeard::What::kCalled);
  ServeOrPark(event, request.wait_ms(), QuestionOf<Reply>(request), respond);
}

template <typename Reply, typename Request>
SimCoordinator::Question SimCoordinator::QuestionOf(const Request& request) {
  return [this, request](bool is_last) -> std::optional<absl::StatusOr<std::string>> {
    Reply reply;
    const std::optional<absl::Status> answer = AnswerTo(*coordinator_, request, is_last, reply);
    if (!answer.has_value()) return std::nullopt;
    if (!answer->ok()) return *answer;
    return reply.SerializeAsString();
  };
}

void SimCoordinator::ServeAtOnce(const absl::Status& event, const google::protobuf::Message& reply,
                                 const Respond& respond) {
  ServeOrPark(
      event, 0, [bytes = reply.SerializeAsString()](bool) { return bytes; }, respond);
}

void SimCoordinator::SyncServer(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::SyncServerRequest>(bytes);
  absl::Status recorded;
  if (request.has_aggregator()) {
    recorded = coordinator_->OnAggregator(AggregatorReportOf(request), queue_.now()).status();
  } else {
    const ServerReport report = FromWire(request);
    recorded = coordinator_->OnServer(report, queue_.now());
    if (recorded.ok()) NotePushers(report);
  }
  ServeOrPark(recorded, request.wait_ms(), QuestionOf<v1::SyncServerReply>(request), respond);
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
    Welcome(*coordinator_, *identity, scenario_.run.cluster.lease, reply);
  }
  ServeAtOnce(identity.status(), reply, respond);
}

void SimCoordinator::FinishInitialization(const std::string& bytes, const Respond& respond) {
  absl::Status event;
  const auto request = TakeAs<v1::FinishInitializationRequest>(bytes, event);
  Note(event, FromWire(request.identity()), WorkerHeard::What::kCalled);
  ServeAtOnce(event, v1::FinishInitializationReply(), respond);
}

void SimCoordinator::Heartbeat(const std::string& bytes, const Respond& respond) {
  absl::Status event;
  const auto request = TakeAs<v1::HeartbeatRequest>(bytes, event);
  const Identity worker = FromWire(request.identity());
  Note(event, worker, WorkerHeard::What::kCalled);
  ServeAtOnce(event, NewsFor(*coordinator_, worker.worker), respond);
}

void SimCoordinator::Report(const std::string& bytes, const Respond& respond) {
  absl::Status event;
  const auto request = TakeAs<v1::ReportRequest>(bytes, event);
  if (event.ok() && request.result().has_test_accuracy()) {
    Show(AccuracyTaken{request.result().test_accuracy()});
  }
  Note(event, FromWire(request.identity()), WorkerHeard::What::kCalled);
  ServeAtOnce(event, v1::ReportReply(), respond);
}

void SimCoordinator::Follow(const std::string& bytes, const Respond& respond) {
  const auto request = Parsed<v1::FollowRequest>(bytes);
  const absl::Status event = coordinator_->OnReader(FromWire(request), queue_.now()).status();
  v1::FollowReply reply;
  Inform(*coordinator_, scenario_.run, request, reply);
  ServeAtOnce(event, reply, respond);
}

void SimCoordinator::Leave(const std::string& bytes, const Respond& respond) {
  absl::Status event;
  const auto request = TakeAs<v1::LeaveRequest>(bytes, event);
  Note(event, FromWire(request.identity()), WorkerHeard::What::kLeft);
  ServeAtOnce(event, v1::LeaveReply(), respond);
}

}  // namespace slipstream

// The methods of CoordinatorService: each decodes, asks the coordinator, encodes.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/utf8.h"
#include "common/process/version.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "server/control_plane/coordinator_messages.h"
#include "server/control_plane/coordinator_service.h"
#include "server/control_plane/coordinator_wire.h"
#include "server/listen/caller.h"
#include "server/status/aggregator_figures.h"
#include "server/status/worker_figures.h"

namespace slipstream {
namespace {

// The most bytes of an explanation in a message: it quotes what a stranger may have sent, and is
// kept, logged and sent back in a header.
constexpr size_t kExplanationBytesMax = 1024;

}  // namespace

CoordinatorService::Event CoordinatorService::Introduced(std::string peer, uint32_t protocol,
                                                         Event event) {
  return
      [peer = std::move(peer), protocol, event = std::move(event)](absl::Time now, Caller& caller) {
        absl::Status understood = CheckProtocol(protocol, peer);
        if (understood.ok()) return event(now, caller);
        caller.IsGuest();
        caller.Audit("refused", std::string(understood.message()));
        return understood;
      };
}

absl::Status CoordinatorService::CheckSettings(const v1::SyncServerRequest& request) const {
  if (request.settings() == options_.settings) return absl::OkStatus();
  const std::string difference = options_.settings_difference(request.settings());
  if (difference.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("the settings of shard " + std::to_string(request.shard()) +
                                    "'s server differ from the coordinator's: " +
                                    std::string(CutUtf8(difference, kExplanationBytesMax)));
}

absl::Status CoordinatorService::TakeServerReport(const v1::SyncServerRequest& request,
                                                  absl::Time now) {
  absl::Status recorded = coordinator_.OnServer(FromWire(request), now);
  if (!recorded.ok()) return recorded;
  v1::ShardStatus& status = shards_[request.shard()];
  status = request.status();
  status.set_shard(request.shard());
  status.set_address(request.address());
  skew_.Note(ShardId{request.shard()}, Version{status.version()}, now);
  return absl::OkStatus();
}

absl::Status CoordinatorService::TakeAggregatorReport(const v1::SyncServerRequest& request,
                                                      absl::Time now) {
  const absl::StatusOr<Aggregators::Arrival> arrival =
      coordinator_.OnAggregator(AggregatorReportOf(request), now);
  if (!arrival.ok()) return arrival.status();
  if (*arrival != Aggregators::Arrival::kLate) {
    aggregators_[{request.aggregator().group(), request.shard()}] = FiguresOf(request.aggregator());
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* CoordinatorService::SyncServer(grpc::CallbackServerContext* context,
                                                         const v1::SyncServerRequest* request,
                                                         v1::SyncServerReply* reply) {
  const absl::Status settings = CheckSettings(*request);
  const bool is_aggregator = request->has_aggregator();
  const auto event = [this, &settings, is_aggregator, request](
                         absl::Time now, Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (settings.ok()) {
      caller.Took(request->ByteSizeLong());
      return is_aggregator ? TakeAggregatorReport(*request, now) : TakeServerReport(*request, now);
    }
    if (is_aggregator) {
      coordinator_.NoteRefusal(AggregatorReportOf(*request), settings);
    } else {
      coordinator_.NoteRefusal(FromWire(*request), settings);
    }
    return absl::Status(settings);
  };
  const ShardId shard{request->shard()};
  const auto question = [this, request, reply](bool is_last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return AnswerTo(coordinator_, *request, is_last, *reply);
  };
  const ClusterSpec& cluster = options_.spec.cluster;
  const ShardId claimed{is_aggregator
                            ? cluster.AggregatorNumber(request->aggregator().group(), Value(shard))
                            : Value(shard)};
  const std::string peer =
      fmt::format("the {} of shard {}", is_aggregator ? "aggregator" : "server", request->shard());
  return ServeOrPark(context, claimed, Introduced(peer, request->protocol(), event),
                     request->wait_ms(), question);
}

grpc::ServerUnaryReactor* CoordinatorService::Register(grpc::CallbackServerContext* context,
                                                       const v1::RegisterRequest* request,
                                                       v1::RegisterReply* reply) {
  ClaimedMember claimed;
  if (request->has_worker()) claimed = WorkerId{request->worker()};
  const auto event = [=, this](absl::Time now,
                               Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Applicant applicant = {
        .host = request->host(), .process = request->process(), .instance = request->instance()};
    applicant.worker = caller.CertifiedWorker();
    if (request->has_worker()) applicant.worker = WorkerId{request->worker()};
    const absl::StatusOr<Identity> identity = coordinator_.OnRegister(applicant, now);
    if (!identity.ok()) {
      // The worker may have to wait for servers, or until another worker leaves, and asks again.
      caller.IsGuest();
      const bool may_pass =
          absl::IsUnavailable(identity.status()) || absl::IsResourceExhausted(identity.status());
      if (!may_pass) caller.Audit("refused", std::string(identity.status().message()));
      return identity.status();
    }
    caller.NoteMember(identity->worker);
    caller.Audit("joined", fmt::format("worker {} incarnation {}", Value(identity->worker),
                                       Value(identity->incarnation)));
    heartbeats_.erase(identity->worker);
    acts_.erase(identity->worker);
    reply->set_settings(options_.settings);
    Welcome(coordinator_, *identity, options_.spec.cluster.lease, *reply);
    return absl::OkStatus();
  };
  return Serve(context, claimed, Introduced("the worker", request->protocol(), event));
}

grpc::ServerUnaryReactor* CoordinatorService::PrepareModel(grpc::CallbackServerContext* context,
                                                           const v1::PrepareModelRequest* request,
                                                           v1::PrepareModelReply* reply) {
  const auto event = [&](absl::Time now, Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    absl::Status taken = Take(coordinator_, *request, now);
    // A proposal that makes no sense counts as bytes that nobody asked for.
    if (!absl::IsInvalidArgument(taken)) caller.Took(request->ByteSizeLong());
    return taken;
  };
  const auto question = [this, request, reply](bool is_last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return AnswerTo(coordinator_, *request, is_last, *reply);
  };
  return ServeOrPark(context, WorkerId{request->identity().worker()}, event, request->wait_ms(),
                     question);
}

grpc::ServerUnaryReactor* CoordinatorService::FinishInitialization(
    grpc::CallbackServerContext* context, const v1::FinishInitializationRequest* request,
    v1::FinishInitializationReply*) {
  const Identity worker = FromWire(request->identity());
  const auto event = [&](absl::Time now, Caller&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Take(coordinator_, *request, now);
  };
  return Serve(context, worker.worker, event);
}

grpc::ServerUnaryReactor* CoordinatorService::Meet(grpc::CallbackServerContext* context,
                                                   const v1::MeetRequest* request,
                                                   v1::MeetReply* reply) {
  const auto event = [&](absl::Time now, Caller&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return Take(coordinator_, *request, now);
  };
  const auto question = [this, request, reply](bool is_last) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return AnswerTo(coordinator_, *request, is_last, *reply);
  };
  return ServeOrPark(context, WorkerId{request->identity().worker()}, event, request->wait_ms(),
                     question);
}

absl::Status CoordinatorService::TakeHeartbeat(const v1::HeartbeatRequest& request, absl::Time now,
                                               v1::HeartbeatReply& reply) {
  const Identity worker = FromWire(request.identity());
  absl::StatusOr<v1::HeartbeatRequest> figures =
      FiguresOf(request, options_.spec.cluster.servers.size());
  if (!figures.ok()) return figures.status();
  if (absl::Status taken = Take(coordinator_, request, now); !taken.ok()) return taken;
  Act& act = acts_[worker.worker];
  const bool gets_on = request.examples() != act.examples ||
                       request.evaluation() != act.evaluation ||
                       request.measured_examples() != act.measured;
  if (gets_on) act.last = now;
  act.examples = request.examples();
  act.evaluation = request.evaluation();
  act.measured = request.measured_examples();
  heartbeats_[worker.worker] = *std::move(figures);
  reply = NewsFor(coordinator_, worker.worker);
  return absl::OkStatus();
}

grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::HeartbeatReply>* CoordinatorService::Heartbeat(
    grpc::CallbackServerContext* context) {
  using Stream = QuestionStream<v1::HeartbeatRequest, v1::HeartbeatReply>;
  const auto ask = [this](Stream& stream) {
    const WorkerId worker = FromWire(stream.request().identity()).worker;
    const auto event = [&](absl::Time now, Caller&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const absl::Status taken = TakeHeartbeat(stream.request(), now, stream.reply());
      if (taken.ok()) stream.IsOf(worker);
      return taken;
    };
    const auto question = [&stream](bool) {
      if (!stream.request().wants_answer()) stream.OmitRepetition();
      return absl::OkStatus();
    };
    AnswerOrPark(&stream, worker, event, 0, question);
  };
  return Stream::Start(context, {streams_, options_.connections, heartbeat_calls_}, ask,
                       [this](Stream& stream) { Cancel(&stream); });
}

grpc::ServerBidiReactor<v1::GetWorkRequest, v1::GetWorkReply>* CoordinatorService::GetWork(
    grpc::CallbackServerContext* context) {
  using Stream = QuestionStream<v1::GetWorkRequest, v1::GetWorkReply>;
  const auto ask = [this](Stream& stream) {
    const v1::GetWorkRequest& request = stream.request();
    const Identity worker = FromWire(request.identity());
    const auto event = [&](absl::Time now, Caller&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      const absl::Status taken = Take(coordinator_, request, now);
      if (taken.ok()) stream.IsOf(worker.worker);
      if (taken.ok()) acts_[worker.worker].waits_for_work = true;
      return taken;
    };
    const auto question = [this, worker, &stream](bool is_last)
                              ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> std::optional<absl::Status> {
      std::optional<absl::Status> answer =
          AnswerTo(coordinator_, stream.request(), is_last, stream.reply());
      if (answer.has_value() && answer->ok()) {
        acts_[worker.worker].last = options_.now();
        acts_[worker.worker].waits_for_work = false;
      }
      return answer;
    };
    AnswerOrPark(&stream, worker.worker, event, request.wait_ms(), question);
  };
  return Stream::Start(context, {streams_, options_.connections, work_calls_}, ask,
                       [this](Stream& stream) { Cancel(&stream); });
}

grpc::ServerUnaryReactor* CoordinatorService::Report(grpc::CallbackServerContext* context,
                                                     const v1::ReportRequest* request,
                                                     v1::ReportReply*) {
  const Identity worker = FromWire(request->identity());
  const auto event = [&](absl::Time now, Caller&) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::deque<Evaluation>& results = coordinator_.evaluations().results();
    const uint64_t before = results.empty() ? 0 : results.back().number;
    absl::Status taken = Take(coordinator_, *request, now);
    if (!results.empty() && results.back().number > before) {
      NoteEvaluation(worker.worker, results.back());
    }
    return taken;
  };
  return Serve(context, worker.worker, event);
}

void CoordinatorService::NoteEvaluation(WorkerId worker, const Evaluation& result) {
  std::vector<LogField> fields = {{"worker", Value(worker)}, {"epoch", result.epoch}};
  if (result.test_accuracy.has_value()) fields.emplace_back("test_accuracy", *result.test_accuracy);
  fields.emplace_back("test_loss", result.test_loss);
  fields.emplace_back("final", result.is_final);
  coordinator_.AddNote({EventKind::kEvaluation, false, LogLine("evaluation done", fields)});
}

grpc::ServerUnaryReactor* CoordinatorService::Leave(grpc::CallbackServerContext* context,
                                                    const v1::LeaveRequest* request,
                                                    v1::LeaveReply*) {
  const Identity worker = FromWire(request->identity());
  const auto event = [&](absl::Time now, Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::Status left = Take(coordinator_, *request, now);
    if (left.ok()) {
      const char* const how = request->ends_run() ? "ends the run" : "goes";
      caller.Audit("left",
                   fmt::format("worker {} {} {}", Value(worker.worker), how,
                               request->failure().empty() ? "as it should"
                                                          : "because " + request->failure()));
    }
    return left;
  };
  return Serve(context, worker.worker, event);
}

grpc::ServerUnaryReactor* CoordinatorService::EndTraining(grpc::CallbackServerContext* context,
                                                          const v1::EndTrainingRequest*,
                                                          v1::EndTrainingReply*) {
  const auto event = [this](absl::Time now, Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    caller.IsGuest();
    const absl::Status ended = coordinator_.OnEndTraining(EndReason::kInterrupted, now);
    if (ended.ok()) caller.Audit("ended training", "the weights that there are become the final");
    return ended;
  };
  return Serve(context, {}, event);
}

grpc::ServerUnaryReactor* CoordinatorService::ChangeRun(grpc::CallbackServerContext* context,
                                                        const v1::ChangeRunRequest* request,
                                                        v1::ChangeRunReply* reply) {
  const std::vector<std::string> changes(request->settings().begin(), request->settings().end());
  const auto event = [&](absl::Time now, Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    caller.IsGuest();
    RunSpec present = settings_;
    present.policies_before.clear();
    present.consistency = coordinator_.present().consistency;
    const absl::StatusOr<RunChange> change = options_.read_change(present, changes);
    if (!change.ok()) {
      const std::string reason(change.status().message());
      return absl::Status(change.status().code(),
                          std::string(CutUtf8(reason, kExplanationBytesMax)));
    }
    const absl::StatusOr<Coordinator::ChangeEffect> effect =
        coordinator_.OnChange(*change, now, caller.Who());
    if (!effect.ok()) return effect.status();
    settings_.optimizer = change->settings.optimizer;
    settings_.worker = change->settings.worker;
    if (effect->after_epoch.has_value()) reply->set_after_epoch(*effect->after_epoch);
    caller.Audit("changed the run", fmt::format("{}", fmt::join(changes, " ")));
    return absl::OkStatus();
  };
  return Serve(context, {}, Introduced("psctl", request->protocol(), event));
}

v1::ShardSaveStatus CoordinatorService::DescribeSave(ShardId shard,
                                                     const SaveProgress::Shard& progress) {
  v1::ShardSaveStatus save;
  const v1::ShardStatus& status = shards_[Value(shard)];
  const absl::Time last_heard = coordinator_.servers().servers()[Value(shard)]->last_heard;
  save.set_has_saved(progress.has_saved);
  if (status.has_checkpoint()) *save.mutable_checkpoint() = status.checkpoint();
  if (progress.has_saved) return save;
  if (options_.now() - last_heard > MissingMembers::kServerSilenceMax) {
    save.set_reason("its server is silent");
  } else if (progress.is_away) {
    save.set_reason("its server has come back, and has yet to go on where it was");
  } else if (!status.checkpoint_failure().empty()) {
    save.set_reason(status.checkpoint_failure());
  } else {
    save.set_reason("it has not written it yet");
  }
  return save;
}

grpc::ServerUnaryReactor* CoordinatorService::SaveCheckpoint(
    grpc::CallbackServerContext* context, const v1::SaveCheckpointRequest* request,
    v1::SaveCheckpointReply* reply) {
  const auto event = [&](absl::Time now, Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    caller.IsGuest();
    const absl::StatusOr<uint64_t> order = coordinator_.OnSaveCheckpoint(request->order(), now);
    if (!order.ok()) return order.status();
    reply->set_order(*order);
    if (request->order() == 0) caller.Audit("ordered a checkpoint", "all shards save one");
    news_.AwaitCheckpoint();
    return absl::OkStatus();
  };
  const auto question = [this, reply](bool is_last)
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> std::optional<absl::Status> {
    const absl::StatusOr<SaveProgress> progress = coordinator_.AskSave(reply->order());
    if (!progress.ok()) return progress.status();
    if (!progress->is_complete && !is_last) return std::nullopt;
    reply->set_is_complete(progress->is_complete);
    for (size_t i = 0; i < progress->shards.size(); ++i) {
      const ShardId shard{static_cast<uint32_t>(i)};
      *reply->add_shards() = DescribeSave(shard, progress->shards[i]);
    }
    return absl::OkStatus();
  };
  return ServeOrPark(context, {}, Introduced("psctl", request->protocol(), event),
                     request->wait_ms(), question);
}

grpc::ServerUnaryReactor* CoordinatorService::Follow(grpc::CallbackServerContext* context,
                                                     const v1::FollowRequest* request,
                                                     v1::FollowReply* reply) {
  const auto event = [&](absl::Time now, Caller& caller) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    caller.IsGuest();
    ReaderReport report = FromWire(*request);
    report.address = caller.Address();
    const absl::StatusOr<uint64_t> number = coordinator_.OnReader(report, now);
    if (!number.ok()) return number.status();
    reply->set_reader(*number);
    reply->set_run(options_.run);
    Inform(coordinator_, options_.spec, *request, *reply);
    return absl::OkStatus();
  };
  return Serve(context, {}, Introduced("the reader", request->protocol(), event));
}

grpc::ServerUnaryReactor* CoordinatorService::GetStatus(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer*,
                                                        grpc::ByteBuffer* reply) {
  Caller(options_.connections, context->c_call()).IsGuest();
  *reply = EncodedStatus();
  grpc::ServerUnaryReactor* call = context->DefaultReactor();
  call->Finish(grpc::Status::OK);
  return call;
}

grpc::ServerWriteReactor<v1::RunStatus>* CoordinatorService::WatchStatus(
    grpc::CallbackServerContext* context, const v1::WatchStatusRequest* request) {
  return watchers_.Watch(*context, *request, options_.now(),
                         std::make_unique<Caller>(options_.connections, context->c_call()));
}

}  // namespace slipstream

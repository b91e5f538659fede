#include "server/server_process.h"

#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <system_error>
#include <utility>
#include <variant>

#include "common/config/run_change_reader.h"
#include "common/config/run_config.h"
#include "common/config/run_text.h"
#include "common/files/whole_file.h"
#include "common/local/local_socket.h"
#include "common/log/log.h"
#include "common/memory/heap_trim.h"
#include "common/process/exit_code.h"
#include "common/process/steady_time.h"
#include "common/process/version.h"
#include "common/rpc/secure_credentials.h"
#include "common/rpc/transport_options.h"
#include "common/settings/shards.h"
#include "proto/shard.grpc.pb.h"
#include "server/aggregator/shard_uplinks.h"
#include "server/data_plane/run_start.h"
#include "server/storage/checkpoint_store.h"

namespace slipstream {
namespace {

// How soon the end of the run or a signal is noticed.
constexpr absl::Duration kPollInterval = absl::Milliseconds(50);

// How often the heap is looked at.
constexpr absl::Duration kHeapInterval = absl::Seconds(1);

// How long a server whose run is over waits for those who scrape it to see that.
constexpr absl::Duration kLastScrapeTime = absl::Seconds(15);

// How often the credential files are looked at, and how often warnings about them are repeated.
constexpr absl::Duration kCredentialsInterval = absl::Seconds(10);
constexpr absl::Duration kWarningInterval = absl::Hours(1);

uint64_t RandomNumber() {
  std::random_device device;
  // 0 stands for none.
  return (uint64_t{device()} << 32 | device()) | 1;
}

std::string SettingsDifference(const RunSpec& ours, const std::string& theirs) {
  const ConfigResult parsed = ParseRunConfig(theirs, "settings");
  if (const auto* wrong = std::get_if<std::vector<Diagnostic>>(&parsed)) {
    return "they cannot be read: " + ToString(*wrong);
  }
  return FirstDifference(std::get<RunSpec>(parsed), ours).value_or("");
}

absl::StatusOr<std::optional<PushLog>> OpenPushLog(const std::string& folder, ShardId shard) {
  if (folder.empty()) return std::optional<PushLog>();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::DataLossError("cannot make " + folder + ": " + error.message());
  absl::StatusOr<PushLog> log =
      PushLog::Create(folder + "/push-log-" + std::to_string(Value(shard)) + ".csv");
  if (!log.ok()) return log.status();
  return std::optional<PushLog>(*std::move(log));
}

/// Ends the process at once: whatever it said from now on, it might not know after a restart. A
/// second thread that comes here waits for the first one.
void EndForLostLog(const absl::Status& lost) {
  static std::once_flag once;
  std::call_once(once, [&lost] {
    LogError(absl::IsFailedPrecondition(lost)
                 ? "the state of this shard is in another format, so the server ends"
                 : "the log of this shard cannot be kept, so the server ends",
             {{"reason", lost.message()}});
    // A log that cannot be redone is the same for the next process.
    const bool may_start_again = absl::IsUnavailable(lost);
    std::_Exit(static_cast<int>(may_start_again ? ExitCode::kLogNotWritten : ExitCode::kIo));
  });
}

/// A server has a certificate of its own, and shows no token.
CredentialFiles ClientFiles(CredentialFiles files) {
  files.token = "";
  return files;
}

/// Tells the server of shard 0 that the connection is that of the server with this number.
void Greet(const std::shared_ptr<grpc::Channel>& channel, uint32_t number, uint64_t run) {
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(300));
  v1::GetTransportsRequest request;
  request.mutable_identity()->set_run(run);
  request.set_server(number);
  request.set_protocol(kProtocol);
  v1::GetTransportsReply reply;
  // If this fails, so does the next call, which says why.
  (void)v1::Shard::NewStub(channel)->GetTransports(&context, request, &reply);
}

}  // namespace

ServerProcess::~ServerProcess() { Shutdown(); }

absl::Status ServerProcess::Listen() {
  auto connections = Connections::Make({.now = SteadyNow});
  if (!connections.ok()) return connections.status();
  connections_ = *std::move(connections);
  const std::string local_socket = NewLocalName();
  if (absl::Status made = MakeServices(local_socket); !made.ok()) return made;
  if (options_.run.http.listen != HttpSpec::kNone) {
    auto http =
        HttpService::Listen(options_.run.http, options_.listen.public_host, options_.credentials);
    if (!http.ok()) return http.status();
    http_ = *std::move(http);
  }
  auto tcp = TcpListener::Listen(options_.listen.host, options_.listen.port);
  if (!tcp.ok()) return WithRemedy(tcp.status());
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  ApplyTransportOptions(builder);
  connection_memory_.GiveTo(builder);
  (*tcp)->GiveTo(builder, Credentials());
  if (shard_ != nullptr) builder.RegisterService(&shard_->data_plane());
  if (aggregator_ != nullptr) builder.RegisterService(&aggregator_->data_plane());
  if (coordinator_ != nullptr) builder.RegisterService(coordinator_.get());
  operation_ = std::make_unique<OperationService>(connections_.get());
  builder.RegisterService(operation_.get());
  unknown_methods_ = std::make_unique<UnknownMethods>(connections_.get());
  builder.RegisterCallbackGenericService(unknown_methods_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC does not start its server");
  tcp_ = *std::move(tcp);
  ListenToThisMachine(local_socket);
  return tcp_->Start(connections_.get());
}

std::shared_ptr<grpc::ServerCredentials> ServerProcess::Credentials() {
  const CredentialFiles& files = options_.credentials;
  if (!files.is_encrypted()) return grpc::InsecureServerCredentials();
  access_ = std::make_shared<Access>(options_.run.name, files.token, connections_->audit());
  return MakeServerCredentials(files, access_);
}

absl::Status ServerProcess::AnswerHttp() {
  if (http_ == nullptr) return absl::OkStatus();
  HttpPages::Options pages = {.run_name = options_.run.name,
                              .facts = [this] { return Facts(); },
                              .coordinator = CoordinatorAddress(),
                              .access = access_.get(),
                              .now = SteadyNow};
  if (coordinator_ != nullptr) pages.status = [this] { return coordinator_->Status(); };
  return http_->Start(std::move(pages));
}

ServerFacts ServerProcess::Facts() {
  ServerSync::Known known = sync_->known();
  ServerFacts facts = {.run = known.run,
                       .phase = known.phase,
                       .failure = std::move(known.failure),
                       .lost_because = std::move(known.lost_because),
                       .is_draining = is_ending_ || operation_->is_asked_to_drain()};
  if (known.report != nullptr && known.report->has_status()) {
    facts.shard = {known.report, &known.report->status()};
  }
  if (known.report != nullptr && known.report->has_aggregator()) {
    facts.aggregator = {known.report, &known.report->aggregator()};
  }
  const int64_t ends = certificate_ends_;
  if (ends != std::numeric_limits<int64_t>::max()) {
    facts.counts.certificate_ends = absl::FromUnixSeconds(ends);
  }
  facts.counts.refusals = connections_->audit().refusals();
  facts.counts.closed = connections_->counts().closed;
  return facts;
}

void ServerProcess::LookAtCredentials(absl::Time now) {
  const CredentialHolder holder = {CertifiedRole::kServer, options_.number()};
  const absl::StatusOr<OwnCredentials> own = CheckCredentials(options_.credentials, holder, now);
  const std::string wrong(own.status().message());
  if (wrong != wrong_with_credentials_) {
    if (!wrong.empty()) LogError("new connections fail", {{"reason", wrong}});
    if (wrong.empty()) LogInfo("the credentials are right again");
    wrong_with_credentials_ = wrong;
  }
  if (own.ok()) certificate_ends_ = absl::ToUnixSeconds(own->ends);
  if (!own.ok() || now < next_warning_) return;
  next_warning_ = now + kWarningInterval;
  WarnAbout(*own, options_.credentials, now);
}

absl::Status ServerProcess::WithRemedy(const absl::Status& cannot_listen) const {
  const char* const remedy =
      absl::IsInvalidArgument(cannot_listen)
          ? "correct it, or listen elsewhere with --listen HOST:PORT"
          : "see that the name is known and that no other process has the "
            "port, or listen elsewhere with --listen HOST:PORT, where port 0 "
            "is any that is free";
  if (options_.group.has_value()) {
    return absl::Status(cannot_listen.code(),
                        fmt::format("{}: {}", std::string(cannot_listen.message()), remedy));
  }
  const uint32_t shard = Value(options_.shard);
  return absl::Status(
      cannot_listen.code(),
      fmt::format("{}; cluster.servers[{}] is {}, unless --listen says otherwise: {}",
                  std::string(cannot_listen.message()), shard, options_.run.cluster.servers[shard],
                  remedy));
}

void ServerProcess::ListenToThisMachine(const std::string& local_socket) {
  absl::StatusOr<std::unique_ptr<LocalListener>> local =
      LocalListener::Start(local_socket, *server_);
  // Without the local socket, workers use TCP.
  if (!local.ok()) LogWarning("no local socket", {{"reason", local.status().message()}});
  if (local.ok()) local_ = *std::move(local);
}

absl::Status ServerProcess::MakeServices(const std::string& local_socket) {
  if (options_.group.has_value()) {
    MakeAggregator(local_socket);
    return absl::OkStatus();
  }
  if (absl::Status made = MakeShard(local_socket); !made.ok()) return made;
  return Value(options_.shard) == 0 ? MakeCoordinator() : absl::OkStatus();
}

void ServerProcess::OnModel(uint64_t values) {
  connection_memory_.ReserveFor(values, options_.run);
  const uint64_t of_all = ShardPushBytes(values, options_.run);
  connections_->ExpectMessages(of_all / options_.run.cluster.workers * 2);
}

void ServerProcess::MakeAggregator(const std::string& local_socket) {
  AggregatorService::Options aggregator;
  aggregator.run = options_.run;
  aggregator.shard = options_.shard;
  aggregator.group = *options_.group;
  aggregator.now = SteadyNow;
  // An aggregator takes about as much as its shard: pushes, sums of pushes, and weights.
  aggregator.on_model = [this](uint64_t values) { OnModel(values); };
  auto uplinks = std::make_unique<ShardUplinks>(ShardUplinks::Options{
      .run = options_.run,
      .shard = options_.shard,
      .group = *options_.group,
      .credentials = MakeChannelCredentials(ClientFiles(options_.credentials))});
  aggregator_ = std::make_unique<AggregatorService>(aggregator, std::move(uplinks), local_socket,
                                                    connections_.get());
}

absl::Status ServerProcess::MakeShard(const std::string& local_socket) {
  absl::StatusOr<std::optional<PushLog>> log =
      OpenPushLog(options_.run.log.push_log, options_.shard);
  if (!log.ok()) return log.status();
  ShardService::Options shard;
  shard.shard = options_.shard;
  shard.address = options_.listen.ToString();
  shard.run = options_.run;
  shard.now = SteadyNow;
  shard.on_model = [this](uint64_t values) { OnModel(values); };
  if (options_.run.durability.saves()) {
    shard.open_store = [this](uint64_t run, bool has_begun) {
      return CheckpointStore::Open(disk_, options_.run.durability.directory, run, options_.shard,
                                   has_begun);
    };
  }
  const StartSpec& start = options_.run.training.start_from;
  if (!start.checkpoint.empty()) shard.read_start = ReaderOf(disk_, start);
  shard.on_lost_log = EndForLostLog;
  shard_ = std::make_unique<ShardService>(shard, *std::move(log), local_socket, connections_.get());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<SavedCoordinator>> ServerProcess::FindSavedRun() const {
  const RunSpec& run = options_.run;
  if (!run.durability.saves()) return std::nullopt;
  absl::StatusOr<std::optional<SavedCoordinator>> saved = ReadJournal(run.durability.directory);
  if (!saved.ok() || !saved->has_value()) return saved;
  const absl::StatusOr<SavedRun> peeked = PeekAtRun((*saved)->state);
  if (!peeked.ok()) return peeked.status();
  const bool stays_finished = run.durability.once && peeked->phase == Phase::kFinished;
  if (peeked->is_over && !stays_finished) {
    LogWarning(
        "the run that this directory holds is over; beginning a new one",
        {{"directory", run.durability.directory}, {"over", fmt::format("{:016x}", peeked->run)}});
    return std::nullopt;
  }
  const std::string difference = SettingsDifference(run, (*saved)->settings);
  if (difference.empty()) {
    const absl::Status restored =
        Coordinator(peeked->run, run, SteadyNow()).Restore((*saved)->state, SteadyNow());
    return restored.ok() ? saved : restored;
  }
  return absl::InvalidArgumentError(
      fmt::format("{} holds run {:016x}, which {} and has other settings: {}; go on with its "
                  "settings, or choose another durability.directory for a new run",
                  run.durability.directory, peeked->run,
                  stays_finished ? "stays finished (durability.once)" : "is not over", difference));
}

absl::Status ServerProcess::MakeCoordinator() {
  CoordinatorService::Options coordinator;
  coordinator.spec = options_.run;
  coordinator.run = RandomNumber();
  if (options_.run.durability.saves()) {
    const std::string& directory = options_.run.durability.directory;
    if (absl::Status made = disk_.MakeDirectories(directory); !made.ok()) return made;
    absl::StatusOr<std::unique_ptr<DiskLock>> lock = disk_.Lock(directory);
    if (!lock.ok()) return lock.status();
    coordinator_lock_ = *std::move(lock);
    RemoveAbandonedFiles(directory);
  }
  absl::StatusOr<std::optional<SavedCoordinator>> saved = FindSavedRun();
  if (!saved.ok()) return saved.status();
  if (saved->has_value()) {
    const ConfigResult settings = ParseRunConfig((*saved)->settings_now, "the saved settings");
    const RunSpec* const now = std::get_if<RunSpec>(&settings);
    if (now == nullptr) return absl::DataLossError("the saved settings cannot be read");
    coordinator.kept = {(*saved)->state, *now};
    const SavedRun peeked = *PeekAtRun((*saved)->state);
    coordinator.run = peeked.run;
    LogWarning(peeked.is_over
                   ? "the run has finished and stays so (durability.once); for a new one choose "
                     "another durability.directory"
                   : "going on with a run that an earlier process began",
               {{"run", fmt::format("{:016x}", coordinator.run)}});
  }
  if (options_.run.durability.saves()) {
    coordinator.keep = [this](const std::string& state, const RunSpec& settings) {
      return WriteJournal(
          options_.run.durability.directory,
          {.settings = ToYaml(options_.run), .settings_now = ToYaml(settings), .state = state});
    };
  }
  coordinator.settings = ToYaml(options_.run);
  coordinator.settings_difference = [this](const std::string& theirs) {
    return SettingsDifference(options_.run, theirs);
  };
  coordinator.read_change = ReadRunChange;
  coordinator.now = SteadyNow;
  coordinator.accepts_rollback = options_.accepts_rollback;
  coordinator.connections = connections_.get();
  coordinator_ = std::make_unique<CoordinatorService>(std::move(coordinator));
  return absl::OkStatus();
}

absl::Status ServerProcess::Serve(const StopSignal& stop) {
  ServerSync::Options options;
  options.talk = {.shard = options_.shard,
                  .address = address(),
                  .settings = ToYaml(options_.run),
                  .instance = RandomNumber(),
                  .accepts_rollback = options_.accepts_rollback};
  options.coordinator = CoordinatorAddress();
  options.takeover = options_.run.cluster.lease;
  options.unreachable_max = options_.run.cluster.start_timeout;
  const std::shared_ptr<grpc::Channel> channel = grpc::CreateCustomChannel(
      CoordinatorAddress(), MakeChannelCredentials(ClientFiles(options_.credentials)),
      ClientArguments());
  options.greet = [channel, number = options_.number()](uint64_t run) {
    Greet(channel, number, run);
  };
  OrdersSink& sink = shard_ != nullptr ? static_cast<OrdersSink&>(*shard_)
                                       : static_cast<OrdersSink&>(*aggregator_);
  if (http_ != nullptr) options.talk.http_address = http_->url();
  options.talk.memory_limit = ReadMemoryBytes().limit;
  sync_ = std::make_unique<ServerSync>(std::move(options), v1::Coordinator::NewStub(channel), sink);
  if (absl::Status answers = AnswerHttp(); !answers.ok()) return answers;

  HeapTrim heap;
  absl::Time next_look = SteadyNow();
  absl::Time next_look_at_credentials = SteadyNow();
  next_warning_ = absl::Now() + kWarningInterval;
  std::optional<bool> was_ready;
  while (!sync_->result().has_value()) {
    // Supervisors that watch its health learn of a failed run, although the server may stay.
    if (const bool is_ready = ReadinessOf(Facts()).is_ready; is_ready != was_ready) {
      was_ready = is_ready;  // Whoever watches is sent each.
      server_->GetHealthCheckService()->SetServingStatus(is_ready);
    }
    if (coordinator_ != nullptr) {
      if (absl::Status own = coordinator_->Rollback(); !own.ok()) return own;
    }
    if (stop.WaitFor(kPollInterval)) return absl::CancelledError("stopped by a signal");
    if (operation_->is_asked_to_drain()) {
      LogInfo("drains, as an operator has asked for it");
      return absl::OkStatus();
    }
    if (SteadyNow() < next_look) continue;
    next_look = SteadyNow() + kHeapInterval;
    if (SteadyNow() >= next_look_at_credentials) {
      next_look_at_credentials = SteadyNow() + kCredentialsInterval;
      LookAtCredentials(absl::Now());
    }
    if (const size_t idle = heap.Look(); idle > 0) {
      LogInfo("gave back to the system", {{"bytes", idle}});
    }
  }
  absl::Status result = *sync_->result();
  const bool is_over = result.ok() || result.code() == absl::StatusCode::kAborted;
  if (coordinator_ != nullptr) result.Update(coordinator_->WeightsSaved());
  while (coordinator_ != nullptr && is_over && !coordinator_->ServersMayStop()) {
    if (stop.WaitFor(kPollInterval) || operation_->is_asked_to_drain()) break;
  }
  const absl::Time last_scrape = SteadyNow() + kLastScrapeTime;
  while (http_ != nullptr && is_over && http_->AwaitsLastScrape() && SteadyNow() < last_scrape) {
    if (stop.WaitFor(kPollInterval) || operation_->is_asked_to_drain()) break;
  }
  return result;
}

absl::Status ServerProcess::Finish() {
  is_ending_ = true;
  if (server_ != nullptr) server_->GetHealthCheckService()->SetServingStatus(false);
  if (sync_ != nullptr) sync_->Stop();
  const absl::Status saved = shard_ == nullptr ? absl::OkStatus() : shard_->Drain(kDrainTime);
  if (!saved.ok()) LogError(std::string(saved.message()));
  if (operation_ != nullptr) operation_->OnDrained(Drained());
  Shutdown();
  const std::string lost = shard_ == nullptr ? std::string() : shard_->FinishPushLog();
  if (!saved.ok() || lost.empty()) return saved;
  return absl::DataLossError(lost);
}

v1::DrainReply ServerProcess::Drained() {
  v1::DrainReply drained;
  if (shard_ == nullptr) return drained;
  const v1::ShardStatus status = shard_->ShardReport();
  drained.set_version(status.version());
  if (status.has_checkpoint()) *drained.mutable_checkpoint() = status.checkpoint();
  drained.set_checkpoint_failure(status.checkpoint_failure());
  if (status.has_log()) *drained.mutable_log() = status.log();
  return drained;
}

std::string ServerProcess::CoordinatorAddress() const {
  return coordinator_ != nullptr ? address() : options_.coordinator;
}

void ServerProcess::Shutdown() {
  if (sync_ != nullptr) sync_->Stop();
  if (coordinator_ != nullptr) coordinator_->Stop();
  http_.reset();
  local_.reset();
  tcp_.reset();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(kShutdownTime));
  }
  sync_.reset();
  server_.reset();
}

}  // namespace slipstream

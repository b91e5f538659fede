#include "worker/client/joining.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <random>

#include "common/log/log.h"
#include "common/process/version.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "worker/core/call_tries.h"
#include "worker/member/work_progress.h"

namespace slipstream {

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

absl::StatusOr<JoinedRun> JoinRun(CoordinatorClient& coordinator, std::optional<WorkerId> worker) {
  v1::RegisterRequest request;
  if (worker) request.set_worker(Value(*worker));
  request.set_protocol(kProtocol);
  request.set_host(HostName());
  request.set_process(static_cast<uint32_t>(getpid()));
  std::random_device device;
  request.set_instance((uint64_t{device()} << 32 | device()) | 1);
  const absl::StatusOr<v1::RegisterReply> reply = coordinator.Register(request);
  if (!reply.ok()) return reply.status();
  const bool has_tree = !reply->aggregators().empty();
  if (!reply->has_identity() || reply->servers().empty() || reply->lease_ms() == 0 ||
      (has_tree && reply->aggregators_size() != reply->servers_size())) {
    return absl::InternalError("the coordinator's answer to a registration is incomplete");
  }
  const absl::Duration lease = absl::Milliseconds(reply->lease_ms());
  coordinator.PersistFor(MembersPatience(lease));
  return JoinedRun{FromWire(reply->identity()),
                   reply->settings(),
                   {reply->servers().begin(), reply->servers().end()},
                   {reply->aggregators().begin(), reply->aggregators().end()},
                   lease};
}

ShardOptions ShardOptionsOf(const JoinedRun& joined, const ServerAddresses& addresses,
                            const RunSpec& settings, const ShardMap& map,
                            const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  ShardOptions options = ShardOptions::For(settings, map);
  options.retry.give_up_after = MembersPatience(joined.lease);
  options.channel.identity = joined.identity;
  options.channel.credentials = credentials;
  options.channel.addresses = &addresses;
  options.seed = settings.seed + Value(joined.identity.incarnation);
  return options;
}

absl::Status LeaveRun(const CoordinatorClient& coordinator, const Identity& identity,
                      const std::string& failure, bool ends_run,
                      const std::vector<UnitProgress>& progress) {
  return coordinator.Leave(LeaveRequestOf(identity, failure, ends_run, progress));
}

absl::Status WhyFenced(const CoordinatorClient& coordinator, const Identity& identity,
                       const absl::Status& fenced) {
  const absl::StatusOr<v1::RunStatus> status = coordinator.GetStatus();
  if (!status.ok() || status->run() != identity.run) return fenced;
  for (const v1::WorkerStatus& worker : status->workers()) {
    const bool is_newer = worker.incarnation() > Value(identity.incarnation);
    if (worker.worker() != Value(identity.worker) || !is_newer) continue;
    return absl::InvalidArgumentError(fmt::format(
        "another process has registered as worker {}, on {} (incarnation {}), so this one, on {} "
        "(incarnation {}), is out: give each worker an id of its own, or none with --worker ({})",
        Value(identity.worker), worker.host(), worker.incarnation(), HostName(),
        Value(identity.incarnation), std::string(fenced.message())));
  }
  return fenced;
}

absl::Status PrepareModel(const CoordinatorClient& coordinator, const Identity& identity,
                          const ModelProposal& proposal, const ModelSteps& steps) {
  ModelAsking asking(identity, proposal);
  std::string waiting_for;
  while (!steps.cancelled()) {
    const absl::StatusOr<v1::PrepareModelReply> reply = coordinator.PrepareModel(asking.Request());
    if (!reply.ok()) return reply.status();
    absl::StatusOr<std::optional<PreparedModel>> model = asking.OnReply(*reply);
    if (!model.ok()) return model.status();
    if (!model->has_value()) {
      if (reply->message() != waiting_for) LogInfo("waiting", {{"for", reply->message()}});
      waiting_for = reply->message();
      continue;
    }
    PreparedModel& prepared = **model;
    if (absl::Status taken = steps.take_map(std::move(prepared.map)); !taken.ok()) return taken;
    if (prepared.grant == 0) return absl::OkStatus();
    absl::Status status = steps.send(prepared.grant);
    if (status.ok()) status = coordinator.FinishInitialization(asking.Finish());
    if (absl::Status over = asking.OnInitialized(status); !over.ok()) return over;
    waiting_for.clear();
    if (!status.ok()) {
      LogInfo("asks for the initialisation again", {{"reason", status.message()}});
    }
  }
  return absl::CancelledError("stopped");
}

absl::Status LeaveContact(const CoordinatorClient& coordinator, const Identity& identity,
                          const std::string& contact) {
  v1::MeetRequest request;
  *request.mutable_identity() = ToWire(identity);
  request.set_contact(contact);
  request.set_worker(Value(identity.worker));
  return coordinator.Meet(request).status();
}

absl::StatusOr<std::string> AwaitContact(const CoordinatorClient& coordinator,
                                         const Identity& identity, WorkerId other,
                                         const std::function<bool()>& cancelled) {
  v1::MeetRequest request;
  *request.mutable_identity() = ToWire(identity);
  request.set_worker(Value(other));
  request.set_wait_ms(ModelAsking::kWaitMilliseconds);
  while (!cancelled()) {
    const absl::StatusOr<v1::MeetReply> reply = coordinator.Meet(request);
    if (!reply.ok()) return reply.status();
    if (!reply->contact().empty()) return reply->contact();
  }
  return absl::CancelledError("stopped");
}

}  // namespace slipstream

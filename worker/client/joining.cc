#include "worker/client/joining.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <random>

#include "common/log/log.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "common/wire/wire_text.h"
#include "worker/client/work_progress.h"
#include "worker/core/call_tries.h"

namespace slipstream {
namespace {

// Kept short, because a waiting call delays a program that is told to stop.
constexpr uint32_t kWaitMilliseconds = 500;

/// The most bytes of a failure's message that the coordinator is sent.
constexpr size_t kReasonBytesMax = 1000;

}  // namespace

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

absl::StatusOr<JoinedRun> JoinRun(CoordinatorClient& coordinator, std::optional<WorkerId> worker) {
  v1::RegisterRequest request;
  if (worker) request.set_worker(Value(*worker));
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
  v1::LeaveRequest request;
  *request.mutable_identity() = ToWire(identity);
  if (!failure.empty()) request.set_failure(WireText(failure, kReasonBytesMax));
  *request.mutable_progress() = ToWire(progress);
  request.set_ends_run(ends_run);
  return coordinator.Leave(request);
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

absl::StatusOr<PreparedModel> AwaitModel(const CoordinatorClient& coordinator,
                                         const Identity& identity, const ModelProposal& proposal,
                                         const std::function<bool()>& cancelled) {
  v1::PrepareModelRequest request;
  *request.mutable_identity() = ToWire(identity);
  *request.mutable_layout() = ToWire(proposal.layout);
  request.set_examples(proposal.examples);
  request.set_data_fingerprint(proposal.data_fingerprint);
  for (const auto& [name, digest] : proposal.frozen) {
    v1::FrozenTensor& frozen = *request.add_frozen();
    frozen.set_name(name);
    frozen.set_digest(digest);
  }
  if (proposal.can_save.has_value()) request.set_can_save(*proposal.can_save);
  if (!proposal.saving_failure.empty()) {
    request.set_saving_failure(WireText(proposal.saving_failure, kReasonBytesMax));
  }
  request.set_wait_ms(kWaitMilliseconds);
  std::string waiting_for;
  while (!cancelled()) {
    const absl::StatusOr<v1::PrepareModelReply> reply = coordinator.PrepareModel(request);
    if (!reply.ok()) return reply.status();
    request.clear_layout();  // Known from now on.
    request.clear_frozen();
    request.clear_can_save();
    request.clear_saving_failure();
    if (reply->state() == v1::PrepareModelReply::WAIT) {
      if (reply->message() != waiting_for) LogInfo("waiting", {{"for", reply->message()}});
      waiting_for = reply->message();
      continue;
    }
    absl::StatusOr<ShardMap> map = FromWire(reply->shard_map(), proposal.layout);
    if (!map.ok()) {
      return absl::InternalError("coordinator: " + std::string(map.status().message()));
    }
    const bool is_granted = reply->state() == v1::PrepareModelReply::GRANTED;
    return PreparedModel{*std::move(map), is_granted ? reply->grant() : 0};
  }
  return absl::CancelledError("stopped");
}

absl::Status PrepareModel(const CoordinatorClient& coordinator, const Identity& identity,
                          const ModelProposal& proposal, const ModelSteps& steps) {
  for (uint64_t withdrawn = 0;;) {
    absl::StatusOr<PreparedModel> model =
        AwaitModel(coordinator, identity, proposal, steps.cancelled);
    if (!model.ok()) return model.status();
    if (absl::Status taken = steps.take_map(std::move(model->map)); !taken.ok()) return taken;
    if (model->grant == 0) return absl::OkStatus();
    absl::Status status = steps.send(model->grant);
    if (status.ok()) {
      v1::FinishInitializationRequest request;
      *request.mutable_identity() = ToWire(identity);
      request.set_grant(model->grant);
      status = coordinator.FinishInitialization(request);
    }
    // The coordinator knows best: it refuses a worker that is fenced, and gives others a new grant.
    const bool may_ask_again = absl::IsFailedPrecondition(status) && model->grant != withdrawn;
    if (!status.ok() && !may_ask_again) return status;
    if (may_ask_again) {
      LogInfo("asks for the initialisation again", {{"reason", status.message()}});
      withdrawn = model->grant;
    }
  }
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
  request.set_wait_ms(kWaitMilliseconds);
  while (!cancelled()) {
    const absl::StatusOr<v1::MeetReply> reply = coordinator.Meet(request);
    if (!reply.ok()) return reply.status();
    if (!reply->contact().empty()) return reply->contact();
  }
  return absl::CancelledError("stopped");
}

}  // namespace slipstream

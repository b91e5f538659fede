// One worker of a real run without data and compute. It joins, proposes a model of one tensor, and
// exchanges gradients for weights on command, through the client library that ps_worker uses.
//
//   exchange_driver --coordinator HOST:PORT --worker ID --bytes N [--operation exchange|push|pull]
//                   [--checks-values]
//
// Commands are those of exchange_commands.h. An exchange is over when all weights lie in the
// worker's own array. A push alone is one of a run whose workers fetch nothing (publish); a pull
// alone reads the newest weights, as a program does between its steps.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/config/run_config.h"
#include "common/local/shared_arena.h"
#include "common/log/logging.h"
#include "common/memory/aligned_buffer.h"
#include "common/process/guarded_main.h"
#include "common/rpc/library_settings.h"
#include "common/rpc/secure_credentials.h"
#include "common/security/credential_files.h"
#include "common/security/security_flags.h"
#include "tests/benchmarks/exchange_commands.h"
#include "worker/client/coordinator_client.h"
#include "worker/client/joining.h"
#include "worker/client/parameter_client.h"
#include "worker/client/server_addresses.h"
#include "worker/client/shard_options.h"
#include "worker/client/weights_reader.h"
#include "worker/core/heartbeat_times.h"
#include "worker/training/heartbeat.h"
#include "worker/training/interruption.h"
#include "worker/training/nonfinite_steps.h"
#include "worker/training/step_figures.h"
#include "worker/training/unit_fetcher.h"

namespace slipstream::benchmarks {
namespace {

// The size of the training set: no benchmark reaches its end.
constexpr uint64_t kExamples = uint64_t{1} << 40;

struct Options {
  std::string coordinator;
  uint32_t worker = 0;
  uint64_t bytes = 0;
  std::string operation = "exchange";
  bool checks_values = false;
  SecuritySpec security;
};

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const Options& options) {
  const CredentialHolder holder = {CertifiedRole::kWorker, options.worker};
  return MakeChannelCredentials(FilesFor(options.security, holder));
}

/// Is a member of the run from Join on, until its process ends.
///
/// Not thread-safe: one owner.
class Driver {
 public:
  explicit Driver(const Options& options)
      : options_(options),
        weights_(options.bytes / sizeof(float)),
        coordinator_(options.coordinator, {.credentials = CredentialsOf(options)}, MakeSleeper()) {}

  ~Driver() {
    if (heartbeat_) heartbeat_->Close();
    interruption_.Stop();  // Ends waits for the coordinator.
  }

  absl::Status Join() {
    absl::StatusOr<JoinedRun> joined = JoinRun(coordinator_, WorkerId{options_.worker});
    if (!joined.ok()) return joined.status();
    joined_ = *std::move(joined);
    absl::StatusOr<RunSpec> settings =
        ToStatusOr(ParseRunConfig(joined_.settings, "the run's settings"));
    if (!settings.ok()) return settings.status();
    settings_ = *std::move(settings);
    const Identity& identity = joined_.identity;
    const absl::Duration interval = HeartbeatInterval(joined_.lease, settings_.cluster.workers);
    heartbeat_ = std::make_unique<Heartbeat>(coordinator_, identity, interval, figures_, addresses_,
                                             interruption_);
    units_ = std::make_unique<UnitFetcher>(coordinator_, identity, settings_.StageOf(0).consistency,
                                           1, figures_, interruption_);
    return PrepareModel();
  }

  absl::Status Pull() { return reader_->Read(weights_.span()).status(); }

  /// Without the weights where the run's workers fetch none.
  absl::Status Exchange() {
    absl::StatusOr<BatchRanges> batches = NextBatches();
    if (!batches.ok()) return batches.status();
    if (options_.checks_values) {
      const std::optional<std::string> nonfinite = NonfinitePart(0.5f, values_);
      if (nonfinite.has_value()) return absl::InternalError(*nonfinite);
    }
    client_->BeginPush(0, {.batches = *batches, .examples = 1, .step = ++steps_});
    if (absl::Status status = client_->FinishPush(0, {.loss = 0.5f}); !status.ok()) return status;
    // Advance would return when every shard has answered, while the weights are still arriving.
    absl::Status status = client_->Drain();
    client_->TakeTransfers();
    return status;
  }

 private:
  Sleeper MakeSleeper() {
    return [this](absl::Duration wait) { return interruption_.Sleep(wait); };
  }

  absl::Status PrepareModel() {
    ModelProposal proposal{.layout = {}, .examples = kExamples, .data_fingerprint = 1};
    absl::Status status = proposal.layout.Append("weight", {weights_.size()});
    if (!status.ok()) return status;
    const auto stopped = [this] { return interruption_.interrupted(); };
    const auto take_map = [&](const ShardMap& map) -> absl::Status {
      if (client_ != nullptr) return absl::OkStatus();
      if (absl::Status made = MakeGradient(); !made.ok()) return made;
      client_ = NewClient(proposal.layout, map);
      return absl::OkStatus();
    };
    const auto send = [this](uint64_t grant) {
      return client_->Initialize(grant, weights_.span());
    };
    return slipstream::PrepareModel(coordinator_, joined_.identity, proposal,
                                    {stopped, take_map, send});
  }

  /// Allocates the gradient in the same kind of memory as a worker's plan.
  absl::Status MakeGradient() {
    gradient_ = AlignedBuffer<float>(settings_.wire.may_share_memory() ? 0 : weights_.size());
    values_ = gradient_.span();
    if (settings_.wire.may_share_memory()) {
      absl::StatusOr<SharedArena> arena = SharedArena::Make(1, weights_.size());
      if (!arena.ok()) return arena.status();
      arena_ = *std::move(arena);
      values_ = arena_->part(0);
    }
    std::ranges::fill(values_, 1.0f);
    return absl::OkStatus();
  }

  std::unique_ptr<ParameterClient> NewClient(const TensorLayout& layout, const ShardMap& map) {
    ShardOptions shards = ShardOptions::For(settings_, map);
    shards.channel.identity = joined_.identity;
    shards.channel.credentials = coordinator_.options().credentials;
    reader_ = std::make_unique<WeightsReader>(joined_.identity, joined_.servers, map, shards,
                                              MakeSleeper(), interruption_.cancel_switch());
    if (arena_.has_value()) shards.arena = &*arena_;
    return std::make_unique<ParameterClient>(
        ParameterClient::Options::For(settings_, joined_, layout, map, shards),
        std::vector<ParameterClient::Slot>{{weights_.span(), values_}}, MakeSleeper(),
        interruption_.cancel_switch());
  }

  absl::StatusOr<BatchRanges> NextBatches() {
    for (;;) {
      const absl::StatusOr<ParameterClient::Step> step = client_->Advance();
      if (!step.ok()) return step.status();
      if (const auto* compute = std::get_if<ParameterClient::Compute>(&*step)) {
        return compute->batches;
      }
      if (std::holds_alternative<ParameterClient::Finished>(*step)) {
        return absl::OutOfRangeError("the run is over");
      }
      units_->Ask(client_->wish());
      const UnitFetcher::Result unit = units_->Await();
      if (!unit.ok()) return unit.status();
      if (!std::holds_alternative<WorkUnit>(*unit)) return absl::OutOfRangeError("no work is left");
      if (absl::Status heeded = client_->OnNews(*unit); !heeded.ok()) return heeded;
    }
  }

  // Constant after construction.
  const Options options_;

  AlignedBuffer<float> weights_;
  AlignedBuffer<float> gradient_;     // Used unless arena_ is.
  std::optional<SharedArena> arena_;  // Shared memory, from which shards of this machine take it.
  std::span<float> values_;           // The gradient, in either of the two.
  Interruption interruption_;
  CoordinatorClient coordinator_;
  JoinedRun joined_;
  RunSpec settings_;
  StepFigures figures_;
  ServerAddresses addresses_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::unique_ptr<UnitFetcher> units_;
  std::unique_ptr<ParameterClient> client_;
  std::unique_ptr<WeightsReader> reader_;
  uint64_t steps_ = 0;
};

int Run(const Options& options) {
  StartLogging({"worker", options.worker}, LogSpec::Level::kWarning, LogSpec::Format::kText);
  Driver driver(options);
  const absl::Status status = driver.Join();
  const bool pulls = options.operation == "pull";
  const auto operation = [&] { return pulls ? driver.Pull() : driver.Exchange(); };
  if (status.ok()) return ServeCommands(operation);
  std::cout << "failed " << status.message() << std::endl;
  return 1;
}

int Main(int argc, char** argv) {
  TuneForTransfers();
  CLI::App app("One worker that exchanges gradients for weights on command.", "exchange_driver");
  Options options;
  app.add_option("--coordinator", options.coordinator, "host:port of the first server")->required();
  app.add_option("--worker", options.worker, "Id of this worker")->required();
  AddSecurityFlags(app, options.security);
  app.add_option("--bytes", options.bytes, "Of the model")
      ->required()
      ->check(CLI::Range(sizeof(float), size_t{1} << 40));
  app.add_option("--operation", options.operation, "What is done on command")
      ->check(CLI::IsMember({"exchange", "push", "pull"}));
  app.add_flag("--checks-values", options.checks_values,
               "Before each push, check that the gradient is finite, as ps_worker does");
  CLI11_PARSE(app, argc, argv);
  return Run(options);
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) {
  return slipstream::GuardedMain("exchange_driver",
                                 [&] { return slipstream::benchmarks::Main(argc, argv); });
}

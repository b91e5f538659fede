#include "worker/training/worker_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "common/config/run_config.h"
#include "common/log/log.h"
#include "common/log/logging.h"
#include "common/model_file/model_file.h"
#include "common/model_file/weights_digest.h"
#include "common/policy/staleness_guard.h"
#include "common/process/exit_code.h"
#include "common/process/process_limits.h"
#include "common/process/steady_time.h"
#include "common/settings/shards.h"
#include "common/settings/worker_memory.h"
#include "common/wire/shard_wire.h"
#include "worker/compute/open_device.h"
#include "worker/core/heartbeat_times.h"
#include "worker/data/load_data.h"
#include "worker/data/mapped_file.h"
#include "worker/data/model_fit.h"
#include "worker/model/initial_values.h"
#include "worker/training/evaluator.h"
#include "worker/training/first_weights.h"
#include "worker/training/local_steps.h"
#include "worker/training/model_keeper.h"
#include "worker/training/model_shapes.h"
#include "worker/training/training_loop.h"
#include "worker/training/unit_fetcher.h"
#include "worker/training/work_source.h"

namespace slipstream {
namespace {

/// Returns exceptions as a status. A library may throw if no thread or memory is available, and
/// others that wait for this worker have to learn of it as of any failure.
template <typename Work>
absl::Status Caught(Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("exception: ") + error.what());
  }
}

/// Logs why there is nothing to do: a worker that joins a finished run has no part left, and
/// succeeds.
absl::Status NothingToDo(const absl::Status& finished) {
  LogInfo(std::string(finished.message()));
  return absl::OkStatus();
}

/// How often reading a long file is logged.
constexpr absl::Duration kReadingTold = absl::Seconds(5);

/// Returns the failure behind `status` if an interruption caused it; else `status`.
absl::Status Cause(const absl::Status& status, const Interruption& interruption) {
  return absl::IsCancelled(status) ? interruption.failure() : status;
}

}  // namespace

WorkerProgram::WorkerProgram(const Options& options, Interruption& interruption)
    : options_(options),
      interruption_(interruption),
      coordinator_(options.coordinator, {.credentials = options.credentials}, MakeSleeper()) {}

Sleeper WorkerProgram::MakeSleeper() {
  return [this](absl::Duration wait) { return interruption_.Sleep(wait); };
}

absl::Status WorkerProgram::Run() {
  absl::Status status = Join();
  if (absl::IsOutOfRange(status)) return NothingToDo(status);
  if (!status.ok()) return Cause(status, interruption_);
  status = ReadSettings();
  if (status.ok()) {
    StartLogging({"worker", Value(joined_.identity.worker)},
                 options_.log_level.value_or(settings_.log.level),
                 options_.log_format.value_or(settings_.log.format));
    LogInfo("joined", {{"run", fmt::format("{:016x}", joined_.identity.run)},
                       {"incarnation", Value(joined_.identity.incarnation)},
                       {"name", settings_.name}});
    const absl::Duration interval = HeartbeatInterval(joined_.lease, settings_.cluster.workers);
    Heartbeat heartbeat(coordinator_, joined_.identity, interval, figures_, servers_, interruption_,
                        settings_.worker.steps_by_speed);
    status = Caught([&] { return TakePart(heartbeat); });
    // Ends the other threads too: they have no work without this one.
    if (!status.ok()) interruption_.Fail(status);
    heartbeat.Close();
  }
  status = Cause(status, interruption_);
  if (absl::IsOutOfRange(status)) status = NothingToDo(status);
  Leave(status);
  // A worker without a fixed id gets another one when it is restarted.
  const bool may_be_replaced = options_.worker.has_value() && absl::IsFailedPrecondition(status);
  return may_be_replaced ? WhyFenced(coordinator_, joined_.identity, status) : status;
}

absl::Status WorkerProgram::Join() {
  absl::StatusOr<JoinedRun> joined = JoinRun(coordinator_, options_.worker);
  if (!joined.ok()) return joined.status();
  joined_ = *std::move(joined);
  servers_.Note(joined_.servers);
  return absl::OkStatus();
}

absl::Status WorkerProgram::ReadSettings() {
  Overrides overrides;
  if (options_.data_path) overrides.set.push_back("data.path=" + *options_.data_path);
  if (options_.device) overrides.set.push_back("compute.device=" + *options_.device);
  if (options_.precision) overrides.set.push_back("compute.precision=" + *options_.precision);
  if (options_.init) overrides.set.push_back("model.init=" + *options_.init);
  if (options_.state_dir) {
    overrides.set.push_back("worker.save_state.directory=" + *options_.state_dir);
  }
  if (options_.overwrites) overrides.set.emplace_back("model.overwrite=true");
  if (options_.save_dir) overrides.set.push_back("model.save_dir=" + *options_.save_dir);
  absl::StatusOr<RunSpec> settings =
      ToStatusOr(ParseRunConfig(joined_.settings, "the run's settings", overrides));
  if (!settings.ok()) return settings.status();
  settings_ = *std::move(settings);
  if (settings_.data.from == SuppliedBy::kWorkers) {
    return absl::InvalidArgumentError(
        "the run's workers bring their own examples (data.from: workers in run.yaml), and "
        "ps_worker "
        "has none; start programs that use the Python package slipstream, or another client of the "
        "protocol");
  }
  return absl::OkStatus();
}

ShardOptions WorkerProgram::OptionsOfShards() const {
  return ShardOptionsOf(joined_, servers_, settings_, map_, options_.credentials);
}

absl::Status WorkerProgram::TakePart(Heartbeat& heartbeat) {
  if (absl::Status status = PrepareCompute(); !status.ok()) return status;
  if (absl::Status status = PrepareModel(); !status.ok()) return status;
  if (absl::Status status = ConnectToOthers(); !status.ok()) return status;
  TakeUpState();
  return Train(heartbeat);
}

absl::Status WorkerProgram::PrepareCompute() {
  absl::StatusOr<NetShapes> net = ShapesOf(settings_.model);
  if (!net.ok()) return net.status();
  net_ = *std::move(net);
  if (absl::Status status = PrepareData(); !status.ok()) return status;
  return PreparePlans();
}

absl::Status WorkerProgram::PreparePlans() {
  DeviceChoice choice = settings_.compute.device;
  // Several threads compute on the processor, also where auto would find a GPU.
  if (settings_.worker.threads > 1) choice.kind = DeviceChoice::Kind::kCpu;
  absl::StatusOr<std::unique_ptr<Device>> device =
      OpenDevice(choice, joined_.identity.worker, device_claim_);
  if (!device.ok()) return device.status();
  device_ = *std::move(device);
  if (absl::Status fits = CheckModelMemory(IsProcessor(choice)); !fits.ok()) return fits;
  absl::StatusOr<TrainingPlans> plans =
      TrainingPlans::Prepare(*device_, settings_, net_.layout.parameters());
  if (!plans.ok()) return plans.status();
  plans_ = *std::move(plans);
  local_steps_ = LocalSteps::Make(settings_, net_.layout, data_.train.count(), plans_.slot(0),
                                  plans_.threads());
  LogInfo("prepared",
          {{"parameters", net_.layout.parameters()}, {"examples", data_.train.count()}});
  return absl::OkStatus();
}

absl::Status WorkerProgram::CheckModelMemory(bool on_processor) const {
  const WorkerMemory needed = WorkerMemoryNeeded(net_, settings_, on_processor);
  // The system counts the pages of mapped data as free.
  const uint64_t free = AvailableMemoryBytes();
  const uint64_t available = free - std::min(free, MappedBytes());
  if (needed.bytes() <= available) return absl::OkStatus();
  return absl::ResourceExhaustedError(fmt::format(
      "no memory for the model: this worker needs about {} ({} to train, {} to measure the weights "
      "on the test set), and {} are free beside the data; use a machine with more, fewer workers "
      "on this one, a smaller training.batch_size, or a smaller model",
      BytesText(needed.bytes()), BytesText(needed.training), BytesText(needed.evaluation),
      BytesText(available)));
}

absl::Status WorkerProgram::PrepareData() {
  absl::Time told = SteadyNow();
  const auto tell = [&](const std::string& path, double share) {
    if (SteadyNow() - told >= kReadingTold) {
      told = SteadyNow();
      LogInfo("reading data", {{"path", path}, {"done", share}});
    }
    return !interruption_.interrupted();
  };
  absl::StatusOr<DataSplits> data = LoadData(settings_.data, settings_.model, settings_.seed, tell);
  if (!data.ok()) return data.status();
  data_ = *std::move(data);
  return FitToModel(net_, data_);
}

std::unique_ptr<ParameterClient> WorkerProgram::NewClient() {
  std::vector<ParameterClient::Slot> slots;
  for (size_t i = 0; i < plans_.slots(); ++i) {
    ModelArenas& arenas = plans_.slot(i);
    slots.push_back({arenas.weights_host(), arenas.gradients_host(), &arenas});
  }
  if (settings_.worker.lands_apart()) {
    slots.front() = {local_steps_->landing(), local_steps_->outbox(), nullptr};
  }
  ShardOptions shards = OptionsOfShards();
  shards.arena = plans_.shared_arena();
  return std::make_unique<ParameterClient>(
      ParameterClient::Options::For(settings_, joined_, net_.layout, map_, shards),
      std::move(slots), MakeSleeper(), interruption_.cancel_switch());
}

absl::Status WorkerProgram::PrepareModel() {
  const auto stopped = [this] { return interruption_.interrupted(); };
  const std::optional<uint64_t> fingerprint = data_.train.Fingerprint(std::not_fn(stopped));
  if (!fingerprint.has_value()) return absl::CancelledError("stopped");
  ModelProposal proposal{net_.layout, data_.train.count(), *fingerprint};
  TrySaving(proposal);
  const auto take_map = [this](ShardMap map) -> absl::Status {
    if (map.shards() != joined_.servers.size()) {
      return absl::InternalError("the coordinator names other shards than servers");
    }
    map_ = std::move(map);
    if (!client_) client_ = NewClient();
    return absl::OkStatus();
  };
  const auto send = [this](uint64_t grant) -> absl::Status {
    LogInfo("initialising the model", {{"grant", grant}});
    const std::span<float> weights = plans_.slot(0).weights_host();
    if (absl::Status filled = FillFirstWeights(settings_, net_, weights); !filled.ok())
      return filled;
    return client_->Initialize(grant, weights);
  };
  return slipstream::PrepareModel(coordinator_, joined_.identity, proposal,
                                  {stopped, take_map, send});
}

void WorkerProgram::TrySaving(ModelProposal& proposal) {
  keeper_.emplace(
      joined_.identity.run,
      std::vector<std::string>{settings_.model_files.save_dir, options_.fallback_save_dir},
      settings_, net_.layout);
  proposal.can_save = false;
  if (!keeper_->keeps()) return;
  const absl::Status works = keeper_->Try();
  proposal.can_save = works.ok();
  proposal.saving_failure = std::string(works.message());
  if (!works.ok()) LogError("this worker cannot save weights", {{"reason", works.message()}});
}

absl::Status WorkerProgram::ConnectToOthers() {
  if (!settings_.workers_make_weights()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<Collective>> collective =
      ConnectWorkers(coordinator_, joined_, settings_, interruption_);
  if (!collective.ok()) return collective.status();
  others_ = std::make_unique<AllReduceClient>(
      AllReduceClient::Options{
          .run = settings_,
          .layout = net_.layout,
          .examples_per_epoch = data_.train.count(),
          .lease = joined_.lease,
          .sum = {.waits_for_trailer = GradientClip(settings_.optimizer).clips_norm()}},
      *std::move(collective), plans_.slot(0), *client_, interruption_);
  return absl::OkStatus();
}

void WorkerProgram::TakeUpState() {
  const WorkerSpec::SaveState& save_state = settings_.worker.save_state;
  if (!save_state.saves()) return;
  state_ = std::make_unique<StateKeeper>(
      StateKeeper::Options{.directory = save_state.directory,
                           .interval = save_state.interval,
                           .identity = joined_.identity,
                           .owner = OwnerOf(settings_, joined_.identity, map_)},
      *client_, local_steps_.get());
  state_->Restore();
}

absl::Status WorkerProgram::Train(Heartbeat& heartbeat) {
  if (settings_.model_files.save_every_epochs > 0 && !keeper_->keeps()) {
    LogWarning("model.save_every_epochs asks for weights to be saved, and model.save_dir is empty");
  }
  Evaluator evaluator({joined_.identity, settings_.model, joined_.servers, map_, OptionsOfShards(),
                       data_.train.count()},
                      data_.test, *device_, *keeper_, coordinator_, heartbeat, interruption_);
  // Ends the evaluator's wait for orders, also if the code below throws.
  const absl::Cleanup ends_orders = [&heartbeat] { heartbeat.Close(); };
  UnitFetcher units(coordinator_, joined_.identity, settings_.StageOf(0).consistency,
                    settings_.training.pipeline_depth, figures_, interruption_);
  const WorkerSlowdown slowdown = settings_.testing.SlowdownOf(joined_.identity.worker);
  if (!slowdown.is_none()) {
    LogWarning("slowed for a test (testing.workers)", {{"by", slowdown.ToText()}});
  }
  GradientClient& client = others_ != nullptr ? static_cast<GradientClient&>(*others_) : *client_;
  TrainingLoop loop({.batch_size = settings_.training.batch_size,
                     .local_steps = local_steps_.get(),
                     .servers = others_ != nullptr ? nullptr : client_.get(),
                     .threads = plans_.threads(),
                     .seed = settings_.seed,
                     .worker = joined_.identity.worker,
                     .clip = GradientClip(settings_.optimizer),
                     .push_delay_max = settings_.testing.push_delay_max,
                     .slowdown = slowdown,
                     .nonfinite_max = settings_.training.nonfinite_max,
                     .state = state_.get(),
                     .push_codec = settings_.wire.push_codec},
                    data_.train, plans_.plans(), client, units, heartbeat, figures_, interruption_);
  absl::Status status = loop.Run();
  if (absl::IsCancelled(status)) {
    // A lane may have failed while a step was computed. Report that failure: CANCELLED is only its
    // consequence.
    if (absl::Status failure = client.Drain(); !failure.ok()) status = failure;
    // Report pushes that were answered in the meantime, so that others do not compute them again.
    figures_.OnProgress(client.done().units);
  }
  if (status.ok()) {
    const StepFigures::Figures figures = figures_.Read(absl::Now());
    LogInfo("no work is left", {{"steps", figures.steps},
                                {"examples_per_second", std::round(figures.examples_per_second)},
                                {"compute_share", figures.compute_share},
                                {"communication_share", figures.communication_share},
                                {"communication_hidden", figures.communication_hidden}});
    status = heartbeat.AwaitEnd();
  }
  if (!status.ok()) interruption_.Fail(status);
  return status;
}

void WorkerProgram::Leave(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) return;  // Fenced: this incarnation has ended already.
  const StepFigures::Figures figures = figures_.Read(absl::Now());
  // If the weights give one worker no finite values, they give them to none.
  const bool ends_run =
      ExitCodeFor(status) == ExitCode::kDiverged ||
      (!status.ok() && figures.nonfinite.in_a_row >= settings_.training.nonfinite_max);
  const std::string failure = status.ok() ? "" : std::string(status.message());
  const absl::Status left =
      LeaveRun(coordinator_, joined_.identity, failure, ends_run, figures.progress);
  if (left.ok()) {
    LogInfo(interruption_.interrupted() ? "left the run early" : "left the run");
  } else {
    LogWarning("leaving was not heard", {{"reason", left.message()}});
  }
}

}  // namespace slipstream

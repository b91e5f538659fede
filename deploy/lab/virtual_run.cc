#include "deploy/lab/virtual_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/duration_text.h"
#include "deploy/lab/virtual_checks.h"
#include "server/control_plane/coordinator_messages.h"
#include "server/status/coordinator_facts.h"
#include "server/status/run_status.h"
#include "worker/training/evaluation_report.h"
#include "worker/training/first_weights.h"
#include "worker/training/model_shapes.h"

namespace slipstream {
namespace {

/// The number of the run. The machines of a virtual world have no other.
constexpr uint64_t kRun = 1;

/// How often servers report and workers send heartbeats that tell of progress.
constexpr absl::Duration kControlInterval = absl::Milliseconds(50);

/// So many of them without an update, a day, are a run that stands still.
constexpr uint64_t kControlsMax = uint64_t{24} * 3600 * 20;

/// After how many events Run asks whether to go on.
constexpr uint64_t kEventsAtOnce = 64;

}  // namespace

/// An evaluation under way.
struct VirtualRun::Measuring {
  Evaluations::Order order;
  WeightsReader::Reading reading;
  std::vector<float> weights;
  absl::StatusOr<TestMeasures> measures = TestMeasures();
  std::shared_ptr<ComputePool::Job> job;
};

absl::StatusOr<std::unique_ptr<VirtualRun>> VirtualRun::Make(Options options,
                                                             const DataSplits& data) {
  if (absl::Status fits = CheckVirtual(options.run); !fits.ok()) return fits;
  if (absl::Status fits = CheckWorld(options.world, options.run); !fits.ok()) return fits;
  options.run = WithoutRealWorld(options.run);
  options.run.cluster.start_timeout += LastArrival(options.world);
  const absl::StatusOr<NetShapes> shapes = ShapesOf(options.run.model);
  if (!shapes.ok()) return shapes.status();
  absl::StatusOr<ComputeLanes> lanes = MakeComputeLanes(options.run, data, options.threads);
  if (!lanes.ok()) return lanes.status();
  std::unique_ptr<VirtualRun> made(
      new VirtualRun(std::move(options), data, *shapes, *std::move(lanes)));
  if (absl::Status opened = made->MakeServers(); !opened.ok()) return opened;
  return made;
}

VirtualRun::VirtualRun(Options options, const DataSplits& data, NetShapes net,
                       std::vector<std::unique_ptr<ComputeLane>> lanes)
    : options_(std::move(options)),
      data_(data),
      net_(std::move(net)),
      initial_([this](std::span<float> weights) {
        return FillFirstWeights(options_.run, net_, weights);
      }),
      keeper_(kRun, {options_.save_dir}, options_.run, net_.layout),
      coordinator_(kRun, options_.run, queue_.now()),
      links_(options_.world.network, options_.run.cluster.workers,
             static_cast<uint32_t>(options_.run.cluster.servers.size()),
             options_.run.cluster.groups()),
      times_(options_.world, options_.run.cluster.workers, options_.run.seed),
      pool_(std::move(lanes)),
      lab_{.run = options_.run,
           .world = options_.world,
           .queue = queue_,
           .coordinator = coordinator_,
           .servers = servers_,
           .aggregator = [this](uint32_t group, ShardId shard) -> VirtualPeer& {
             return *aggregators_[group * servers_.size() + Value(shard)];
           },
           .links = links_,
           .pool = pool_,
           .times = times_,
           .layout = net_.layout,
           .examples = data.train.count(),
           .on_coordinator_called = [this] { OnCoordinatorCalled(); }} {}

VirtualRun::~VirtualRun() {
  if (measuring_ != nullptr) pool_.Drop(*measuring_->job);
}

absl::Status VirtualRun::MakeServers() {
  for (uint32_t i = 0; i < options_.run.cluster.servers.size(); ++i) {
    VirtualServer::Options server = {
        .shard = ShardId{i}, .run = options_.run, .update = options_.world.update};
    const std::string& directory = options_.run.log.push_log;
    if (!directory.empty()) {
      auto log = PushLog::Create(fmt::format("{}/push-log-{}.csv", directory, i));
      if (!log.ok()) return log.status();
      server.push_log = *std::move(log);
    }
    servers_.push_back(std::make_unique<VirtualServer>(std::move(server), queue_));
  }
  const auto on_failure = [this](const absl::Status& status) { failure_.Update(status); };
  for (uint32_t group = 0; group < options_.run.cluster.groups(); ++group) {
    for (uint32_t i = 0; i < servers_.size(); ++i) {
      aggregators_.push_back(
          std::make_unique<VirtualAggregator>(lab_, group, ShardId{i}, on_failure));
    }
  }
  return absl::OkStatus();
}

absl::Status VirtualRun::Run(const std::function<bool()>& goes_on) {
  ControlAgainAndAgain();
  for (uint32_t i = 0; i < options_.run.cluster.workers; ++i) {
    const VirtualWorkerSpec* own = options_.world.Find(WorkerId{i});
    const VirtualWorkerSpec spec = own != nullptr ? *own : VirtualWorkerSpec();
    queue_.After(spec.joins, [this, i] { StartWorker(WorkerId{i}); });
    if (spec.leaves != absl::InfiniteDuration()) {
      queue_.After(spec.leaves, [this, i] { workers_[WorkerId{i}]->Die(); });
    }
    if (spec.returns != absl::InfiniteDuration()) {
      queue_.After(spec.returns, [this, i] { StartWorker(WorkerId{i}); });
    }
  }
  while (coordinator_.phase() != Phase::kFinished && coordinator_.phase() != Phase::kFailed &&
         failure_.ok()) {
    if (queue_.steps() % kEventsAtOnce == 0 && !goes_on()) {
      failure_ = absl::CancelledError("stopped");
    } else {
      failure_.Update(CheckProgress());
      queue_.Step();
    }
  }
  FlushPushLogs();
  return failure_;
}

void VirtualRun::FlushPushLogs() {
  for (const auto& server : servers_) failure_.Update(server->FlushPushLog());
}

absl::Status VirtualRun::CheckProgress() {
  const uint64_t epochs = servers_.front()->machine().examples_applied() / lab_.examples;
  const Version version = servers_.front()->machine().decided();
  if (version != version_seen_) {
    version_seen_ = version;
    controls_since_ = 0;
  }
  // The consequences of the end of an epoch need not wait for the next report.
  if (epochs != epochs_synced_) {
    epochs_synced_ = epochs;
    queue_.At(queue_.now(), [this] { Control(); });
  }
  if (controls_since_ < kControlsMax) return absl::OkStatus();
  return absl::InternalError(fmt::format("no update for {} of virtual time, in phase {}",
                                         DurationText(kControlsMax * kControlInterval),
                                         Name(coordinator_.phase())));
}

void VirtualRun::StartWorker(WorkerId worker) {
  std::unique_ptr<VirtualWorker>& place = workers_[worker];
  if (place != nullptr) gone_.push_back(std::move(place));
  place = std::make_unique<VirtualWorker>(lab_, worker, ++workers_started_, initial_);
  place->Start();
}

bool VirtualRun::IsThere(WorkerId worker) const {
  const auto found = workers_.find(worker);
  return found != workers_.end() && found->second->is_there();
}

// The conversation with the coordinator.

void VirtualRun::ControlAgainAndAgain() {
  Control();
  queue_.After(kControlInterval, [this] { ControlAgainAndAgain(); });
}

void VirtualRun::Control() {
  ++controls_since_;
  SyncServers();
  coordinator_.Tick(queue_.now());
  for (const auto& [id, worker] : workers_) worker->Beat();
  EndEvaluation();
  BeginEvaluation();
  SyncServers();
  coordinator_.TakeNotes(queue_.now());
  FlushPushLogs();
  OnCoordinatorCalled();
}

void VirtualRun::SyncServers() {
  for (const auto& server : servers_) {
    server->OnCoordinatorAsked();
    // Fails if the run is over.
    if (!coordinator_.OnServer(server->Report(), queue_.now()).ok()) return;
    if (coordinator_.orders().number != server->orders_seen()) {
      server->OnOrders(coordinator_.orders());
    }
    server->OnCoordinatorAnswered();
  }
  for (const auto& aggregator : aggregators_) {
    if (!coordinator_.OnAggregator(aggregator->Report(), queue_.now()).ok()) return;
    if (coordinator_.orders().number != aggregator->orders_seen()) {
      aggregator->OnOrders(coordinator_.orders());
    }
  }
  OnCoordinatorCalled();
}

void VirtualRun::OnCoordinatorCalled() {
  if (is_settling_ || coordinator_.changes() == changes_seen_) return;
  is_settling_ = true;
  queue_.At(queue_.now(), [this] { Settle(); });
}

void VirtualRun::Settle() {
  is_settling_ = false;
  changes_seen_ = coordinator_.changes();
  for (const auto& [id, worker] : workers_) worker->OnCoordinatorChanged();
}

// Evaluations.

void VirtualRun::BeginEvaluation() {
  const std::optional<Evaluations::Order>& order = coordinator_.evaluations().open();
  if (!order.has_value() || measuring_ != nullptr || !IsThere(order->worker)) return;
  measuring_ = std::make_unique<Measuring>();
  Measuring& measuring = *measuring_;
  measuring.order = *order;
  measuring.weights.resize(net_.layout.parameters());
  measuring.reading.examples = std::numeric_limits<uint64_t>::max();
  const ShardMap& map = coordinator_.orders().model->shard_map;
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    const ShardMachine& machine = servers_[i]->machine();
    measuring.reading.versions.push_back(machine.published());
    measuring.reading.examples =
        std::min(measuring.reading.examples, machine.RecordOf(machine.published()).examples);
    std::ranges::copy(servers_[i]->weights()->values(),
                      measuring.weights.begin() + map.range(ShardId{i}).begin);
  }
  measuring.job = pool_.Start(queue_.now() + kControlInterval, [&measuring](ComputeLane& lane) {
    measuring.measures = lane.Measure(measuring.weights);
  });
}

void VirtualRun::EndEvaluation() {
  if (measuring_ == nullptr) return;
  pool_.Await(*measuring_->job);
  const std::unique_ptr<Measuring> done = std::move(measuring_);
  const auto worker = workers_.find(done->order.worker);
  if (!IsThere(done->order.worker)) return;  // Another one will measure.
  if (!done->measures.ok()) {
    failure_.Update(done->measures.status());
    return;
  }
  const v1::ReportRequest report =
      ReportOn({.order = {.number = done->order.number,
                          .epoch = done->order.epoch,
                          .is_final = done->order.is_final,
                          .saves = done->order.saves},
                .reading = done->reading,
                .measures = *done->measures,
                .test_examples = data_.test.count()},
               done->weights, worker->second->identity(), lab_.examples, keeper_);
  // It is refused if the order was withdrawn meanwhile.
  const absl::Status taken = Take(coordinator_, report, queue_.now());
  if (!absl::IsFailedPrecondition(taken)) failure_.Update(taken);
  OnCoordinatorCalled();
}

// Status.

v1::RunStatus VirtualRun::Status() const {
  StatusFacts facts = FactsOf(coordinator_, queue_.now());
  for (const auto& server : servers_) facts.shards.push_back(server->Describe());
  for (auto& [id, worker] : facts.workers) {
    const auto found = workers_.find(id);
    if (found != workers_.end()) worker.heartbeat = found->second->Describe();
  }
  return MergeStatus(options_.run, facts);
}

}  // namespace slipstream

#include "tests/simulation/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"

namespace slipstream {
namespace {

constexpr uint64_t kRun = 0x51;
constexpr uint64_t kWorldStream = 1;
constexpr uint64_t kNetworkStreams = 100;  // The first of the seed's streams, one per `luck`.

/// Once faults have stopped, a run ends within this time, or it never will.
constexpr absl::Duration kProgress = absl::Minutes(3);
constexpr uint64_t kEventsMax = 3'000'000;

/// The capacity of a disk that is never full.
constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

}  // namespace

SimCluster::SimCluster(const Scenario& scenario, const Options& options)
    : scenario_(scenario),
      trace_(queue_, options.trace),
      chance_(scenario.seed, kWorldStream),
      network_(scenario, queue_, kNetworkStreams + options.luck),
      gradients_(scenario),
      coordinator_(kRun, scenario, queue_, history_, trace_),
      restores_(options.restores),
      disks_(scenario.shards) {
  network_.Connect(*this, [this](Method method, const std::string& request, Respond respond) {
    coordinator_.OnCall(method, request, respond);
  });
  for (uint32_t shard = 0; shard < scenario.shards; ++shard) StartShard(ShardId{shard});
  for (uint32_t group = 0; group < scenario.run.cluster.groups(); ++group) {
    for (uint32_t shard = 0; shard < scenario.shards; ++shard) {
      StartAggregator(group, ShardId{shard});
    }
  }
  for (uint32_t worker = 0; worker < scenario.run.cluster.workers; ++worker) {
    queue_.After(chance_.Time(absl::ZeroDuration(), absl::Milliseconds(400)),
                 [this, worker] { StartWorker(WorkerId{worker}); });
  }
  for (const absl::Duration time : scenario.joins) {
    queue_.After(time, [this] { StartWorker(std::nullopt); });
  }
  for (const ReaderPlan& plan : scenario.readers) {
    const SimWorld world = {scenario_, queue_, network_, history_, trace_, gradients_};
    readers_.push_back(std::make_unique<SimReader>(world, readers_.size(), plan));
    readers_.back()->Start();
  }
  for (const WorkerFault& fault : scenario.faults.workers) {
    queue_.After(fault.at, [this, fault] { Befall(fault); });
  }
  for (const ServerFault& fault : scenario.faults.servers) {
    queue_.After(fault.at, [this, fault] { Befall(fault); });
  }
  for (const AggregatorFault& fault : scenario.faults.aggregators) {
    queue_.After(fault.at, [this, fault] { Befall(fault); });
  }
  queue_.After(scenario.faults.end, [this] { EndDiskFaults(); });
  // Begin only when all workers have been started once.
  queue_.After(std::max(scenario.faults.end, absl::Seconds(1)), [this] { KeepAlive(); });
}

void SimCluster::Run() {
  const absl::Time deadline = absl::UnixEpoch() + scenario_.faults.end + kProgress;
  while (!IsOver() && queue_.now() < deadline && queue_.steps() < kEventsMax) queue_.Step();
  history_.is_finished = IsOver() && coordinator_.core().phase() == Phase::kFinished;
  if (!history_.is_finished) history_.stuck = DescribeStuck();
  for (uint32_t shard = 0; shard < scenario_.shards; ++shard) {
    const SimShard* const process = FindShard(ShardId{shard});
    history_.ends.push_back(process == nullptr ? ShardEnd() : process->End());
    const ShardEnd& end = history_.ends.back();
    trace_.Line("shard {} ends with version {} of {} gradients, mean staleness {}", shard,
                Value(end.published), end.gradients, end.mean_staleness);
  }
}

bool SimCluster::IsOver() const {
  // Late repetitions may still be in flight; the shards have to tolerate them.
  const bool are_readers_gone =
      std::ranges::all_of(readers_, [](const auto& reader) { return reader->is_dead(); });
  return network_.is_quiet() && !AnyLive() && are_readers_gone && AllShardsMayExit();
}

bool SimCluster::AllShardsMayExit() const {
  for (uint32_t shard = 0; shard < scenario_.shards; ++shard) {
    const SimShard* const process = FindShard(ShardId{shard});
    if (process == nullptr || !process->may_exit()) return false;
  }
  return true;
}

void SimCluster::OnMessage(const StreamPtr& stream, const grpc::ByteBuffer& message) {
  if (!stream->group.has_value()) {
    SimShard* const shard = FindShard(stream->shard);
    if (shard != nullptr) return shard->OnMessage(stream, message);
  } else {
    SimAggregator* const aggregator = FindAggregator(*stream->group, stream->shard);
    if (aggregator != nullptr) return aggregator->OnMessage(stream, message);
  }
  network_.Finish(stream, absl::UnavailableError("nobody listens at the address"));
}

void SimCluster::OnCancel(const StreamPtr& stream) {
  if (!stream->group.has_value()) {
    SimShard* const shard = FindShard(stream->shard);
    if (shard != nullptr) shard->OnCancel(stream);
    return;
  }
  SimAggregator* const aggregator = FindAggregator(*stream->group, stream->shard);
  if (aggregator != nullptr) aggregator->OnCancel(stream);
}

void SimCluster::OnSent(const StreamPtr& stream) {
  if (stream->group.has_value()) return;
  SimShard* const shard = FindShard(stream->shard);
  if (shard != nullptr) shard->OnSent(stream);
}

// Server processes.

void SimCluster::StartShard(ShardId shard) {
  shards_.push_back(std::make_unique<SimShard>(shard, shards_.size(), scenario_, restores_,
                                               disks_[Value(shard)], queue_, network_, history_,
                                               trace_, [this, shard] { OnServerFailed(shard); }));
}

SimShard* SimCluster::FindShard(ShardId shard) const {
  for (const auto& process : shards_) {
    if (process->id() == shard && !process->is_dead()) return process.get();
  }
  return nullptr;
}

bool SimCluster::HasSaved(ShardId shard, const SavedVersion& saved) const {
  const SimShard* const process = FindShard(shard);
  if (process != nullptr) return process->HasSaved(saved);
  return std::ranges::count(disks_[Value(shard)].saved, saved) > 0;
}

bool SimCluster::CanLose(const SimShard& shard) const {
  // A simulated worker does not wait for another one that is granted initialisation in its place.
  if (coordinator_.phase_kept() < Phase::kTraining) return false;
  // With logs, training does not begin before all shards have a checkpoint.
  if (scenario_.run.durability.keeps_log()) return true;
  // Where shards are in step, all go on from one version.
  const bool is_in_step = scenario_.HasRounds(coordinator_.core().stage());
  for (const SavedVersion& saved : shard.saved()) {
    bool have_all = true;
    for (uint32_t other = 0; other < scenario_.shards; ++other) {
      have_all = have_all && HasSaved(ShardId{other}, saved);
    }
    if (have_all || !is_in_step) return true;
  }
  return false;
}

std::vector<SimShard*> SimCluster::HitBy(const ServerFault& fault) const {
  std::vector<SimShard*> hit;
  for (uint32_t shard = 0; shard < scenario_.shards; ++shard) {
    if (shard != fault.shard && !fault.hits_all) continue;
    if (SimShard* const process = FindShard(ShardId{shard})) hit.push_back(process);
  }
  return hit;
}

bool SimCluster::HasCome(const ServerFault& fault) const {
  const SimShard& first = *FindShard(ShardId{fault.shard});
  const bool coordinator_writes = fault.moment == ServerFault::Moment::kWriting &&
                                  fault.shard == 0 && coordinator_.is_writing();
  if (!first.IsAt(fault.moment) && !coordinator_writes) return false;
  // A disk that fails while a process begins to use it would be replaced.
  const bool records = fault.kind == ServerFault::Kind::kDiskCall;
  return std::ranges::all_of(HitBy(fault), [this, records](const SimShard* each) {
    return CanLose(*each) && (!records || each->is_recording());
  });
}

void SimCluster::Befall(const ServerFault& fault) {
  // The time until another look whether the moment for the fault has come.
  constexpr absl::Duration kLook = absl::Microseconds(500);
  const bool is_over = coordinator_.core().phase() >= Phase::kFinished;
  if (FindShard(ShardId{fault.shard}) == nullptr || is_over || !network_.IsFaulty()) return;
  if (!HasCome(fault)) {
    queue_.After(kLook, [this, fault] { Befall(fault); });
    return;
  }
  for (SimShard* const shard : HitBy(fault)) {
    SimulatedDisk& disk = disks_[Value(shard->id())].files;
    switch (fault.kind) {
      case ServerFault::Kind::kDiskCall:
        disk.FailCall(fault.calls + 1);
        break;
      case ServerFault::Kind::kDiskFull:
        disk.SetCapacity(disk.BytesUsed());
        queue_.After(fault.lasting, [&disk] { disk.SetCapacity(kUnbounded); });
        break;
      case ServerFault::Kind::kKill:
      case ServerFault::Kind::kPowerCut:
        EndServer(*shard, fault);
        break;
    }
  }
}

void SimCluster::EndServer(SimShard& shard, const ServerFault& fault) {
  shard.Kill({.takes_machine = fault.kind == ServerFault::Kind::kPowerCut,
              .seed = fault.seed,
              .calls_left = fault.calls,
              .damages = fault.damages});
  const bool has_coordinator = shard.id() == ShardId{0};
  if (has_coordinator) coordinator_.Kill();
  ServerFault again = fault;
  again.shard = Value(shard.id());
  again.hits_all = false;
  again.damages = false;
  again.moment = ServerFault::Moment::kRedoing;
  queue_.After(fault.lasting, [this, again, has_coordinator]() mutable {
    if (has_coordinator) coordinator_.Return();
    StartShard(ShardId{again.shard});
    if (again.redos == 0) return;
    --again.redos;
    Befall(again);
  });
}

void SimCluster::OnServerFailed(ShardId shard) {
  SimShard* const process = FindShard(shard);
  PS_CHECK(process != nullptr);
  EndServer(*process, {.lasting = chance_.Time(absl::Milliseconds(1), absl::Seconds(2))});
}

void SimCluster::EndDiskFaults() {
  for (SimDisk& disk : disks_) {
    disk.files.EndFailures();
    disk.files.SetCapacity(kUnbounded);
  }
}

// Aggregator processes.

void SimCluster::StartAggregator(uint32_t group, ShardId shard) {
  const SimWorld world = {scenario_, queue_, network_, history_, trace_, gradients_};
  aggregators_.push_back(std::make_unique<SimAggregator>(world, group, shard, aggregators_.size()));
}

SimAggregator* SimCluster::FindAggregator(uint32_t group, ShardId shard) {
  for (const auto& process : aggregators_) {
    const bool is_it = process->group() == group && process->shard() == shard;
    if (is_it && !process->is_dead()) return process.get();
  }
  return nullptr;
}

void SimCluster::Befall(const AggregatorFault& fault) {
  SimAggregator* const aggregator = FindAggregator(fault.group, ShardId{fault.shard});
  if (aggregator == nullptr || !network_.IsFaulty()) return;
  aggregator->Kill();
  // A run that has not begun waits for all aggregators, so this one must come back.
  if (!fault.returns && coordinator_.core().phase() >= Phase::kTraining) return;
  queue_.After(fault.lasting,
               [this, fault] { StartAggregator(fault.group, ShardId{fault.shard}); });
}

// Worker processes.

void SimCluster::StartWorker(std::optional<WorkerId> asked) {
  const SimWorld world = {scenario_, queue_, network_, history_, trace_, gradients_};
  const uint64_t number = workers_.size();
  workers_.push_back(
      std::make_unique<SimWorker>(world, number, asked, [this, number](const absl::Status& status) {
        if (!status.ok()) OnWorkerEnd(*workers_[number]);
      }));
  workers_.back()->Start();
}

void SimCluster::OnWorkerEnd(const SimWorker& worker) {
  // Most of the time, a supervisor starts another process.
  if (coordinator_.core().phase() >= Phase::kFinished || !chance_.Happens(700)) return;
  queue_.After(chance_.Time(absl::ZeroDuration(), absl::Seconds(1)), [this, id = worker.id()] {
    if (!id.has_value() || FindLive(*id) == nullptr) StartWorker(id);
  });
}

SimWorker* SimCluster::FindLive(WorkerId worker) {
  for (const auto& process : workers_) {
    if (!process->is_dead() && process->id() == worker) return process.get();
  }
  return nullptr;
}

bool SimCluster::AnyLive() const {
  return std::ranges::any_of(workers_, [](const auto& worker) { return !worker->is_dead(); });
}

void SimCluster::Befall(const WorkerFault& fault) {
  const WorkerId id{fault.worker};
  SimWorker* const worker = FindLive(id);
  if (worker == nullptr || !network_.IsFaulty()) return;
  switch (fault.kind) {
    case WorkerFault::Kind::kFreeze:
      return worker->Freeze(fault.lasting);
    case WorkerFault::Kind::kReplace:
      return StartWorker(id);
    case WorkerFault::Kind::kCrash:
      break;
  }
  worker->Crash();
  // A run that has not begun waits for all workers, so the worker must come back.
  if (!fault.returns && coordinator_.core().phase() >= Phase::kTraining) return;
  queue_.After(fault.lasting, [this, id] { StartWorker(id); });
}

void SimCluster::KeepAlive() {
  if (coordinator_.core().phase() >= Phase::kFinished) return;
  // A run that has not begun needs all of its workers. Later, one worker is enough.
  const uint32_t needed =
      coordinator_.core().phase() < Phase::kInitializing ? scenario_.run.cluster.workers : 1;
  const auto live = static_cast<uint32_t>(
      std::ranges::count_if(workers_, [](const auto& worker) { return !worker->is_dead(); }));
  for (uint32_t id = 0, missing = needed - std::min(live, needed); missing > 0; ++id) {
    if (FindLive(WorkerId{id}) != nullptr) continue;
    StartWorker(WorkerId{id});
    --missing;
  }
  // Others are waited for in the places of lost ones.
  for (const WorkerId id : coordinator_.core().membership().EmptyPlaces()) {
    if (FindLive(id) == nullptr) StartWorker(id);
  }
  queue_.After(absl::Seconds(5), [this] { KeepAlive(); });
}

std::string SimCluster::DescribeStuck() const {
  std::string text =
      fmt::format("phase {}, {} of {} mini-batches, {} ms, {} steps {}",
                  static_cast<int>(coordinator_.core().phase()), coordinator_.core().batches_done(),
                  coordinator_.core().batches_total(), absl::ToInt64Milliseconds(time()), steps(),
                  coordinator_.core().failure());
  for (const auto& shard : shards_) {
    text += "\n  " + shard->Describe() + (shard->is_dead() ? " dead" : "");
  }
  for (const auto& aggregator : aggregators_) text += "\n  " + aggregator->State();
  for (const auto& reader : readers_) text += "\n  " + reader->Describe();
  for (const auto& worker : workers_) text += "\n  " + worker->Describe();
  return text;
}

}  // namespace slipstream

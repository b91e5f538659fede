#include "deploy/lab/replay.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "common/base/check.h"
#include "common/process/exit_code.h"
#include "common/settings/shards.h"
#include "deploy/lab/encoded_values.h"
#include "deploy/lab/virtual_checks.h"
#include "worker/training/first_weights.h"
#include "worker/training/model_shapes.h"

namespace slipstream {
namespace {

constexpr uint64_t kRun = 1;
constexpr uint64_t kGrant = 1;

/// In the place of the mini-batch of a push without any.
constexpr uint64_t kNoBatch = std::numeric_limits<uint64_t>::max();

/// Returns the incarnations of each worker in the logs.
std::map<WorkerId, std::set<Incarnation>> IncarnationsIn(
    const std::vector<std::vector<PushLine>>& logs) {
  std::map<WorkerId, std::set<Incarnation>> all;
  for (const std::vector<PushLine>& log : logs) {
    for (const PushLine& line : log) all[line.worker].insert(line.incarnation);
  }
  return all;
}

/// Names the first line of each log's gap: lines of a worker whose sequences do not follow.
std::vector<std::string> Gaps(const std::vector<std::vector<PushLine>>& logs) {
  std::vector<std::string> gaps;
  for (size_t shard = 0; shard < logs.size(); ++shard) {
    std::map<std::pair<WorkerId, Incarnation>, Sequence> last;
    for (const PushLine& line : logs[shard]) {
      Sequence& before = last[{line.worker, line.incarnation}];
      if (line.sequence != Next(before)) {
        gaps.push_back(fmt::format("push-log-{}.csv:{}: worker {}'s push {} is missing", shard,
                                   line.number, Value(line.worker), Value(before) + 1));
      }
      before = line.sequence;
      if (gaps.size() == 3) return gaps;
    }
  }
  return gaps;
}

}  // namespace

absl::Status Replay::Check(const Options& options) {
  const RunSpec& run = options.run;
  std::vector<std::string> why;
  const auto refuse = [&why](bool is_so, const std::string& what) {
    if (is_so) why.push_back(what);
  };
  if (const absl::Status fits = CheckVirtual(run); !fits.ok()) {
    why.emplace_back(fits.message());
  }
  refuse(RowOf(run.worker.algorithm).has_local_weights,
         "workers take local steps (worker.algorithm), and the logs do not have their state");
  for (const PolicyStage& stage : run.stages()) {
    const PolicyTraits traits = stage.consistency.traits();
    refuse(traits.work == PolicyTraits::Work::kRounds,
           "work comes in rounds: the weights do not depend on the order of events, so that the "
           "run itself gives them again");
    refuse(!traits.makes_versions(), "gradients are added in place, in an order that nobody knows");
  }
  const bool has_two_slots = run.training.pipeline_depth > 1;
  refuse(has_two_slots && run.wire.push_codec != Encoding::kFp32,
         "a codec with pipeline_depth 2: the logs do not tell whose error a gradient took along");
  refuse(has_two_slots && RowOf(run.optimizer.staleness_scaling).uses_base_weights,
         "a compensation by base weights with pipeline_depth 2: the logs do not tell whose base it "
         "is");
  refuse(run.consistency.max_staleness.action == StalenessGuardSpec::Action::kBlock,
         "a guard that waits for workers: the logs do not tell which weights they held");
  for (const auto& [worker, incarnations] : IncarnationsIn(options.logs)) {
    refuse(incarnations.size() > 1,
           fmt::format("worker {} joined {} times, and the logs do not say when the others knew",
                       Value(worker), incarnations.size()));
  }
  for (std::string& gap : Gaps(options.logs)) why.push_back(std::move(gap));
  if (why.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      fmt::format("this run cannot be replayed: {}", fmt::join(why, "; ")));
}

absl::StatusOr<std::unique_ptr<Replay>> Replay::Make(Options options, const DataSplits& data) {
  options.run = WithoutRealWorld(options.run);
  options.run.log.push_log.clear();
  const absl::StatusOr<NetShapes> shapes = ShapesOf(options.run.model);
  if (!shapes.ok()) return shapes.status();
  const absl::StatusOr<ShardMap> map = ShardMap::Cut(
      shapes->layout, static_cast<uint32_t>(options.logs.size()), CutOptionsOf(options.run));
  if (!map.ok()) return map.status();
  absl::StatusOr<ComputeLanes> lanes = MakeComputeLanes(options.run, data, options.threads);
  if (!lanes.ok()) return lanes.status();
  return std::unique_ptr<Replay>(
      new Replay(std::move(options), data, *shapes, *map, *std::move(lanes)));
}

Replay::Replay(Options options, const DataSplits& data, NetShapes net, ShardMap map,
               std::vector<std::unique_ptr<ComputeLane>> lanes)
    : options_(std::move(options)),
      data_(data),
      net_(std::move(net)),
      map_(std::move(map)),
      shards_(options_.logs.size()),
      pool_(std::move(lanes)) {
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    shards_[i].server = std::make_unique<VirtualServer>(
        VirtualServer::Options{.shard = ShardId{i}, .run = options_.run}, queue_);
  }
  Index();
}

void Replay::Index() {
  for (size_t i = 0; i < shards_.size(); ++i) {
    std::map<std::tuple<WorkerId, Incarnation, uint64_t>, uint64_t> seen;
    for (const PushLine& line : options_.logs[i]) {
      const uint64_t batch = line.batches.empty() ? kNoBatch : line.batches.front().first;
      const uint64_t before = seen[{line.worker, line.incarnation, batch}]++;
      const Key key = {line.worker, line.incarnation, batch, before};
      shards_[i].keys.push_back(key);
      if (line.batches.empty()) continue;  // It brings no gradient.
      Push& push = pushes_[key];
      push.bases.resize(shards_.size());
      push.bases[i] = line.base;
      push.batches = line.batches;
      push.counts |= line.counts();
      ++push.lines_left;
    }
  }
  std::erase_if(pushes_, [](const auto& push) { return !push.second.counts; });
  for (const auto& [key, push] : pushes_) {
    for (size_t i = 0; i < shards_.size(); ++i) {
      if (push.bases[i].has_value()) ++shards_[i].uses[*push.bases[i]];
    }
  }
}

absl::StatusOr<Replay::Result> Replay::Run(
    const std::function<bool(uint64_t done, uint64_t lines)>& goes_on) {
  if (absl::Status whole = CheckBases(); !whole.ok()) return whole;
  if (absl::Status begun = Begin(); !begun.ok()) return begun;
  uint64_t lines = 0;
  for (const std::vector<PushLine>& log : options_.logs) lines += log.size();
  for (uint64_t done = 0; done < lines;) {
    if (!goes_on(done, lines)) return absl::CancelledError("stopped");
    ComputeAhead();
    const uint64_t before = done;
    // A line may have to wait for what another shard makes.
    for (uint32_t i = 0; i < shards_.size(); ++i) {
      ShardReplay& shard = shards_[i];
      if (shard.next == shard.keys.size()) continue;
      const auto push = pushes_.find(shard.keys[shard.next]);
      if (push != pushes_.end() && push->second.job == nullptr) continue;
      if (absl::Status pushed = PushNext(ShardId{i}); !pushed.ok()) return pushed;
      ++done;
    }
    if (done > before) continue;
    return WhyStuck();
  }
  if (absl::Status ended = End(); !ended.ok()) return ended;

  Result result = {.weights = std::vector<float>(map_.parameters()), .pushes = pushes_.size()};
  uint64_t gradients = 0;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    const ShardMachine& machine = shards_[i].server->machine();
    std::ranges::copy(shards_[i].server->weights()->values(),
                      result.weights.begin() + map_.range(ShardId{i}).begin);
    result.versions.push_back(machine.published());
    result.mean_staleness += machine.lag().mean() * machine.lag().gradients();
    gradients += machine.lag().gradients();
  }
  if (gradients > 0) result.mean_staleness /= static_cast<double>(gradients);
  const auto job = pool_.Start(queue_.now(), [&result](ComputeLane& lane) {
    if (const auto measures = lane.Measure(result.weights); measures.ok()) {
      result.measures = *measures;
    }
  });
  pool_.Await(*job);
  return result;
}

absl::Status Replay::WhyStuck() const {
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (shards_[i].next == shards_[i].keys.size()) continue;
    return absl::FailedPreconditionError(fmt::format(
        "push-log-{}.csv:{}: it was computed from versions that the lines before do not "
        "make: lines are missing",
        i, options_.logs[i][shards_[i].next].number));
  }
  return absl::InternalError("nothing is left to replay");
}

absl::Status Replay::CheckBases() const {
  for (const auto& [key, push] : pushes_) {
    for (size_t i = 0; i < shards_.size(); ++i) {
      if (push.bases[i].has_value()) continue;
      return absl::FailedPreconditionError(
          fmt::format("push-log-{}.csv has no line of worker {}'s push of mini-batch {}, which "
                      "another log has: "
                      "the shard refused it, and nobody knows which weights of it were used",
                      i, Value(std::get<WorkerId>(key)), push.batches.front().first));
    }
  }
  return absl::OkStatus();
}

absl::Status Replay::Begin() {
  const uint64_t examples = data_.train.count();
  const uint64_t per_epoch =
      (examples + options_.run.training.batch_size - 1) / options_.run.training.batch_size;
  const std::map<WorkerId, std::set<Incarnation>> incarnations = IncarnationsIn(options_.logs);
  orders_.number = 1;
  orders_.run = kRun;
  orders_.phase = Phase::kInitializing;
  orders_.model =
      ModelOrders{net_.layout, map_, options_.run.training.steps(per_epoch), per_epoch, examples};
  orders_.view.number = ViewNumber{1};
  Incarnation unused{uint64_t{1} << 40};
  for (uint32_t i = 0; i < options_.run.cluster.workers; ++i) {
    const auto known = incarnations.find(WorkerId{i});
    const Incarnation own =
        known != incarnations.end() ? *known->second.begin() : Incarnation{Value(unused) + i};
    orders_.view.members.push_back({WorkerId{i}, own, /*founding=*/true});
  }
  orders_.grant = kGrant;
  orders_.initializer = {kRun, WorkerId{0}, orders_.view.members.front().incarnation};
  std::vector<float> weights(map_.parameters());
  absl::Status filled = FillFirstWeights(options_.run, net_, weights);
  if (!filled.ok()) return filled;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    VirtualServer& server = *shards_[i].server;
    server.OnOrders(orders_);
    const ParameterRange range = map_.range(ShardId{i});
    const absl::Status taken =
        server.Initialize({orders_.initializer, kGrant, map_.fingerprint(), 0},
                          std::span(weights).subspan(range.begin, range.size()));
    if (!taken.ok()) return taken;
  }
  ++orders_.number;
  orders_.phase = Phase::kTraining;
  for (uint32_t i = 0; i < shards_.size(); ++i) {
    shards_[i].server->OnOrders(orders_);
    KeepNewest(ShardId{i});
    PullFirst(ShardId{i});
  }
  return absl::OkStatus();
}

void Replay::PullFirst(ShardId shard) {
  VirtualServer& server = *shards_[Value(shard)].server;
  for (const Member& member : orders_.view.members) {
    for (uint32_t slot = 0; slot < options_.run.training.pipeline_depth; ++slot) {
      const PullRequest pull = {.identity = Identity{kRun, member.worker, member.incarnation},
                                .shard_map = map_.fingerprint(),
                                .trains = true,
                                .sequence = Sequence{1},
                                .slot = slot};
      const CallId call = server.NewCall();
      server.Pull(call, pull, [](const Answer&) {});
      server.FinishPull(call, pull);
    }
  }
}

void Replay::ComputeAhead() {
  constexpr size_t kAheadPerThread = 4;
  size_t left = kAheadPerThread * options_.threads;
  for (ShardReplay& shard : shards_) {
    for (size_t i = shard.next; i < shard.keys.size() && left > 0; ++i) {
      const auto push = pushes_.find(shard.keys[i]);
      if (push == pushes_.end()) continue;  // It has no effect.
      --left;
      if (push->second.job == nullptr && MayCompute(push->second)) Compute(push->second);
    }
    left = std::max(left, size_t{1});
  }
}

bool Replay::MayCompute(const Push& push) const {
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (!shards_[i].versions.contains(*push.bases[i])) return false;
  }
  return true;
}

void Replay::Compute(Push& push) {
  push.weights.clear();
  for (size_t i = 0; i < shards_.size(); ++i) {
    ShardReplay& shard = shards_[i];
    push.weights.push_back(shard.versions.at(*push.bases[i]));
    if (--shard.uses[*push.bases[i]] == 0) {
      shard.uses.erase(*push.bases[i]);
      // The newest is kept for those who come next.
      if (*push.bases[i] != shard.server->machine().published()) {
        shard.versions.erase(*push.bases[i]);
      }
    }
  }
  push.job = pool_.Start(queue_.now(), [this, &push](ComputeLane& lane) {
    push.computed = lane.Compute(push.weights, map_, push.batches.front().first);
    push.gradient.assign(lane.gradient().begin(), lane.gradient().end());
    push.weights.clear();
  });
}

absl::Status Replay::PushNext(ShardId id) {
  ShardReplay& shard = shards_[Value(id)];
  const PushLine& line = options_.logs[Value(id)][shard.next];
  const auto found = pushes_.find(shard.keys[shard.next]);
  ++shard.next;
  const uint64_t clock = ++shard.clocks[{line.worker, line.incarnation}];
  if (line.stage > orders_.stage || line.stage > shard.server->machine().stage()) {
    orders_.stage = std::max(orders_.stage, line.stage);
    ++orders_.number;
    shard.server->OnOrders(orders_);
  }
  const ParameterRange range = map_.range(id);
  PushHeader header = {.identity = {kRun, line.worker, line.incarnation},
                       .sequence = line.sequence,
                       .shard_map = map_.fingerprint(),
                       .base = line.base,
                       .count = line.examples > 0 ? range.size() : 0,
                       .examples = line.examples,
                       .batches = line.batches,
                       .pull = line.examples > 0,
                       .clock = WorkerClock{clock},
                       .rests = line.examples == 0};
  std::optional<ReceivedValues> values;
  if (found != pushes_.end()) {
    Push& push = found->second;
    pool_.Await(*push.job);
    if (!push.computed.step.ok()) return push.computed.step.status();
    if (push.computed.nonfinite.has_value()) {
      return DivergedError(
          fmt::format("with these settings training diverges: {} at the push of "
                      "push-log-{}.csv:{}",
                      *push.computed.nonfinite, Value(id), line.number));
    }
    header.trailer = {.loss = push.computed.step->loss, .clip = push.computed.clip};
    values = ValuesOf(line.worker, id, std::span(push.gradient).subspan(range.begin, range.size()));
    if (--push.lines_left == 0) push.gradient = {};
  } else if (header.count > 0) {
    // It had no effect: its values do not matter.
    ReceivedValues::Buffer zeros = ReceivedValues::MakeBuffer(range.size());
    std::ranges::fill(zeros.to, 0.0f);
    values = std::move(zeros.values);
  }
  const PushReply reply =
      shard.server->Decide(shard.server->NewCall(), header, values.has_value() ? &*values : nullptr,
                           /*bytes=*/0, [](const Answer&) {});
  KeepNewest(id);
  if (PushEncoder* encoder = EncoderOf(line.worker, id)) {
    encoder->OnOutcome(reply, header.trailer.clip);
  }
  // A push without a gradient changes no weights, and may have come behind the end of the work.
  return line.examples > 0 ? CheckReply(id, line, reply) : absl::OkStatus();
}

absl::Status Replay::CheckReply(ShardId shard, const PushLine& line, const PushReply& reply) const {
  if (Name(reply.outcome) == line.outcome && reply.version == line.version &&
      reply.staleness == line.staleness) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(fmt::format(
      "push-log-{}.csv:{}: the log says {} in version {} with staleness {}, and the shard says {} "
      "in version {} with staleness {}{}{}: what made the difference is not in the log, as a "
      "change "
      "of the members is not",
      Value(shard), line.number, line.outcome, Value(line.version), line.staleness,
      Name(reply.outcome), Value(reply.version), reply.staleness, reply.message.empty() ? "" : ", ",
      reply.message));
}

std::optional<ReceivedValues> Replay::ValuesOf(WorkerId worker, ShardId shard,
                                               std::span<const float> gradient) {
  PushEncoder* encoder = EncoderOf(worker, shard);
  if (encoder == nullptr) {
    ReceivedValues::Buffer copy = ReceivedValues::MakeBuffer(gradient.size());
    std::ranges::copy(gradient, copy.to.begin());
    return std::move(copy.values);
  }
  return EncodedValues(*encoder, gradient);
}

PushEncoder* Replay::EncoderOf(WorkerId worker, ShardId shard) {
  if (options_.run.wire.push_codec == Encoding::kFp32) return nullptr;
  const auto encoders =
      encoders_.try_emplace(worker, options_.run.wire.push_codec, map_, 1,
                            PushEncoders::FrozenIn(options_.run, net_.layout, map_));
  return encoders.first->second.Of(shard, 0);
}

void Replay::KeepNewest(ShardId id) {
  ShardReplay& shard = shards_[Value(id)];
  const Version newest = shard.server->machine().published();
  shard.versions[newest] = shard.server->weights();
  std::erase_if(shard.versions, [&shard, newest](const auto& entry) {
    return entry.first != newest && !shard.uses.contains(entry.first);
  });
}

absl::Status Replay::End() {
  ++orders_.number;
  orders_.phase = Phase::kDraining;
  for (ShardReplay& shard : shards_) {
    shard.server->OnOrders(orders_);
    if (!shard.server->machine().is_drained()) {
      return absl::InternalError("a shard waits for pushes that the log does not have");
    }
  }
  return absl::OkStatus();
}

}  // namespace slipstream

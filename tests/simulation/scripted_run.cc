#include "tests/simulation/scripted_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/log_line.h"
#include "common/config/run_change_reader.h"
#include "common/config/run_config.h"
#include "server/core/shard/shard_options.h"
#include "server/core/shard/shard_return.h"
#include "tests/simulation/trace_text.h"

namespace slipstream {
namespace {

constexpr uint64_t kRun = 5;
constexpr uint64_t kValues = 32;  // Of the model.
constexpr uint64_t kExamples = 40;
constexpr const char* kSettings =
    "version: 1\n"
    "name: scripted\n"
    "model: {preset: mlp}\n"
    "data: {format: synthetic}\n"
    "cluster: {servers: ['localhost:1', 'localhost:2'], workers: 2, lease: 5s, start_timeout: "
    "20s}\n"
    "evaluation: {every_epochs: 0}\n"
    "training: {batch_size: 10, epochs: 1}\n";

uint64_t NumberIn(std::string_view word) {
  uint64_t number = 0;
  PS_CHECK(absl::SimpleAtoi(absl::string_view(word.data(), word.size()), &number));
  return number;
}

/// The value of `name=value` among the words.
std::optional<std::string> Find(const std::vector<std::string>& words, const std::string& name) {
  for (const std::string& word : words) {
    if (word.starts_with(name + "=")) return word.substr(name.size() + 1);
  }
  return std::nullopt;
}

bool Has(const std::vector<std::string>& words, const std::string& name) {
  return std::ranges::find(words, name) != words.end();
}

std::string NameOf(const Identity& identity) {
  return fmt::format("{}#{}", Value(identity.worker), Value(identity.incarnation));
}

}  // namespace

std::string ScriptedRun::Do(const std::string& command) {
  out_.clear();
  const Words words = absl::StrSplit(command, ' ', absl::SkipEmpty());
  const std::string& verb = words.front();
  const auto number = [&words](size_t place) {
    return static_cast<uint32_t>(NumberIn(words.at(place)));
  };
  if (verb == "run") {
    Run(words);
  } else if (verb == "begin") {
    Begin(words);
  } else if (!coordinator_.has_value()) {
    Line("no run has begun");
  } else if (verb == "sync") {
    words.size() > 1 ? Sync(number(1)) : SyncAll();
  } else if (verb == "join") {
    Join(number(1));
  } else if (verb == "prepare") {
    Prepare(number(1));
  } else if (verb == "initialize") {
    Initialize(number(1));
  } else if (verb == "beat") {
    Beat(number(1), words);
  } else if (verb == "work") {
    Work(number(1), words);
  } else if (verb == "leave") {
    const std::string why = words.size() > 2 ? command.substr(command.find(words[2])) : "";
    Tell(coordinator_->OnLeave(workers_.at(number(1)).identity, why, now_));
  } else if (verb == "measure") {
    Measure(number(1), words);
  } else if (verb == "pull") {
    Pull(number(1), number(2));
  } else if (verb == "read") {
    Read(number(1));
  } else if (verb == "push") {
    Push(number(1), number(2), words);
  } else if (verb == "again") {
    SendPush(number(1), number(2), *workers_.at(number(1)).lanes[number(2)].last);
  } else if (verb == "publish") {
    Publish(number(1));
  } else if (verb == "cancel") {
    Cancel(number(1));
  } else if (verb == "kill") {
    servers_.at(number(1)).is_up = false;
  } else if (verb == "restart") {
    Restart(number(1));
  } else if (verb == "pass") {
    Pass(number(1));
  } else if (verb == "change") {
    Change(words);
  } else if (verb == "save") {
    Tell(coordinator_->OnSaveCheckpoint(0, now_).status());
  } else if (verb == "end") {
    Tell(coordinator_->OnEndTraining(EndReason::kInterrupted, now_));
  } else {
    Line("no such command");
  }
  TellStates();
  return out_;
}

void ScriptedRun::Run(const Words& words) {
  Overrides overrides;
  overrides.set.assign(words.begin() + 1, words.end());
  absl::StatusOr<RunSpec> spec = ToStatusOr(ParseRunConfig(kSettings, "scripted", overrides));
  if (!spec.ok()) return Tell(spec.status());
  spec_ = *std::move(spec);
  coordinator_.emplace(kRun, spec_, now_);
  for (uint32_t shard = 0; shard < spec_.cluster.servers.size(); ++shard) {
    servers_.emplace(shard, Server{.machine = ShardMachine(ShardOptionsOf(spec_, ShardId{shard})),
                                   .instance = shard + 1});
  }
}

void ScriptedRun::Begin(const Words& words) {
  Run(words);
  if (!coordinator_.has_value()) return;
  SyncAll();
  for (const uint32_t worker : {0, 1}) Join(worker);
  SyncAll();
  Initialize(0);
  SyncAll();
  coordinator_->TakeNotes();
  out_.clear();
}

// Servers.

void ScriptedRun::SyncAll() {
  uint64_t before = 0;
  do {
    before = coordinator_->orders().number;
    for (uint32_t shard = 0; shard < servers_.size(); ++shard) Sync(shard);
  } while (coordinator_->orders().number != before);
}

void ScriptedRun::Sync(uint32_t shard) {
  Server& server = servers_.at(shard);
  if (!server.is_up) return;
  const ShardMachine& machine = server.machine;
  ServerReport report = {.shard = ShardId{shard},
                         .instance = server.instance,
                         .address = spec_.cluster.servers[shard],
                         .run = kRun,
                         .orders_seen = machine.state().run.orders,
                         .initialized = machine.is_initialized() && machine.has_granted_weights(),
                         .drained = machine.is_drained(),
                         .generation = machine.generation(),
                         .knows_saved = true,
                         .version = machine.published(),
                         .batches_of_rounds = machine.batches_of_rounds()};
  if (server.saved.has_value()) {
    report.saved = {{server.saved->versions.generation(), server.saved->versions.decided(),
                     server.saved->run.stage}};
  }
  for (const Member& member : machine.view().members) {
    const MemberRecord::Newest newest = machine.NewestOf(member.worker, member.incarnation);
    if (newest.batch_end == 0) continue;
    report.pushed.push_back({member.worker, member.incarnation, newest.batch_end, newest.clock});
  }
  if (absl::Status taken = coordinator_->OnServer(report, now_); !taken.ok()) return Tell(taken);
  const ServerOrders& orders = coordinator_->orders();
  if (orders.number <= machine.state().run.orders) return;
  Line(fmt::format("shard {} takes orders {}", shard, TextOf(orders)));
  if (orders.returns.size() > shard && orders.returns[shard].generation > machine.generation()) {
    if (!server.saved.has_value()) return Line("it has no such checkpoint");
    server.machine.Restore(Returned(*server.saved, orders.returns[shard].generation));
    server.bytes_held.clear();
    server.pulls.clear();
    Line(fmt::format("shard {} returns to version {}", shard, Value(server.machine.decided())));
  }
  Carry(shard, server.machine.OnOrders(orders));
}

void ScriptedRun::Restart(uint32_t shard) {
  Server& server = servers_.at(shard);
  const uint64_t instance = server.instance + servers_.size();
  std::optional<ShardState> saved = std::move(server.saved);
  servers_.erase(shard);
  servers_.emplace(shard, Server{.machine = ShardMachine(ShardOptionsOf(spec_, ShardId{shard})),
                                 .instance = instance,
                                 .saved = std::move(saved)});
}

void ScriptedRun::Publish(uint32_t shard) {
  Server& server = servers_.at(shard);
  const ShardMachine& machine = server.machine;
  if (machine.published() == machine.decided()) return Line("no update was ordered");
  Carry(shard, server.machine.OnPublished(Next(machine.published())));
  if (server.to_save.has_value() && server.to_save->versions.decided() <= machine.published()) {
    server.saved = std::exchange(server.to_save, std::nullopt);
  }
}

void ScriptedRun::Cancel(uint64_t call) {
  for (auto& [_, server] : servers_) {
    if (server.machine.OnCancelled(CallId{call})) Line(fmt::format("call {} waits no more", call));
  }
}

void ScriptedRun::Pass(uint32_t seconds) {
  for (uint32_t i = 0; i < seconds; ++i) {
    now_ += absl::Seconds(1);
    coordinator_->Tick(now_);
    for (uint32_t shard = 0; shard < servers_.size(); ++shard) Sync(shard);
  }
}

void ScriptedRun::Carry(uint32_t shard, const ShardOutput& output) {
  Server& server = servers_.at(shard);
  for (const Fold& fold : output.folds) {
    Line(fmt::format("shard {} folds push {}, weight {}{}{}", shard,
                     static_cast<uint64_t>(fold.push), fold.weight,
                     fold.clip != 1 ? fmt::format(", clipped to {}", fold.clip) : "",
                     fold.first ? ", the first" : ""));
    server.machine.ReleaseBytes(server.bytes_held.extract(fold.push).mapped());
  }
  if (output.update.has_value()) {
    Line(fmt::format("shard {} makes version {}: {}", shard, Value(output.update->to),
                     TextOf(*output.update)));
  }
  if (output.saves) {
    Line(fmt::format("shard {} saves version {}", shard, Value(server.machine.decided())));
    std::optional<ShardState>& saved =
        server.machine.decided() > server.machine.published() ? server.to_save : server.saved;
    saved = server.machine.state();
  }
  for (const ShardAnswer& answer : output.answers) Answer(shard, answer);
  for (const CallId call : output.lagged)
    Line(fmt::format("shard {} ends pull {}", shard, Value(call)));
}

void ScriptedRun::Answer(uint32_t shard, const ShardAnswer& answer) {
  Server& server = servers_.at(shard);
  std::string text = fmt::format("shard {} answers call {}:", shard, Value(answer.call));
  if (answer.refusal.has_value())
    text += fmt::format(" pull refused, reason {}", static_cast<int>(*answer.refusal));
  if (answer.push.has_value()) text += " " + TextOf(*answer.push);
  if (answer.weights.has_value()) {
    text += fmt::format("{} {}", answer.push.has_value() ? "," : "", TextOf(*answer.weights));
  }
  Line(text);
  const auto caller = callers_.extract(answer.call);
  const auto pull = server.pulls.extract(answer.call);
  if (!caller.empty() && answer.weights.has_value()) {
    Worker& worker = workers_.at(caller.mapped());
    Lane& lane = worker.lanes[shard];
    if (answer.weights->generation > lane.generation) lane.sequence = {};
    lane.generation = answer.weights->generation;
    lane.base = answer.weights->version;
    lane.clock = std::max(lane.clock, answer.weights->clock);
    const std::optional<RoundWork>& work = answer.weights->work;
    if (work.has_value() && work->kind == RoundWork::Kind::kCompute) worker.batches = work->batches;
  }
  if (!pull.empty() && !answer.refusal.has_value())
    Carry(shard, server.machine.OnPullDone(answer.call, pull.mapped()));
}

// Workers.

void ScriptedRun::Join(uint32_t id) {
  const Applicant applicant = {
      .worker = WorkerId{id}, .host = "host", .process = 100 + id, .instance = ++calls_};
  const absl::StatusOr<Identity> identity = coordinator_->OnRegister(applicant, now_);
  if (!identity.ok()) return Tell(identity.status());
  workers_[id] = {.identity = *identity};
  Line("it is " + NameOf(*identity));
  TensorLayout layout;
  PS_CHECK(layout.Append("weights", {kValues}).ok());
  Tell(coordinator_
           ->OnPrepareModel(*identity, layout,
                            {.examples = kExamples, .fingerprint = 1, .frozen = {}}, now_)
           .status());
  Prepare(id);
}

void ScriptedRun::Prepare(uint32_t id) {
  const auto answer = coordinator_->AskModel(workers_.at(id).identity);
  if (!answer.ok()) return Tell(answer.status());
  switch (answer->state) {
    case Preparation::State::kWait:
      return Line("worker waits: " + answer->message);
    case Preparation::State::kGranted:
      return Line(fmt::format("worker has grant {}", answer->grant));
    case Preparation::State::kReady:
      return Line("the weights are there");
  }
}

void ScriptedRun::Initialize(uint32_t id) {
  const Identity& identity = workers_.at(id).identity;
  const ServerOrders& orders = coordinator_->orders();
  for (uint32_t shard = 0; shard < servers_.size(); ++shard) {
    const InitializeHeader header = {.identity = identity,
                                     .grant = orders.grant,
                                     .shard_map = orders.model->shard_map.fingerprint(),
                                     .count = orders.model->shard_map.range(ShardId{shard}).size()};
    const absl::StatusOr<bool> taken = servers_.at(shard).machine.OnInitialWeights(header);
    if (!taken.ok()) return Tell(taken.status());
    if (*taken) Carry(shard, servers_.at(shard).machine.OnInitialized(orders.grant));
  }
  Tell(coordinator_->OnFinishInitialization(identity, orders.grant, now_));
}

void ScriptedRun::Beat(uint32_t id, const Words& words) {
  std::vector<UnitReport> progress;
  if (words.size() > 3) progress.push_back({NumberIn(words[2]), NumberIn(words[3])});
  Tell(coordinator_->OnHeartbeat(workers_.at(id).identity, progress, now_));
  if (const auto order = coordinator_->EvaluationFor(WorkerId{id})) {
    Line(fmt::format("worker is to measure, order {}{}", order->number,
                     order->is_final ? ", the final one" : ""));
  }
}

void ScriptedRun::Work(uint32_t id, const Words& words) {
  Worker& worker = workers_.at(id);
  const uint32_t stage =
      words.size() > 2 ? static_cast<uint32_t>(NumberIn(words[2])) : coordinator_->stage();
  const auto work = coordinator_->AskWork(worker.identity, {.stage = stage});
  if (!work.ok()) return Tell(work.status());
  switch (work->state) {
    case WorkAnswer::State::kWait:
      return Line("worker waits");
    case WorkAnswer::State::kUnit:
      worker.batches = {work->unit.first, 1};
      return Line(fmt::format("worker has unit {}: {}+{}", work->unit.number, work->unit.first,
                              work->unit.batches));
    case WorkAnswer::State::kFinished:
      return Line("worker has finished");
    case WorkAnswer::State::kStage:
      return Line(fmt::format("worker goes on to stage {}", work->stage));
    case WorkAnswer::State::kReturned:
      return Line(fmt::format("shards have returned in generation {}", Value(work->generation)));
  }
}

void ScriptedRun::Measure(uint32_t id, const Words& words) {
  const auto order = coordinator_->EvaluationFor(WorkerId{id});
  if (!order.has_value()) return Line("nothing was ordered");
  double loss = 0;
  PS_CHECK(absl::SimpleAtod(words.at(2), &loss));
  Tell(coordinator_->OnReport(workers_.at(id).identity, order->number,
                              {.test_loss = loss, .examples = kExamples}, std::string(64, 'a'),
                              now_));
}

void ScriptedRun::Pull(uint32_t id, uint32_t shard) {
  Worker& worker = workers_.at(id);
  Lane& lane = worker.lanes[shard];
  const CallId call{++calls_};
  const PullRequest pull = {.identity = worker.identity,
                            .shard_map = coordinator_->orders().model->shard_map.fingerprint(),
                            .min_generation = lane.generation,
                            .trains = true,
                            .sequence = Next(lane.sequence),
                            .clock = lane.clock};
  Line(fmt::format("call {}", Value(call)));
  callers_[call] = id;
  servers_.at(shard).pulls[call] = ReaderOf(pull);
  Carry(shard, servers_.at(shard).machine.OnPull(call, pull));
}

void ScriptedRun::Read(uint32_t shard) {
  const CallId call{++calls_};
  Line(fmt::format("call {}", Value(call)));
  servers_.at(shard).pulls[call] = std::nullopt;
  Carry(shard, servers_.at(shard).machine.OnPull(call, PullRequest()));
}

void ScriptedRun::Push(uint32_t id, uint32_t shard, const Words& words) {
  Worker& worker = workers_.at(id);
  Lane& lane = worker.lanes[shard];
  const bool is_empty = Has(words, "empty");
  PushHeader header = {
      .identity = worker.identity,
      .sequence = Next(lane.sequence),
      .shard_map = coordinator_->orders().model->shard_map.fingerprint(),
      .base = lane.base,
      .generation = lane.generation,
      .count = is_empty ? 0 : coordinator_->orders().model->shard_map.range(ShardId{shard}).size(),
      .pull = !Has(words, "only"),
      .clock = WorkerClock{Value(lane.clock) + 1},
      .rests = Has(words, "rests")};
  if (!is_empty) {
    header.batches = {worker.batches};
    header.examples = static_cast<uint32_t>(worker.batches.count * spec_.training.batch_size);
  }
  if (const auto base = Find(words, "base")) header.base = Version{NumberIn(*base)};
  if (const auto sequence = Find(words, "sequence"))
    header.sequence = Sequence{NumberIn(*sequence)};
  if (const auto clock = Find(words, "clock")) header.clock = WorkerClock{NumberIn(*clock)};
  if (const auto slot = Find(words, "slot")) header.slot = static_cast<uint32_t>(NumberIn(*slot));
  if (const auto examples = Find(words, "examples"))
    header.examples = static_cast<uint32_t>(NumberIn(*examples));
  if (const auto batches = Find(words, "batches")) {
    const std::vector<std::string> ends = absl::StrSplit(*batches, '+');
    header.batches = {{NumberIn(ends.at(0)), NumberIn(ends.at(1))}};
  }
  SendPush(id, shard,
           {.header = header,
            .values_received = header.count,
            .is_finite = !Has(words, "nan"),
            .checksum = 1000 * (id + 1) + Value(header.sequence)});
}

void ScriptedRun::SendPush(uint32_t id, uint32_t shard, PushFacts facts) {
  Server& server = servers_.at(shard);
  Lane& lane = workers_.at(id).lanes[shard];
  lane.last = facts;
  const CallId call{++calls_};
  const PushAdmission admission = server.machine.OnPushHeader(facts.header);
  if (admission.refusal.has_value()) {
    return Line(fmt::format("call {} is refused at its header: {}", Value(call),
                            TextOf(*admission.refusal)));
  }
  Line(fmt::format("call {}, push {}{}", Value(call), static_cast<uint64_t>(admission.push),
                   admission.draft.has_value() ? ", its update is drafted" : ""));
  facts.push = admission.push;
  callers_[call] = id;
  const ShardOutput output = server.machine.OnPush(call, facts);
  // A push that is refused does not use up its sequence.
  if (!IsRefusal(output.record->reply.outcome)) {
    lane.sequence = std::max(lane.sequence, facts.header.sequence);
    lane.clock = std::max(lane.clock, facts.header.clock);
  }
  if (output.keeps_payload) server.bytes_held[facts.push] = facts.header.count * sizeof(float);
  Carry(shard, output);
}

void ScriptedRun::Change(const Words& words) {
  const absl::StatusOr<RunChange> change = ReadRunChange(spec_, {words.begin() + 1, words.end()});
  if (!change.ok()) return Tell(change.status());
  const auto effect = coordinator_->OnChange(*change, now_);
  if (!effect.ok()) return Tell(effect.status());
  Line(effect->after_epoch.has_value() ? fmt::format("after epoch {}", *effect->after_epoch)
                                       : "at once");
}

// The report of what follows from a command.

void ScriptedRun::Tell(const absl::Status& status) {
  if (!status.ok()) Line(status.ToString());
}

void ScriptedRun::TellStates() {
  if (!coordinator_.has_value()) return;
  for (const CoordinatorNotes::Note& note : coordinator_->TakeNotes())
    Line("note: " + TextOf(note.line));
  if (std::string state = StateOf(*coordinator_); state != coordinator_state_) {
    Line("run: " + state);
    coordinator_state_ = std::move(state);
  }
  for (auto& [shard, server] : servers_) {
    server.machine.CheckInvariants();
    std::string state = server.machine.is_initialized() ? StateOf(server.machine) : "";
    if (state == server.state) continue;
    if (!state.empty()) Line(fmt::format("shard {}: {}", shard, state));
    server.state = std::move(state);
  }
}

std::string TranscriptOfScript(const std::string& script) {
  ScriptedRun run;
  std::string transcript;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ")) continue;
    transcript += line + "\n";
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream effects(run.Do(line));
    for (std::string effect; std::getline(effects, effect);) transcript += "  " + effect + "\n";
  }
  return transcript;
}

}  // namespace slipstream

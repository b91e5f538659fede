#include "server/control_plane/coordinator_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "absl/time/clock.h"
#include "common/base/check.h"
#include "common/log/log.h"
#include "common/process/version.h"
#include "common/rpc/status_conversion.h"
#include "server/status/coordinator_facts.h"

namespace slipstream {

/// One call with one answer. Deletes itself when gRPC is done with it.
class CoordinatorService::Call final : public grpc::ServerUnaryReactor, public CoordinatorCall {
 public:
  Call(CoordinatorService& service, grpc_call* call)
      : service_(service), caller_(service.options_.connections, call) {}

  Caller& caller() override { return caller_; }
  void OnAnswer(const absl::Status& status) override { Finish(ToGrpc(status)); }

 private:
  void OnCancel() override { service_.Cancel(this); }
  void OnDone() override { delete this; }

  CoordinatorService& service_;
  Caller caller_;
};

namespace {

// How often it is looked at what no message tells of; and how many leases long workers may be idle
// in any case.
constexpr absl::Duration kLookInterval = absl::Seconds(1);
constexpr int kIdleLeases = 6;

constexpr char kIsNotKept[] = "the coordinator's state cannot be kept; calls wait until it can";
constexpr char kIsStopping[] = "the coordinator is stopping";

// How soon a state that could not be written is written again.
constexpr std::chrono::seconds kKeepAgain{1};

absl::Status MayBe(Caller& caller, const ClaimedMember& claimed) {
  if (const auto* worker = std::get_if<WorkerId>(&claimed)) return caller.MayBe(*worker);
  if (const auto* shard = std::get_if<ShardId>(&claimed)) return caller.MayBe(*shard);
  return absl::OkStatus();
}

void NoteMember(Caller& caller, const ClaimedMember& claimed) {
  if (const auto* worker = std::get_if<WorkerId>(&claimed)) caller.NoteMember(*worker);
  if (const auto* shard = std::get_if<ShardId>(&claimed)) caller.NoteMember(*shard);
}

}  // namespace

CoordinatorService::CoordinatorService(Options options)
    : options_(std::move(options)),
      watchers_([this] { return Status(); }),
      coordinator_(options_.run, options_.spec, options_.now()),
      settings_(options_.spec),
      stalled_({.idle_min = kIdleLeases * options_.spec.cluster.lease,
                .first_idle_max = options_.spec.cluster.start_timeout}),
      news_(static_cast<uint32_t>(options_.spec.cluster.servers.size())) {
  if (options_.kept.has_value()) {
    MutexLock lock(mutex_);
    const absl::Time now = options_.now();
    PS_CHECK(coordinator_.Restore(options_.kept->first, now, options_.accepts_rollback).ok());
    settings_ = options_.kept->second;
    to_keep_ = kept_ = ChangesToKeep();
    coordinator_.AddNote({EventKind::kState, true, LogLine("the coordinator was restarted")});
  }
  timer_ = std::thread([this] { RunTimer(); });
  if (options_.keep != nullptr) keeper_ = std::thread([this] { RunKeeper(); });
}

CoordinatorService::~CoordinatorService() {
  Stop();
  timer_.join();
  if (keeper_.joinable()) keeper_.join();
}

void CoordinatorService::Stop() {
  TickWatchers();
  watchers_.Stop();
  Aftermath aftermath;
  std::deque<Aftermath> unfinished;
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
    for (CoordinatorCall* const call : parked_.TakeAll()) {
      aftermath.answers.emplace_back(call, absl::UnavailableError("the coordinator is stopping"));
    }
    unfinished = std::exchange(unfinished_, {});
  }
  stopping_.NotifyAll();
  keeping_.NotifyAll();
  FinishNow(aftermath);
  for (Aftermath& each : unfinished) {
    Refuse(each, kIsStopping);
    FinishNow(each);
  }
  streams_.Stop();
}

absl::Status CoordinatorService::WeightsSaved() {
  MutexLock lock(mutex_);
  if (!coordinator_.evaluations().final_done()) return absl::OkStatus();
  const std::string why = coordinator_.evaluations().WhyNotSaved();
  if (why.empty()) return absl::OkStatus();
  return absl::DataLossError("the run has finished, and its trained weights were not saved: " +
                             why);
}

absl::Status CoordinatorService::Rollback() {
  MutexLock lock(mutex_);
  return coordinator_.rollback();
}

bool CoordinatorService::ServersMayStop() {
  MutexLock lock(mutex_);
  return coordinator_.ServersMayStop(options_.now());
}

v1::RunStatus CoordinatorService::Status() {
  StatusFacts facts;
  {
    MutexLock lock(mutex_);
    facts = Facts(options_.now());
  }
  v1::RunStatus status = MergeStatus(options_.spec, facts);
  status.set_server_version(std::string(kVersion));
  status.set_protocol(kProtocol);
  status.set_oldest_protocol(kOldestProtocol);
  status.set_clock_ms(absl::ToUnixMillis(absl::Now()));
  return status;
}

grpc::ByteBuffer CoordinatorService::EncodedStatus() {
  MutexLock status_lock(status_mutex_);
  uint64_t changes = 0;
  {
    MutexLock lock(mutex_);
    changes = coordinator_.changes() + ChangesToKeep();
  }
  const absl::Time now = options_.now();
  const bool is_new =
      status_answer_.changes == changes && now - status_answer_.made < options_.status_age_max;
  if (!is_new) {
    const grpc::Slice encoded(Status().SerializeAsString());
    status_answer_ = {.bytes = grpc::ByteBuffer(&encoded, 1), .made = now, .changes = changes};
  }
  return status_answer_.bytes;
}

grpc::ServerUnaryReactor* CoordinatorService::Serve(grpc::CallbackServerContext* context,
                                                    ClaimedMember claimed, const Event& event) {
  return ServeOrPark(context, claimed, event, 0, [](bool) { return absl::OkStatus(); });
}

grpc::ServerUnaryReactor* CoordinatorService::ServeOrPark(grpc::CallbackServerContext* context,
                                                          ClaimedMember claimed, const Event& event,
                                                          uint32_t wait_ms, Question question) {
  Call* call = new Call(*this, context->c_call());
  if (const absl::Status admitted = call->caller().Admit(); !admitted.ok()) {
    call->OnAnswer(admitted);
    return call;
  }
  AnswerOrPark(call, claimed, event, wait_ms, std::move(question));
  return call;
}

void CoordinatorService::AnswerOrPark(CoordinatorCall* call, ClaimedMember claimed,
                                      const Event& event, uint32_t wait_ms, Question question) {
  Caller& caller = call->caller();
  if (const absl::Status may_be = MayBe(caller, claimed); !may_be.ok()) {
    return call->OnAnswer(may_be);
  }
  Aftermath aftermath;
  {
    MutexLock lock(mutex_);
    const absl::Time now = options_.now();
    coordinator_.Observe(now);
    absl::Status status = event(now, caller);
    if (status.ok()) NoteMember(caller, claimed);
    std::optional<absl::Status> answer = status;
    if (status.ok()) answer = question(wait_ms == 0 || is_stopping_);
    if (!answer.has_value() && parked_.is_full()) {
      answer = absl::ResourceExhaustedError("too many calls are waiting");
    }
    aftermath = Settle(now);
    aftermath.audit = caller.TakeAudit();
    if (answer.has_value()) {
      aftermath.answers.emplace_back(call, *answer);
    } else {
      call->parked_as = parked_.Park(call, std::move(question), absl::Milliseconds(wait_ms), now);
    }
  }
  Finish(std::move(aftermath));
}

void CoordinatorService::Cancel(CoordinatorCall* call) {
  {
    MutexLock lock(mutex_);
    if (!call->parked_as.has_value() || !parked_.Remove(*call->parked_as)) return;
  }
  call->OnAnswer(absl::CancelledError("the caller has given up"));
}

void CoordinatorService::RunTimer() {
  absl::Time next_look = absl::InfinitePast();
  while (true) {
    Aftermath aftermath;
    {
      MutexLock lock(mutex_);
      const auto next = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(options_.tick);
      while (!is_stopping_ && stopping_.WaitUntil(mutex_, next)) {
      }
      if (is_stopping_) return;
    }
    const bool looks = options_.now() >= next_look;
    const v1::RunStatus status = looks ? Status() : v1::RunStatus();
    {
      MutexLock lock(mutex_);
      const absl::Time now = options_.now();
      coordinator_.Tick(now);
      if (looks) {
        next_look = now + kLookInterval;
        LookForStalled(now);
        for (CoordinatorNotes::Note& note : news_.Update(status, now)) {
          coordinator_.AddNote(std::move(note));
        }
      }
      aftermath = Settle(now);
    }
    Finish(std::move(aftermath));
    TickWatchers();
  }
}

void CoordinatorService::TickWatchers() {
  absl::Time now;
  bool is_over = false;
  {
    MutexLock lock(mutex_);
    now = options_.now();
    is_over = coordinator_.phase() == Phase::kFinished || coordinator_.phase() == Phase::kFailed;
  }
  watchers_.Tick(now, is_over);
}

CoordinatorService::Aftermath CoordinatorService::Settle(absl::Time now) {
  Aftermath aftermath;
  aftermath.notes = coordinator_.TakeNotes(absl::Now());
  aftermath.answers = parked_.TakeAnswered(coordinator_.changes(), now);
  return aftermath;
}

uint64_t CoordinatorService::ChangesToKeep() const {
  const std::deque<RunEvent>& events = coordinator_.events();
  return coordinator_.journal_changes() + (events.empty() ? 0 : events.back().number);
}

void CoordinatorService::Finish(Aftermath aftermath) {
  const bool is_empty =
      aftermath.answers.empty() && aftermath.notes.empty() && !aftermath.audit.has_value();
  if (options_.keep != nullptr) {
    MutexLock lock(mutex_);
    // Questions may have handed something out after Settle looked.
    to_keep_ = aftermath.keep_first = ChangesToKeep();
    if (aftermath.keep_first > kept_) {
      keeping_.NotifyAll();
      if (is_empty) return;
      // A disk that takes nothing must not make calls pile up that their callers have given up.
      const bool is_too_much = unfinished_.size() >= Calls::kMax;
      if (!is_stopping_ && !is_too_much) {
        unfinished_.push_back(std::move(aftermath));
        return;
      }
      Refuse(aftermath,
             is_stopping_ ? kIsStopping : "the coordinator's state cannot be kept at present");
    }
  }
  FinishNow(aftermath);
}

void CoordinatorService::NoteKeeping() {
  if (not_kept_.empty()) {
    return coordinator_.AddNote(
        {EventKind::kState, false, LogLine("the coordinator's state is kept again")});
  }
  // The log is told at once, while notes wait for the disk.
  const CoordinatorNotes::Note note = {EventKind::kState, true,
                                       LogLine(kIsNotKept, {{"reason", not_kept_}})};
  coordinator_.AddEvent(note, absl::Now());
}

void CoordinatorService::RunKeeper() {
  while (true) {
    std::string state;
    RunSpec settings;
    uint64_t keeps = 0;
    {
      MutexLock lock(mutex_);
      while (to_keep_ <= kept_ && !is_stopping_) keeping_.Wait(mutex_);
      if (to_keep_ <= kept_) return;
      keeps = ChangesToKeep();
      state = coordinator_.Save();
      settings = settings_;
    }
    const absl::Status written = options_.keep(state, settings);
    std::deque<Aftermath> finished;
    bool is_news = false;
    {
      MutexLock lock(mutex_);
      if (written.ok()) kept_ = keeps;
      is_news = not_kept_ != written.message();
      not_kept_ = std::string(written.message());
      if (is_news) NoteKeeping();
      coordinator_.HoldAnswers(!written.ok());
      while (!unfinished_.empty() && unfinished_.front().keep_first <= kept_) {
        finished.push_back(std::move(unfinished_.front()));
        unfinished_.pop_front();
      }
    }
    for (const Aftermath& aftermath : finished) FinishNow(aftermath);
    if (written.ok()) continue;
    if (is_news) LogError(kIsNotKept, {{"reason", written.message()}});
    MutexLock lock(mutex_);
    const auto next = std::chrono::steady_clock::now() + kKeepAgain;
    while (!is_stopping_ && keeping_.WaitUntil(mutex_, next)) {
    }
    if (is_stopping_) return;
  }
}

void CoordinatorService::Refuse(Aftermath& aftermath, const std::string& why) {
  for (auto& [call, status] : aftermath.answers) {
    status = absl::UnavailableError(why);
  }
}

void CoordinatorService::FinishNow(const Aftermath& aftermath) const {
  if (aftermath.audit.has_value() && options_.connections != nullptr) {
    options_.connections->audit().Note(*aftermath.audit);
  }
  for (const CoordinatorNotes::Note& note : aftermath.notes) {
    Log(note.is_warning ? spdlog::level::warn : spdlog::level::info, note.line);
  }
  for (const auto& [call, status] : aftermath.answers) call->OnAnswer(status);
}

void CoordinatorService::LookForStalled(absl::Time now) {
  for (const StalledWorkers::Change& change : stalled_.Update(SignsNow(now), now)) {
    const char* const text = change.is_stalled
                                 ? "worker stalled: it lives, and neither fetches nor pushes"
                                 : "worker goes on after it was stalled";
    coordinator_.AddNote(
        {EventKind::kWorker, change.is_stalled,
         LogLine(text, {{"worker", Value(change.worker)},
                        {"host", coordinator_.membership().workers().at(change.worker).host},
                        {"seconds", absl::ToDoubleSeconds(change.idle)}})});
  }
}

std::vector<StalledWorkers::Sign> CoordinatorService::SignsNow(absl::Time now) {
  std::vector<StalledWorkers::Sign> signs;
  const Phase phase = coordinator_.phase();
  // Under allreduce all stand still together, and no server sees for whom.
  const bool is_under_way = phase == Phase::kTraining || phase == Phase::kDraining;
  if (!is_under_way || options_.spec.workers_make_weights()) return signs;

  std::map<WorkerId, absl::Time> acts;
  std::set<WorkerId> awaited;
  for (const auto& [number, shard] : shards_) {
    const absl::Time heard = coordinator_.servers().servers()[number]->last_heard;
    for (const v1::ShardWorkerStatus& line : shard.workers()) {
      if (!line.has_idle_seconds()) continue;
      absl::Time& act = acts.emplace(WorkerId{line.worker()}, absl::InfinitePast()).first->second;
      act = std::max(act, heard - absl::Seconds(line.idle_seconds()));
    }
    for (const uint32_t worker : shard.waiting_for()) awaited.insert(WorkerId{worker});
  }
  // Whose push an aggregator holds until those of others have come waits for an answer, too.
  const uint32_t fanout = options_.spec.cluster.tree.fanout;
  std::map<uint32_t, std::set<uint32_t>> awaited_in_group;
  for (const auto& [name, aggregator] : aggregators_) {
    awaited_in_group[name.first].insert(aggregator.waiting_for().begin(),
                                        aggregator.waiting_for().end());
  }
  // Without a server, or the weights of a shard, nobody gets on.
  const std::optional<MissingMembers> missing = coordinator_.Missing(now);
  const bool lacks_server =
      (missing.has_value() && !missing->shards.empty()) ||
      (phase >= Phase::kTraining && !coordinator_.servers().AllInitialized(0));
  const bool work_ends = phase == Phase::kDraining || coordinator_.WorkEnds();
  for (const auto& [id, worker] : coordinator_.membership().workers()) {
    if (worker.state != Membership::State::kLive) continue;
    const bool has_to_push = awaited.empty() ? coordinator_.HasWork(id) : awaited.contains(id);
    if (work_ends && !has_to_push) continue;
    const Act& act = acts_[id];
    const auto at_shards = acts.find(id);
    absl::Time last = act.last;
    if (at_shards != acts.end()) last = std::max(last, at_shards->second);
    const auto group =
        fanout > 0 ? awaited_in_group.find(Value(id) / fanout) : awaited_in_group.end();
    const bool waits_in_group = group != awaited_in_group.end() && !group->second.empty() &&
                                !group->second.contains(Value(id));
    if (act.waits_for_work || waits_in_group || lacks_server) last = now;
    signs.push_back({.worker = id,
                     .incarnation = worker.incarnation,
                     .last_act = last,
                     .has_pushed = worker.pushed > WorkerClock{},
                     .measures = act.evaluation != 0});
  }
  return signs;
}

std::vector<v1::AggregatorStatus> CoordinatorService::AggregatorsNow(absl::Time now) {
  std::vector<v1::AggregatorStatus> all;
  const Aggregators& known = coordinator_.aggregators();
  for (uint32_t group = 0; group < known.groups(); ++group) {
    for (uint32_t shard = 0; shard < known.shards(); ++shard) {
      v1::AggregatorStatus& status = all.emplace_back(aggregators_[{group, shard}]);
      status.set_group(group);
      status.set_shard(shard);
      const std::optional<Aggregators::Aggregator>& aggregator = known.Of(group, ShardId{shard});
      if (!aggregator.has_value()) continue;
      status.set_address(aggregator->report.address);
      status.set_silent_seconds(absl::ToDoubleSeconds(now - aggregator->last_heard));
    }
  }
  return all;
}

StatusFacts CoordinatorService::Facts(absl::Time now) {
  StatusFacts facts = FactsOf(coordinator_, now);
  facts.not_kept = not_kept_;
  facts.version_skew = skew_.Skew();
  for (const auto& [shard, status] : shards_) {
    facts.shards.push_back(status);
    const absl::Duration silence = now - coordinator_.servers().servers()[shard]->last_heard;
    facts.shards.back().set_silent_seconds(absl::ToDoubleSeconds(silence));
    const Returns::Shard& returned = coordinator_.returns().shards()[shard];
    facts.shards.back().set_generation(Value(returned.order.generation));
    facts.shards.back().set_returned_to(Value(returned.order.from.version));
    facts.shards.back().set_versions_lost(returned.versions_lost);
  }
  facts.aggregators = AggregatorsNow(now);
  for (auto& [id, worker] : facts.workers) {
    worker.idle = stalled_.IdleFor(id, now);
    worker.is_stalled = stalled_.IsStalled(id);
    const auto heartbeat = heartbeats_.find(id);
    if (heartbeat != heartbeats_.end()) worker.heartbeat = heartbeat->second;
  }
  const Readers& readers = coordinator_.readers();
  const std::vector<uint64_t> listed = readers.MostBehind(kReadersListedMax);
  facts.readers_unlisted = readers.readers().size() - listed.size();
  for (const uint64_t number : listed) {
    const Readers::Reader& reader = readers.readers().at(number);
    v1::ReaderStatus& status = facts.readers.emplace_back(DescribeReader(reader, now));
    status.set_reader(number);
    status.set_lag(readers.LagOf(reader));
    const bool is_waited_for =
        coordinator_.orders().awaited_readers.contains(reader.report.instance);
    status.set_is_awaited(is_waited_for && readers.IsAwaited(reader));
  }
  return facts;
}

}  // namespace slipstream

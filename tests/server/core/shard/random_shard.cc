#include "tests/server/core/shard/random_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "tests/support/shard_machine_driver.h"

namespace slipstream {
namespace {

/// Readers that workers may have to wait for.
constexpr uint64_t kReaders[] = {7, 8};

/// The gradient of pushes that must not count.
constexpr double kWrongGradient = 1e9;

struct Wrong {
  PushOutcome outcome;
  void (*spoil)(PushFacts& push);
};

constexpr Wrong kWrongs[] = {
    {PushOutcome::kWrongRun, [](PushFacts& push) { ++push.header.identity.run; }},
    {PushOutcome::kWrongShardMap, [](PushFacts& push) { ++push.header.shard_map; }},
    {PushOutcome::kOutOfSequence,
     [](PushFacts& push) { push.header.sequence = Next(push.header.sequence); }},
    {PushOutcome::kShapeMismatch, [](PushFacts& push) { ++push.header.count; }},
    {PushOutcome::kLengthMismatch, [](PushFacts& push) { --push.values_received; }},
    {PushOutcome::kNonfinite, [](PushFacts& push) { push.is_finite = false; }},
    {PushOutcome::kFutureVersion,
     [](PushFacts& push) { push.header.base = Version{1'000'000'000}; }},
    {PushOutcome::kFenced,
     [](PushFacts& push) { push.header.identity.incarnation = Incarnation{}; }},
    {PushOutcome::kRetryLater,
     [](PushFacts& push) { push.header.identity.incarnation = Incarnation{1'000'000}; }}};

std::string ToString(const ShardEvent& event) {
  static constexpr const char* kNames[] = {
      "view",    "phase",      "initialized",     "push",        "pull",  "pull done", "cancel",
      "publish", "save order", "awaited readers", "process end", "return"};
  std::string text = kNames[static_cast<int>(event.kind)];
  if (event.call != CallId{}) text += ", call " + std::to_string(Value(event.call));
  if (event.kind != ShardEvent::Kind::kPush) return text;
  const PushHeader& header = event.push.header;
  return text + ", push " + std::to_string(Value(header.sequence)) + " of worker " +
         std::to_string(Value(header.identity.worker)) + " of version " +
         std::to_string(Value(header.base));
}

/// Returns options with plenty of room for pushes and waiting calls, which the properties do not
/// bound.
ShardMachine::Options OptionsOf(const ShardSetting& setting, RandomStream& random) {
  ShardMachine::Options options = TestOptions(setting.consistency);
  options.optimizer.staleness_scaling = setting.scaling;
  if (setting.publishes) {
    options.optimizer.kind = OptimizerSpec::Kind::kAssign;
    options.pushes = PushKind::kValues;
  }
  options.saves = true;
  options.versions_kept = 1 + random.Below(4);
  options.reader_pulls_max = 3 + random.Below(8);
  options.push_bytes_max = 1 << 20;
  options.parked_readers_max = options.parked_of_member_max = options.parked_max;
  return options;
}

ShardEffect ApplyPush(const ShardEvent& event, ShardMachine& machine) {
  ShardEffect effect;
  const PushAdmission admission = machine.OnPushHeader(event.push.header);
  if (const std::optional<PushReply>& refusal = admission.refusal) {
    effect.output.record = {event.push.header, *refusal, false};
    effect.output.answers.push_back({.call = event.call, .push = *refusal});
    return effect;
  }
  PushFacts push = event.push;
  push.push = admission.push;
  return {
      .output = machine.OnPush(event.call, push), .push = admission.push, .draft = admission.draft};
}

ShardOutput OutputOf(const ShardEvent& event, ShardMachine& machine) {
  switch (event.kind) {
    case ShardEvent::Kind::kView:
      return machine.OnView(event.view);
    case ShardEvent::Kind::kPhase:
      return machine.OnPhase(event.phase, machine.decided());
    case ShardEvent::Kind::kInitialized:
      return machine.OnInitialized(/*grant=*/1);
    case ShardEvent::Kind::kPull:
      return machine.OnPull(event.call, event.pull);
    case ShardEvent::Kind::kPullDone:
      return machine.OnPullDone(event.call, ReaderOf(event.pull));
    case ShardEvent::Kind::kPublish:
      return machine.OnPublished(Next(machine.published()));
    case ShardEvent::Kind::kSaveOrder:
      return machine.OnSaveOrder(event.save);
    case ShardEvent::Kind::kAwaitedReaders:
      return machine.OnAwaitedReaders(event.readers);
    case ShardEvent::Kind::kProcessEnd:
      return machine.OnProcessEnd(event.end);
    case ShardEvent::Kind::kCancel:
      EXPECT_TRUE(machine.OnCancelled(event.call)) << "it was waiting";
      return {};
    case ShardEvent::Kind::kReturn:
      machine.Restore(Returned(*event.saved, event.generation));
      return {};
    case ShardEvent::Kind::kPush:
      break;
  }
  return {};
}

}  // namespace

ShardPlan RandomShardPlan() {
  ShardPlan plan = TestPlan();
  plan.batches_per_epoch = 10;
  plan.examples_per_epoch = 320;
  return plan;
}

bool ShardSetting::has_naive_rounds() const {
  const PolicyKind policy = consistency.policy;
  const bool is_known = policy == PolicyKind::kHardsync || policy == PolicyKind::kSoftsync ||
                        policy == PolicyKind::kAsync;
  return is_known && scaling == StalenessScaling::kNone &&
         consistency.max_staleness.action == StalenessGuardSpec().action;
}

ShardEffect Apply(const ShardEvent& event, ShardMachine& machine) {
  ShardEffect effect = event.kind == ShardEvent::Kind::kPush
                           ? ApplyPush(event, machine)
                           : ShardEffect{.output = OutputOf(event, machine)};
  machine.ReleaseBytes(effect.output.folds.size() * RandomShardPlan().count * sizeof(float));
  machine.CheckInvariants();
  return effect;
}

RandomShard::RandomShard(const ShardSetting& setting, uint64_t seed, ShardsSeen& seen)
    : setting_(setting),
      random_(seed, 11),
      options_(OptionsOf(setting, random_)),
      machine_(options_),
      properties_(PropertiesOf(setting_, options_, seed, seen)) {
  const uint32_t ends = 5 + random_.Below(30);
  using Self = RandomShard;
  if (setting.publishes) {
    chances_ = {{20, &Self::Push},      {20, &Self::Publish},   {20, &Self::Pull},
                {ends, &Self::EndPull}, {5, &Self::Cancel},     {3, &Self::ChangeView},
                {2, &Self::OrderSave},  {1, &Self::EndProcess}, {1, &Self::Return}};
  } else {
    chances_ = {{35, &Self::Push},        {10, &Self::PushWrong}, {10, &Self::Repeat},
                {15, &Self::Pull},        {ends, &Self::EndPull}, {4, &Self::Cancel},
                {3, &Self::ChangeView},   {25, &Self::Publish},   {3, &Self::OrderSave},
                {2, &Self::AwaitReaders}, {1, &Self::EndProcess}, {1, &Self::Return}};
  }
  if (setting.awaits_readers) chances_.resize(4);
  machine_.SetPlan(RandomShardPlan());
  const uint32_t workers = setting.publishes ? 1 : 1 + random_.Below(5);
  Happen({.kind = Kind::kView, .view = FoundingView(workers)});
  Happen({.kind = Kind::kPhase, .phase = Phase::kTraining});
  Happen({.kind = Kind::kInitialized});
  if (setting.awaits_readers) AwaitReaders();
}

void RandomShard::Step() {
  const auto sum = [](uint32_t all, const auto& chance) { return all + chance.first; };
  uint32_t die = random_.Below(std::accumulate(chances_.begin(), chances_.end(), 0u, sum));
  auto chance = chances_.begin();
  for (; die >= chance->first; ++chance) die -= chance->first;
  (this->*chance->second)();
}

void RandomShard::End() {
  const bool drains = setting_.has_naive_rounds();
  const bool in_rounds = setting_.consistency.traits().one_per_member;
  const auto is_open = [this] {
    return machine_.round().contributions() + machine_.round().excused() > 0;
  };
  while (drains && in_rounds && is_open() && !testing::Test::HasFailure()) {
    PublishAll();
    const Member* member = machine_.view().Find(machine_.Lacks().members.front());
    Push(NextPush(*member, machine_.decided()), 0.5);
  }
  Happen({.kind = Kind::kAwaitedReaders});
  if (drains) Happen({.kind = Kind::kPhase, .phase = Phase::kDraining});
  PublishAll();
  for (int late = 0; late < 3 && drains; ++late) Push();
  if (testing::Test::HasFailure()) return;
  ASSERT_EQ(machine_.is_drained(), drains);
  // Nobody knows when rounds end whose rules nobody knows here, but a run that has failed is over.
  Happen({.kind = Kind::kPhase, .phase = drains ? Phase::kEvaluating : Phase::kFailed});
  while (!sending_.empty() && !testing::Test::HasFailure()) EndPull();
  if (testing::Test::HasFailure()) return;
  ASSERT_EQ(machine_.waiting(), 0u);
  ASSERT_EQ(machine_.pulls_under_way(), 0u);
  if (drains) {
    ASSERT_EQ(machine_.bytes_queued(), 0u);
  }
}

void RandomShard::Happen(const ShardEvent& event) {
  if (testing::Test::HasFailure()) return;
  std::string described;
  if (event.may_be_refused) described = Describe(machine_);
  const Version decided = machine_.decided();
  const ShardEffect effect = Apply(event, machine_);
  const ShardStep step = {event, effect, machine_, decided, std::move(described)};
  for (const std::unique_ptr<ShardProperty>& property : properties_) {
    SCOPED_TRACE("property: " + property->name());
    SCOPED_TRACE("event: " + ToString(event));
    property->Check(step);
    if (testing::Test::HasFailure()) return;
  }
  NoteCalls(event, effect.output);
}

void RandomShard::NoteCalls(const ShardEvent& event, const ShardOutput& output) {
  if (event.kind == Kind::kPush || event.kind == Kind::kPull) waiting_[event.call] = event.pull;
  waiting_.erase(event.kind == Kind::kCancel ? event.call : CallId{});
  sending_.erase(event.kind == Kind::kPullDone ? event.call : CallId{});
  for (const ShardAnswer& answer : output.answers) {
    auto call = waiting_.extract(answer.call);
    if (!answer.push.has_value() && !answer.refusal.has_value()) sending_.insert(std::move(call));
  }
  if (output.record.has_value() && output.record->took_effect) {
    sent_[event.push.header.identity.incarnation].push_back(event.push);
  }
  if (output.saves) saved_ = std::make_shared<ShardState>(machine_.state());
}

template <typename Container>
auto RandomShard::OneOf(Container& container) {
  return std::next(std::begin(container),
                   random_.Below(static_cast<uint32_t>(std::size(container))));
}

std::optional<Member> RandomShard::RandomMember() {
  const std::vector<Member>& members = machine_.view().members;
  return members.empty() ? std::nullopt : std::optional(*OneOf(members));
}

PushFacts RandomShard::NextPush(const Member& member, Version base) {
  PushFacts push = PushOf(Value(member.worker),
                          Value(machine_.members().At(member.worker).expected()), Value(base));
  push.header.identity = IdentityOf(member);
  push.header.kind = options_.pushes;
  push.header.generation = machine_.generation();
  push.header.examples = 1 + random_.Below(32);
  push.header.batches = {{random_.Below(100)}};
  push.header.clock = WorkerClock{clocks_[member.incarnation] + 1};
  push.header.pull = !setting_.publishes && random_.Below(2) == 0;
  push.header.rests = !push.header.pull && random_.Below(4) == 0;
  push.checksum = random_.NextWord();
  return push;
}

/// Returns a version that a worker may have: the newest published one, or a slightly older one of
/// this generation.
Version RandomShard::RandomBase() {
  const uint64_t newest = Value(machine_.published());
  const uint64_t back = random_.Below(3) == 0 ? random_.Below(4) : 0;
  return Version{std::max(newest - std::min(newest, back), Value(machine_.generation_begin()))};
}

void RandomShard::Push(const PushFacts& push, double gradient, std::optional<PushOutcome> wrong) {
  Happen({.kind = Kind::kPush,
          .call = CallId{++calls_},
          .push = push,
          .gradient = gradient,
          .wrong = wrong,
          .may_be_refused = gradient == kWrongGradient || !setting_.has_naive_rounds()});
}

void RandomShard::Push() {
  const std::optional<Member> member = RandomMember();
  const bool is_busy = setting_.awaits_readers && machine_.waiting() > machine_.WaitingPulls();
  if (!member.has_value() || is_busy) return;
  PushFacts push = NextPush(*member, RandomBase());
  uint64_t& clock = clocks_[member->incarnation];
  if (setting_.publishes) {
    clock += random_.Below(2);  // The weights of some clocks are never published.
    push.header.clock = WorkerClock{clock + 1};
    push.header.base = Version{random_.Below(static_cast<uint32_t>(Value(machine_.decided())) + 1)};
    push.header.label = random_.NextWord();
    stamps_.push_back({member->incarnation, clock + 1});
  }
  ++clock;
  const bool may_excuse =
      setting_.consistency.traits().one_per_member || !setting_.has_naive_rounds();
  if (may_excuse && random_.Below(6) == 0) {
    push.header.count = push.header.examples = push.values_received = 0;
  }
  Push(push, 2.0 * static_cast<double>(random_.Unit()) - 1.0);
}

void RandomShard::PushWrong() {
  const std::optional<Member> member = RandomMember();
  if (!member.has_value() || !setting_.has_naive_rounds()) return;
  const Wrong& wrong = *OneOf(kWrongs);
  PushFacts push = NextPush(*member, RandomBase());
  wrong.spoil(push);
  Push(push, kWrongGradient, wrong.outcome);
}

void RandomShard::Repeat() {
  const std::optional<Member> member = RandomMember();
  if (!member.has_value() || sent_[member->incarnation].empty()) return;
  PushFacts push = *OneOf(sent_[member->incarnation]);
  if (random_.Below(3) == 0) ++push.checksum;
  Push(push, kWrongGradient);
}

/// Returns the stamp of a version of late, of one that never was, or of one that may come.
Stamp RandomShard::RandomStamp() {
  const uint64_t published = Value(machine_.published());
  if (!setting_.publishes)
    return {.number = published - std::min<uint64_t>(published, 3) + random_.Below(6)};
  const Incarnation publisher = machine_.view().members.front().incarnation;
  const uint64_t clock = clocks_[publisher];
  const uint32_t die = random_.Below(4);
  if (die == 0) return {publisher, clock + 1 + random_.Below(3)};
  if (die == 1) return {publisher, random_.Below(static_cast<uint32_t>(clock + 1))};
  const size_t back = std::min<size_t>(random_.Below(6), stamps_.size());
  return back == 0 ? Stamp{} : stamps_[stamps_.size() - back];
}

void RandomShard::Pull() {
  PullRequest request = {.shard_map = RandomShardPlan().shard_map,
                         .min_generation = machine_.generation()};
  if (setting_.awaits_readers && machine_.WaitingPulls() + sending_.size() > 0) return;
  if (random_.Below(2) == 0) {
    const uint32_t ahead = setting_.awaits_readers ? 0 : random_.Below(4);
    request.min_version = Version{Value(machine_.published()) + ahead};
  }
  const std::optional<Member> member = RandomMember();
  if (member.has_value() && !setting_.publishes && random_.Below(4) > 0) {
    const uint64_t expected = Value(machine_.members().At(member->worker).expected());
    const bool is_late = expected > 1 && random_.Below(4) == 0;
    request.identity = IdentityOf(*member);
    request.trains = random_.Below(2) == 0;
    request.sequence =
        Sequence{is_late ? 1 + random_.Below(static_cast<uint32_t>(expected) - 1) : expected};
    request.clock = WorkerClock{clocks_[member->incarnation]};
  } else {
    request.reader = kReaders[random_.Below(2)];
    request.held = machine_.published();
  }
  const uint32_t exact_of_8 = setting_.awaits_readers ? 0 : setting_.publishes ? 4 : 1;
  if (random_.Below(8) < exact_of_8) request.exact = RandomStamp();
  Happen({.kind = Kind::kPull, .call = CallId{++calls_}, .pull = request});
}

void RandomShard::EndPull() {
  if (sending_.empty()) return;
  const auto pull = OneOf(sending_);
  Happen({.kind = Kind::kPullDone, .call = pull->first, .pull = pull->second});
}

void RandomShard::Cancel() {
  if (waiting_.empty()) return;
  Happen({.kind = Kind::kCancel, .call = OneOf(waiting_)->first});
}

/// Each of six workers may stay, leave, join or register again; a publisher registers again.
void RandomShard::ChangeView() {
  View view = {.number = ViewNumber{++views_}};
  const View& before = machine_.view();
  if (setting_.publishes) {
    incarnations_ += random_.Below(3);
    view.members.push_back({WorkerId{0}, Incarnation{++incarnations_}, true});
  }
  for (uint32_t id = setting_.publishes ? 6 : 0; id < 6; ++id) {
    const Member* member = before.Find(WorkerId{id});
    const uint32_t fate = random_.Below(6);
    if (member != nullptr && fate > 1) view.members.push_back(*member);
    if ((member == nullptr && fate > 2) || fate == 1) {
      view.members.push_back({WorkerId{id}, Incarnation{++incarnations_}, false});
    }
  }
  Happen({.kind = Kind::kView, .view = view});
}

void RandomShard::OrderSave() {
  const SaveOrder order = {.number = ++orders_,
                           .version = Version{Value(machine_.decided()) + random_.Below(3)}};
  Happen({.kind = Kind::kSaveOrder, .save = order});
}

void RandomShard::AwaitReaders() {
  LagLimits readers;
  for (const uint64_t reader : kReaders) {
    if (setting_.awaits_readers || random_.Below(2) == 0) readers[reader] = 1 + random_.Below(4);
  }
  Happen({.kind = Kind::kAwaitedReaders, .readers = readers});
}

/// The process ends, and the next one has come to the same state, but for calls and, perhaps, some
/// versions and the newest checkpoint.
void RandomShard::EndProcess() {
  const uint64_t oldest = Value(machine_.oldest_kept());
  const auto kept = static_cast<uint32_t>(Value(machine_.published()) - oldest + 1);
  EndedProcess end = {.oldest_kept = Version{oldest + random_.Below(kept)},
                      .bytes_held = machine_.bytes_queued()};
  if (random_.Below(2) == 0) end.saved = machine_.state().saves.last_saved();
  Happen({.kind = Kind::kProcessEnd, .end = end});
  waiting_.clear();
  sending_.clear();
}

/// The process ends, and the next one goes on from the state that was saved last.
void RandomShard::Return() {
  if (saved_ == nullptr) return;
  Happen({.kind = Kind::kReturn, .generation = Generation{++generation_}, .saved = saved_});
  waiting_.clear();
  sending_.clear();
  sent_.clear();
  Happen({.kind = Kind::kPhase, .phase = Phase::kTraining});
}

void RandomShard::Publish() {
  if (machine_.published() < machine_.decided()) Happen({.kind = Kind::kPublish});
}

void RandomShard::PublishAll() {
  while (machine_.published() < machine_.decided() && !testing::Test::HasFailure()) Publish();
}

}  // namespace slipstream

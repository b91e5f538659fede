#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "common/base/philox.h"
#include "tests/server/data_plane/shard_redo_fixture.h"
#include "tests/support/specs.h"

// Random workers, readers and orders come to a shard whose events are recorded. Now and then the
// events are told to another shard, and both must be the same; and now and then the process ends,
// and the other shard goes on.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;

constexpr size_t kCount = RecordedRun::kCount;

struct Setting {
  std::string name;
  ConsistencySpec consistency;
  RuleKind rule = RuleKind::kSgd;
  StalenessScaling scaling = StalenessScaling::kNone;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

/// How often the histories came to what the test is about.
struct Seen {
  size_t redone = 0;
  size_t ends = 0;
  size_t repeated = 0;
  size_t with_bases = 0;
  size_t with_unfinished = 0;
  size_t with_done_jobs = 0;
  size_t lost_saves = 0;
};

/// One random history of a shard, over several processes.
class History {
 public:
  History(const Setting& setting, uint64_t seed, Seen& seen)
      : random_(seed, 17), setting_(setting), seen_(seen) {
    options_.run.consistency = setting.consistency;
    options_.run.optimizer.kind = setting.rule;
    options_.run.optimizer.learning_rate = 0.1;
    options_.run.optimizer.staleness_scaling = setting.scaling;
    options_.run.training.pipeline_depth = setting.consistency.traits().one_per_member ? 1 : 2;
    options_.run.readers.versions_kept = 1 + static_cast<uint32_t>(seed % 3);
    options_.run.durability.level = DurabilitySpec::Level::kSynced;
    shard_ = std::make_unique<Shard>(options_);
    shard_->SetRecorder(events_);
    Begin();
  }

  void Step() {
    const uint32_t die = random_.Below(200);
    if (die < 60) {
      BeginPush();
    } else if (die < 110) {
      EndPush();
    } else if (die < 135) {
      Pull();
    } else if (die < 180) {
      DoJob();
    } else if (die < 184) {
      EndCall();
    } else if (die < 190) {
      GiveOrders();
    } else if (die < 192) {
      AskCoordinator();
    } else if (die < 198) {
      CompareWithRedone();
    } else {
      EndProcess();
    }
  }

 private:
  struct Arriving {
    PushHeader header;
    BegunPush begun;
    std::vector<float> values;
  };
  struct Effect {
    PushHeader header;
    std::vector<float> values;
    PushOutcome outcome{};
  };

  void Begin() {
    orders_ = RecordedRun::OrdersFor(3);
    Absorb(shard_->OnOrders(orders_));
    ASSERT_TRUE(RecordedRun::GiveInitialWeights(orders_, RandomValues(), *shard_).ok());
    while (shard_->has_job() || job_.has_value()) DoJob();
    ASSERT_FALSE(saves_.empty());
    ++orders_.number;
    orders_.phase = Phase::kTraining;
    Absorb(shard_->OnOrders(orders_));
  }

  uint64_t map() const { return orders_.model->shard_map.fingerprint(); }
  const ShardMachine& machine() const { return shard_->machine(); }
  CallId NewCall() { return CallId{++calls_}; }

  std::vector<float> RandomValues() {
    std::vector<float> values(kCount);
    for (float& value : values) value = random_.Uniform(-1, 1);
    return values;
  }

  template <typename Container>
  auto& OneOf(Container& all) {
    return *std::next(all.begin(), random_.Below(static_cast<uint32_t>(all.size())));
  }

  void Absorb(ShardResult result) {
    for (const Answer& answer : result.answers) {
      auto pull = waiting_pulls_.extract(answer.call);
      if (!pull.empty() && answer.refusal.ok()) sent_.insert(std::move(pull));
    }
    if (result.save == nullptr) return;
    EXPECT_FALSE(result.save->bases.contains(result.save->state.versions.decided()));
    const bool is_lost = random_.Below(4) == 0 && !saves_.empty();
    if (is_lost) {
      ++seen_.lost_saves;
    } else {
      saves_.emplace_back(*result.save);
      seen_.with_bases += result.save->bases.empty() ? 0 : 1;
      seen_.with_unfinished += result.save->unfinished.empty() ? 0 : 1;
    }
  }

  Version RandomBase(WorkerId worker, uint32_t slot) {
    const auto& given = machine().members().At(worker).given;
    const auto of_slot = given.find(slot);
    if (of_slot != given.end() && random_.Below(8) > 0) return OneOf(of_slot->second);
    const uint64_t published = Value(machine().published());
    return Version{published - std::min<uint64_t>(published, random_.Below(3))};
  }

  void BeginPush() {
    const Member& member = OneOf(orders_.view.members);
    PushHeader header = {.identity = RecordedRun::IdentityOf(member),
                         .sequence = machine().members().At(member.worker).expected(),
                         .shard_map = map(),
                         .count = kCount,
                         .examples = 1 + random_.Below(32),
                         .pull = random_.Below(2) == 0,
                         .slot = random_.Below(options_.run.training.pipeline_depth)};
    header.base = RandomBase(member.worker, header.slot);
    header.rests = !header.pull && random_.Below(4) == 0;
    header.clock = WorkerClock{++clocks_[member.worker]};
    if (random_.Below(8) == 0) header.trailer.absent.Add(random_.Below(2));
    if (random_.Below(16) == 0) header.identity.incarnation = Incarnation{900 + random_.Below(3)};
    if (random_.Below(10) == 0) header.count = header.examples = 0;
    BegunPush begun = shard_->BeginPush(header);
    if (begun.refusal.has_value()) return;
    std::vector<float> values = RandomValues();
    values.resize(header.count);
    if (header.count > 0 && random_.Below(16) == 0) {
      values.front() = std::numeric_limits<float>::infinity();
    }
    arriving_.push_back({header, std::move(begun), std::move(values)});
  }

  void EndPush() {
    if (arriving_.empty()) return;
    const auto place = arriving_.begin() + random_.Below(static_cast<uint32_t>(arriving_.size()));
    Arriving arriving = std::move(*place);
    arriving_.erase(place);
    if (random_.Below(10) == 0) {
      PushAssembly push(arriving.header, arriving.begun.push, std::move(arriving.begun.draft));
      push.CancelDraft();
      return shard_->AbandonPush(push);
    }
    PushAssembly push = RecordedRun::PushOf(arriving.header, arriving.values, arriving.begun);
    arriving.begun.draft.reset();
    ShardResult result = shard_->FinishPush(NewCall(), push);
    const PushRecord& record = *result.record;
    if (record.took_effect) {
      effects_[record.header.identity.worker] = {record.header, std::move(arriving.values),
                                                 record.reply.outcome};
    }
    Absorb(std::move(result));
  }

  void Pull() {
    PullRequest request = {.shard_map = map()};
    if (random_.Below(3) > 0) {
      const Member& member = OneOf(orders_.view.members);
      request.identity = RecordedRun::IdentityOf(member);
      request.trains = true;
      request.slot = random_.Below(options_.run.training.pipeline_depth);
      request.sequence = machine().members().At(member.worker).expected();
      request.clock = WorkerClock{clocks_[member.worker]};
    } else {
      request.reader = 7;
      request.held = machine().published();
    }
    if (random_.Below(4) == 0) request.min_version = Next(machine().decided());
    const CallId call = NewCall();
    waiting_pulls_[call] = ReaderOf(request);
    Absorb(shard_->Pull(call, request));
  }

  void DoJob() {
    if (!job_.has_value() && shard_->has_job()) {
      job_ = shard_->TakeJob();
      if (random_.Below(3) == 0) return;
    }
    if (!job_.has_value()) return;
    job_->Run();
    Absorb(shard_->FinishJob(*std::exchange(job_, std::nullopt)));
  }

  void EndCall() {
    if (!waiting_pulls_.empty() && random_.Below(3) == 0) {
      const CallId call = OneOf(waiting_pulls_).first;
      waiting_pulls_.erase(call);
      shard_->Cancel(call);
    } else if (!sent_.empty()) {
      const auto pull = sent_.extract(OneOf(sent_).first);
      Absorb(shard_->FinishPull(pull.key(), pull.mapped()));
    }
  }

  void GiveOrders() {
    ++orders_.number;
    switch (random_.Below(6)) {
      case 0:
        ChangeView();
        break;
      case 1:
        orders_.awaited_readers.clear();
        if (random_.Below(2) == 0) orders_.awaited_readers[7] = 1 + random_.Below(3);
        break;
      case 2:
        ChangeStage();
        break;
      default:
        ++orders_.save.number;
    }
    Absorb(shard_->OnOrders(orders_));
  }

  void ChangeView() {
    std::vector<Member> members;
    for (uint32_t id = 0; id < 4; ++id) {
      const Member* before = orders_.view.Find(WorkerId{id});
      const uint32_t fate = random_.Below(6);
      if (before != nullptr && fate > 0) members.push_back(*before);
      if (before == nullptr && fate > 2) {
        members.push_back({WorkerId{id}, Incarnation{++incarnations_}, false});
      }
    }
    if (members.empty()) return;
    orders_.view.number = ViewNumber{Value(orders_.view.number) + 1};
    orders_.view.members = std::move(members);
  }

  /// Where rounds need no shard to be at the version of another, a change may begin at once.
  void ChangeStage() {
    if (setting_.consistency.traits().one_per_member) return;
    if (orders_.stages.empty()) orders_.stages = StagesOf(options_.run);
    RunStage next = orders_.stages.back();
    next.learning_rate = 0.01 * (1 + random_.Below(20));
    next.begins_at_once = true;
    orders_.stages.push_back(next);
    orders_.stage = static_cast<uint32_t>(orders_.stages.size()) - 1;
  }

  void AskCoordinator() {
    shard_->OnCoordinatorAsked();
    if (random_.Below(2) == 0) shard_->OnCoordinatorAnswered();
  }

  /// Redoes the events behind one of the newest saves.
  void CompareWithRedone() {
    ++seen_.redone;
    const size_t back = random_.Below(static_cast<uint32_t>(std::min<size_t>(3, saves_.size())));
    Shard redone(options_);
    Redo(saves_[saves_.size() - 1 - back], redone);
    if (!testing::Test::HasFatalFailure()) ExpectSame(*shard_, redone);
  }

  void Redo(const SavedShard& save, Shard& redone) {
    BeginRedo(save, *orders_.model, redone);
    if (testing::Test::HasFatalFailure()) return;
    slipstream::Redo(events_.From(save.log), redone);
  }

  /// Ends the process. Half of the time the disk has not got the last events.
  void EndProcess() {
    ++seen_.ends;
    // A newer save may have been damaged.
    if (saves_.size() > 1 && random_.Below(4) == 0) saves_.pop_back();
    const SavedShard& save = saves_.back();
    const size_t events = events_.size() - events_.BeginOf(save.log);
    const bool is_cut = random_.Below(2) == 0;
    if (is_cut) {
      const uint32_t some = random_.Below(static_cast<uint32_t>(std::min<size_t>(events, 10)) + 1);
      // Now and then the save came to the disk long before the log.
      const bool has_little = random_.Below(3) == 0;
      events_.CutTo(has_little ? events_.BeginOf(save.log) + some : events_.size() - some);
    }
    auto next = std::make_unique<Shard>(options_);
    Redo(save, *next);
    if (testing::Test::HasFatalFailure()) return;
    if (!is_cut) ExpectSame(*shard_, *next);
    EXPECT_TRUE(next->is_returning());
    seen_.with_done_jobs += next->machine().published() < save.version ? 1 : 0;
    next->SetRecorder(events_);
    next->EndRedo();
    EXPECT_FALSE(next->is_returning());
    arriving_.clear();
    waiting_pulls_.clear();
    sent_.clear();
    job_.reset();
    calls_ = 0;
    shard_ = std::move(next);
    machine().CheckInvariants();
    EXPECT_EQ(machine().waiting() + machine().pulls_under_way(), 0u);
    // The new process is told the newest orders, also those that the dead one had heard.
    Absorb(shard_->OnOrders(orders_));
    RepeatPushes(is_cut);
  }

  /// Pushes that took effect are known in the next process.
  void RepeatPushes(bool may_be_lost) {
    for (const auto& [worker, effect] : effects_) {
      const Identity& identity = effect.header.identity;
      const MemberRecord* member = machine().members().Find(worker, identity.incarnation);
      if (member == nullptr) continue;
      if (may_be_lost && member->last_sequence < effect.header.sequence) continue;
      ASSERT_EQ(member->last_sequence, effect.header.sequence);
      BegunPush begun = shard_->BeginPush(effect.header);
      if (begun.refusal.has_value()) {
        ASSERT_EQ(begun.refusal->outcome, PushOutcome::kRetryLater) << begun.refusal->message;
        continue;
      }
      PushAssembly push = RecordedRun::PushOf(effect.header, effect.values, begun);
      ShardResult result = shard_->FinishPush(NewCall(), push);
      ++seen_.repeated;
      EXPECT_EQ(result.record->reply.outcome, PushOutcome::kDuplicate);
      EXPECT_EQ(result.record->reply.first_outcome, effect.outcome);
      EXPECT_EQ(result.record->reply.durability, Durability::kSynced);
      Absorb(std::move(result));
    }
    effects_.clear();
  }

  RandomStream random_;
  const Setting setting_;
  Seen& seen_;
  Shard::Options options_;
  ServerOrders orders_;
  EventList events_;
  std::unique_ptr<Shard> shard_;
  std::vector<SavedShard> saves_;  // Those on the disk.
  std::vector<Arriving> arriving_;
  std::optional<ShardJob> job_;
  std::map<CallId, Reader> waiting_pulls_;
  std::map<CallId, Reader> sent_;  // The pulls that were answered and are not done.
  std::map<WorkerId, uint64_t> clocks_;
  std::map<WorkerId, Effect> effects_;  // The newest pushes that took effect.
  uint64_t calls_ = 0;
  uint64_t incarnations_ = 100;
};

ConsistencySpec Guarded(StalenessGuardSpec::Action action) {
  ConsistencySpec spec = Softsync(2);
  spec.max_staleness = {action, 2};
  return spec;
}

class ShardRedoProperty : public testing::TestWithParam<Setting> {};

TEST_P(ShardRedoProperty, AShardThatIsToldTheEventsAgainIsTheSame) {
  Seen seen;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(GetParam().name + " seed " + std::to_string(seed));
    History history(GetParam(), seed, seen);
    for (int step = 0; step < 1000; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      history.Step();
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(seen.redone, 300u);
  EXPECT_GT(seen.ends, 100u);
  EXPECT_GT(seen.repeated, 50u);
  EXPECT_GT(seen.lost_saves, 20u);
  EXPECT_GT(seen.with_unfinished, 20u);
  EXPECT_GT(seen.with_done_jobs, 0u);
  if (RowOf(GetParam().scaling).uses_base_weights) {
    EXPECT_GT(seen.with_bases, 20u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ShardRedoProperty,
    testing::Values(
        Setting{"async", {Policy::kAsync}, RuleKind::kMomentum},
        Setting{"softsync", Softsync(2), RuleKind::kAdam},
        Setting{"hardsync", {Policy::kHardsync}, RuleKind::kMomentum},
        Setting{"backup", {Policy::kBackup}, RuleKind::kSgd},
        Setting{"ssp", {Policy::kSsp}, RuleKind::kAdam},
        Setting{"blocks", Guarded(StalenessGuardSpec::Action::kBlock), RuleKind::kMomentum},
        Setting{"mean", Softsync(2), RuleKind::kLamb, StalenessScaling::kMean},
        Setting{
            "compensated", {Policy::kAsync}, RuleKind::kSgd, StalenessScaling::kDelayCompensated},
        Setting{"adaptive", Softsync(2), RuleKind::kMomentum, StalenessScaling::kDelayAdaptive},
        Setting{"gap_aware", {Policy::kAsync}, RuleKind::kAdam, StalenessScaling::kGapAware}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream

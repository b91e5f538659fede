#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/philox.h"
#include "server/core/shard_return.h"
#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"

// Random workers and readers call two machines alike: one that keeps its state, and one whose state
// goes through bytes now and then. Both must decide the same. Now and then both return to the state
// that was saved last.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using PushFacts = ShardMachine::PushFacts;

/// How often the histories came to what the test is about.
struct Seen {
  size_t through_bytes = 0;
  size_t saves = 0;
  size_t returns = 0;
};

void ExpectSame(const ShardOutput& a, const ShardOutput& b) {
  ASSERT_TRUE(std::ranges::equal(a.folds, b.folds));
  ASSERT_EQ(a.update.has_value(), b.update.has_value());
  if (a.update.has_value()) {
    ASSERT_EQ(a.update->from, b.update->from);
    ASSERT_EQ(a.update->is_drafted, b.update->is_drafted);
    ASSERT_EQ(a.update->is_empty, b.update->is_empty);
    ASSERT_EQ(a.update->inverse_divisor, b.update->inverse_divisor);
    ASSERT_EQ(a.update->learning_rate, b.update->learning_rate);
    ASSERT_EQ(a.update->step_scale, b.update->step_scale);
  }
  ASSERT_EQ(a.answers.size(), b.answers.size());
  for (size_t i = 0; i < a.answers.size(); ++i) {
    ASSERT_EQ(a.answers[i].call, b.answers[i].call);
    ASSERT_EQ(a.answers[i].refusal, b.answers[i].refusal);
    ASSERT_EQ(a.answers[i].push, b.answers[i].push);
    ASSERT_EQ(a.answers[i].weights, b.answers[i].weights);
    ASSERT_EQ(a.answers[i].trainers, b.answers[i].trainers);
  }
  ASSERT_EQ(a.lagged, b.lagged);
  ASSERT_EQ(a.record.has_value(), b.record.has_value());
  if (a.record.has_value()) {
    ASSERT_EQ(a.record->reply, b.record->reply);
    ASSERT_EQ(a.record->took_effect, b.record->took_effect);
  }
  ASSERT_EQ(a.keeps_payload, b.keeps_payload);
  ASSERT_EQ(a.saves, b.saves);
}

/// One random history of both machines.
class History {
 public:
  History(const ShardMachine::Options& options, uint64_t seed, Seen& seen)
      : random_(seed, 31), kept_(options), encoded_(options), seen_(seen) {
    for (ShardMachine* machine : {&kept_, &encoded_}) machine->SetPlan(Plan());
    Do([](ShardMachine& machine) { return machine.OnView(FoundingView(3)); });
    Do([](ShardMachine& machine) { return machine.OnPhase(Phase::kTraining, Version{}); });
    Do([](ShardMachine& machine) { return machine.OnInitialized(1); });
  }

  void Step() {
    const uint32_t die = random_.Below(100);
    if (die < 45) {
      Push();
    } else if (die < 60) {
      Pull();
    } else if (die < 80) {
      Publish();
    } else if (die < 84) {
      OrderSave();
    } else if (die < 86) {
      ChangeView();
    } else if (die < 88) {
      AwaitReaders();
    } else if (die < 98) {
      GoThroughBytes();
    } else if (saved_.has_value()) {
      Return();
    }
  }

 private:
  static ShardPlan Plan() {
    ShardPlan plan = TestPlan();
    plan.batches_per_epoch = 10;
    plan.examples_per_epoch = 320;
    return plan;
  }

  /// Has the event happen to both machines.
  template <typename Event>
  void Do(Event event) {
    const ShardOutput output = event(kept_);
    ExpectSame(output, event(encoded_));
    for (ShardMachine* machine : {&kept_, &encoded_}) {
      machine->CheckInvariants();
      machine->ReleaseBytes(output.folds.size() * Plan().count * sizeof(float));
    }
    ASSERT_EQ(Describe(kept_), Describe(encoded_));
    ASSERT_EQ(kept_.guard_counts().rejected, encoded_.guard_counts().rejected);
    ASSERT_EQ(kept_.guard_counts().rounds_held_back, encoded_.guard_counts().rounds_held_back);
    for (const auto& [_, worker, incarnation] : Identities()) {
      ASSERT_EQ(kept_.NewestOf(worker, incarnation).batch_end,
                encoded_.NewestOf(worker, incarnation).batch_end);
    }
    for (const ShardAnswer& answer : output.answers) {
      auto pull = waiting_pulls_.extract(answer.call);
      if (!answer.refusal.has_value()) sent_.insert(std::move(pull));
    }
    if (!output.saves) return;
    ++seen_.saves;
    ASSERT_EQ(kept_.round().contributions(), 0u);
    saved_ = kept_.state();
  }

  std::vector<Identity> Identities() const {
    std::vector<Identity> identities;
    for (const Member& member : kept_.view().members) identities.push_back(IdentityOf(member));
    return identities;
  }

  const Member& RandomMember() {
    const std::vector<Member>& members = kept_.view().members;
    return members[random_.Below(static_cast<uint32_t>(members.size()))];
  }

  void Push() {
    const Member member = RandomMember();
    const uint64_t published = Value(kept_.published());
    const uint64_t oldest = std::max(published, Value(kept_.life_begin()) + 2) - 2;
    const uint64_t base = random_.Below(4) == 0 ? std::min(oldest, published) : published;
    PushFacts push = PushOf(Value(member.worker), 1, base);
    push.header.identity = IdentityOf(member);
    push.header.sequence = kept_.members().At(member.worker).expected();
    push.header.life = kept_.life();
    push.header.examples = 1 + random_.Below(32);
    push.header.batches = {{random_.Below(100)}};
    push.header.pull = random_.Below(2) == 0;
    push.header.rests = !push.header.pull && random_.Below(4) == 0;
    push.header.clock = WorkerClock{++clocks_[member.worker]};
    push.checksum = random_.NextWord();
    if (random_.Below(8) == 0) push.header.count = push.header.examples = push.values_received = 0;
    const PushAdmission admission = kept_.OnPushHeader(push.header);
    const PushAdmission same = encoded_.OnPushHeader(push.header);
    ASSERT_EQ(admission.refusal, same.refusal);
    ASSERT_EQ(admission.push, same.push);
    ASSERT_EQ(admission.draft, same.draft);
    if (admission.refusal.has_value()) return;
    push.push = admission.push;
    const CallId call = NewCall();
    Do([&](ShardMachine& machine) { return machine.OnPush(call, push); });
  }

  void Pull() {
    const Member member = RandomMember();
    PullRequest request = {.shard_map = Plan().shard_map, .min_life = kept_.life()};
    if (random_.Below(3) > 0) {
      request.identity = IdentityOf(member);
      request.trains = true;
      request.sequence = kept_.members().At(member.worker).expected();
      request.clock = WorkerClock{clocks_[member.worker]};
    } else {
      request.reader = 7;
      request.held = kept_.published();
    }
    if (random_.Below(4) == 0) request.min_version = Next(kept_.decided());
    const CallId call = NewCall();
    waiting_pulls_[call] = ReaderOf(request);
    Do([&](ShardMachine& machine) { return machine.OnPull(call, request); });
    if (random_.Below(2) == 0) EndPulls();
  }

  void EndPulls() {
    while (!sent_.empty()) {
      const auto pull = sent_.extract(sent_.begin());
      Do([&](ShardMachine& machine) { return machine.OnPullDone(pull.key(), pull.mapped()); });
    }
  }

  void Publish() {
    if (kept_.published() == kept_.decided()) return;
    Do([](ShardMachine& machine) { return machine.OnPublished(Next(machine.published())); });
  }

  void OrderSave() {
    const SaveOrder order = {.number = ++orders_,
                             .version = Version{Value(kept_.decided()) + random_.Below(3)}};
    Do([&](ShardMachine& machine) { return machine.OnSaveOrder(order); });
  }

  void ChangeView() {
    View view = {.number = ViewNumber{++views_}};
    for (uint32_t id = 0; id < 4; ++id) {
      const Member* before = kept_.view().Find(WorkerId{id});
      const uint32_t fate = random_.Below(6);
      if (before != nullptr && fate > 0) view.members.push_back(*before);
      if (before == nullptr && fate > 2) {
        view.members.push_back({WorkerId{id}, Incarnation{++incarnations_}, false});
      }
    }
    if (view.members.empty()) return;
    Do([&](ShardMachine& machine) { return machine.OnView(view); });
  }

  void AwaitReaders() {
    LagLimits readers;
    if (random_.Below(2) == 0) readers[7] = 1 + random_.Below(3);
    Do([&](ShardMachine& machine) { return machine.OnAwaitedReaders(readers); });
  }

  /// Ends all calls, and has one machine go on from its state as bytes.
  void GoThroughBytes() {
    for (const PendingCall& call : std::vector<PendingCall>(kept_.state().waiting.all())) {
      for (ShardMachine* machine : {&kept_, &encoded_})
        ASSERT_TRUE(machine->OnCancelled(call.call));
    }
    waiting_pulls_.clear();
    EndPulls();
    if (kept_.round().contributions() > 0 || kept_.bytes_queued() > 0) return;
    ++seen_.through_bytes;
    const std::string bytes = EncodeShardState(encoded_.state());
    ASSERT_EQ(bytes, EncodeShardState(kept_.state()));
    absl::StatusOr<ShardState> state = DecodeShardState(bytes);
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_EQ(EncodeShardState(*state), bytes);
    encoded_.Restore(*std::move(state));
  }

  /// Ends both processes. The machines go on from the state that was saved last, one of them
  /// through bytes.
  void Return() {
    ++seen_.returns;
    ++life_;
    kept_.Restore(Returned(*saved_, Life{life_}));
    absl::StatusOr<ShardState> state = DecodeShardState(EncodeShardState(*saved_));
    ASSERT_TRUE(state.ok()) << state.status();
    encoded_.Restore(Returned(*std::move(state), Life{life_}));
    waiting_pulls_.clear();
    sent_.clear();
    ASSERT_EQ(kept_.decided(), saved_->versions.decided());
    ASSERT_EQ(EncodeShardState(kept_.state()), EncodeShardState(encoded_.state()));
    // The machine knows no view after the one that was saved. Members of later views are gone.
    Do([](ShardMachine& machine) { return machine.OnPhase(Phase::kTraining, Version{}); });
  }

  CallId NewCall() { return CallId{++calls_}; }

  RandomStream random_;
  ShardMachine kept_;
  ShardMachine encoded_;
  Seen& seen_;
  std::optional<ShardState> saved_;
  std::map<CallId, Reader> waiting_pulls_;
  std::map<CallId, Reader> sent_;  // The pulls that were answered and are not done.
  std::map<WorkerId, uint64_t> clocks_;
  uint64_t calls_ = 0;
  uint64_t orders_ = 0;
  uint64_t views_ = 1;
  uint64_t incarnations_ = 100;
  uint64_t life_ = 0;
};

struct Setting {
  std::string name;
  ConsistencySpec consistency;
  StalenessScaling scaling = StalenessScaling::kNone;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

ConsistencySpec Guarded(StalenessGuardSpec::Action action) {
  ConsistencySpec spec = Softsync(2);
  spec.max_staleness = {action, 2};
  return spec;
}

class ShardReturnProperty : public testing::TestWithParam<Setting> {};

TEST_P(ShardReturnProperty, AMachineWhoseStateWentThroughBytesDecidesTheSame) {
  Seen seen;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(GetParam().name + " seed " + std::to_string(seed));
    ShardMachine::Options options = TestOptions(GetParam().consistency);
    options.optimizer.staleness_scaling = GetParam().scaling;
    options.saves = true;
    options.versions_kept = 1 + seed % 3;
    options.push_bytes_max = 1 << 20;
    History history(options, seed, seen);
    for (int step = 0; step < 300; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      history.Step();
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(seen.through_bytes, 500u);
  EXPECT_GT(seen.saves, 100u);
  EXPECT_GT(seen.returns, 100u);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, ShardReturnProperty,
    testing::Values(Setting{"hardsync", {Policy::kHardsync}}, Setting{"backup", {Policy::kBackup}},
                    Setting{"softsync2", Softsync(2)}, Setting{"async", {Policy::kAsync}},
                    Setting{"ssp", {Policy::kSsp}},
                    Setting{"blocks", Guarded(StalenessGuardSpec::Action::kBlock)},
                    Setting{"rejects", Guarded(StalenessGuardSpec::Action::kReject)},
                    Setting{"mean", Softsync(2), StalenessScaling::kMean},
                    Setting{"compensated", Softsync(2), StalenessScaling::kDelayCompensated}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream

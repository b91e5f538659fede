#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/philox.h"
#include "tests/server/core/naive_shard.h"
#include "tests/support/shard_machine_driver.h"
#include "tests/support/specs.h"

// Random workers send right and wrong messages to a core. After each, a naive model of the same
// rules says what the result must be.

namespace slipstream {
namespace {

using Policy = ConsistencySpec::Policy;
using PushFacts = ShardMachine::PushFacts;

struct Wrong {
  PushOutcome outcome;
  std::function<void(PushFacts&)> spoil;
};

const std::vector<Wrong>& Wrongs() {
  static const std::vector<Wrong> wrongs = {
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
  return wrongs;
}

/// Returns options with plenty of room for pushes, since the naive model has no bound on bytes.
ShardMachine::Options RoomyOptions(const ConsistencySpec& consistency) {
  ShardMachine::Options options = TestOptions(consistency);
  options.push_bytes_max = 1 << 20;
  return options;
}

/// One random history. Every method that acts also checks what the action itself promises.
class History {
 public:
  History(const ConsistencySpec& consistency, uint64_t seed)
      : random_(seed, 11), naive_(consistency), driver_(RoomyOptions(consistency)) {
    const View view = FoundingView(1 + random_.Below(5));
    next_incarnation_ = 100;
    driver_.Start(view);
    naive_.OnView(view);
  }

  void Step() {
    const Version decided = core().decided();
    const Version published = core().published();
    const uint32_t die = random_.Below(100);
    if (die < 45) {
      PushRight();
    } else if (die < 55) {
      PushWrong();
    } else if (die < 65) {
      Repeat();
    } else if (die < 75) {
      Pull();
    } else if (die < 79) {
      Cancel();
    } else if (die < 82) {
      ChangeView();
    } else {
      Publish();
    }
    ASSERT_LE(Value(core().decided()) - Value(decided), 1u);
    ASSERT_LE(Value(core().published()) - Value(published), 1u);
    CheckAgreement();
  }

  /// Ends the run as the coordinator would. Afterwards no call may be waiting.
  void End() {
    const auto is_open = [this] { return !naive_.round.empty() || !naive_.excused.empty(); };
    while (naive_.is_hardsync() && is_open()) {
      PublishAll();
      const Member* member = naive_.view.Find(naive_.Awaited().front());
      Push(*member, core().decided(), false, 0.5);
    }
    naive_.Drain();
    driver_.OnPhase(Phase::kDraining, Value(core().decided()));
    PublishAll();
    CheckAgreement();

    ASSERT_TRUE(core().is_drained());
    ASSERT_TRUE(driver_.waiting().empty());
    ASSERT_EQ(core().waiting(), 0u);
    ASSERT_EQ(driver_.payloads_held(), 0u);
    ASSERT_EQ(core().bytes_queued(), 0u);
    uint64_t counted = 0;
    for (const std::vector<GivenPush>& round : naive_.closed) counted += round.size();
    ASSERT_EQ(core().lag().gradients(), counted);
  }

 private:
  const ShardMachine& core() const { return driver_.core(); }

  const Member* RandomMember() {
    const std::vector<Member>& members = naive_.view.members;
    if (members.empty()) return nullptr;
    return &members[random_.Below(static_cast<uint32_t>(members.size()))];
  }

  PushFacts NextPush(const Member& member, Version base) {
    const uint64_t sequence = sent_[member.incarnation].size() + 1;
    PushFacts push = PushOf(Value(member.worker), sequence, Value(base));
    push.header.identity = IdentityOf(member);
    push.header.examples = 1 + random_.Below(32);
    push.header.pull = random_.Below(2) == 0;
    push.checksum = random_.NextWord();
    return push;
  }

  // Returns a base version that a worker may have: the newest published version or a slightly older
  // one.
  Version RandomBase() {
    const uint64_t newest = Value(core().published());
    const uint64_t back = random_.Below(3) == 0 ? random_.Below(4) : 0;
    return Version{newest - std::min(newest, back)};
  }

  void PushRight() {
    const Member* member = RandomMember();
    if (member == nullptr) return;
    const bool is_excuse = naive_.is_hardsync() && random_.Below(6) == 0;
    Push(*member, RandomBase(), is_excuse, 2.0 * static_cast<double>(random_.Unit()) - 1.0);
  }

  void Push(const Member& member, Version base, bool is_excuse, double gradient) {
    PushFacts push = NextPush(member, base);
    if (is_excuse) push.header.count = push.header.examples = push.values_received = 0;
    const Version decided = naive_.decided;
    const bool is_late = naive_.IsLate(member.worker, base);

    const PushDecision decision = driver_.Push(push, gradient);

    sent_[member.incarnation].emplace_back(push, decision.reply);
    ASSERT_TRUE(decision.took_effect) << decision.reply.message;
    ASSERT_EQ(decision.reply.staleness, Value(decided) - Value(base));
    ASSERT_EQ(decision.retained, !is_late && !is_excuse);
    ASSERT_EQ(decision.reply.outcome == PushOutcome::kDroppedLate, is_late);
    if (!is_late) {
      ASSERT_EQ(decision.reply.version, Next(decided));
      if (is_excuse) {
        naive_.Excuse(member.worker);
      } else {
        naive_.Join({member.worker, base, push.header.examples, gradient});
      }
    }
    if (push.header.pull) {
      ASSERT_TRUE(decision.answer.has_value());
      const Version want = naive_.is_hardsync() ? decision.reply.version : naive_.decided;
      naive_.owes_from.emplace(member.worker, want);
      NoteExchange(*decision.answer, want);
    } else if (decision.answer.has_value()) {
      NotePull(*decision.answer, decision.reply.version);
    }
  }

  // The push determines which version answers it.
  void NoteExchange(const std::variant<Serve, Park>& answer, Version want) {
    NotePull(answer, want);
    if (const Serve* serve = std::get_if<Serve>(&answer)) {
      ASSERT_EQ(serve->version, want);
      ASSERT_EQ(serve->work.has_value(), naive_.is_hardsync());
    }
  }

  void NotePull(const std::variant<Serve, Park>& answer, Version want) {
    if (const Serve* serve = std::get_if<Serve>(&answer)) {
      ASSERT_EQ(serve->version, core().published());
      ASSERT_GE(serve->version, want);
    } else {
      ASSERT_GT(want, core().published());
      wanted_.emplace(std::get<Park>(answer).call, want);
    }
  }

  void PushWrong() {
    const Member* member = RandomMember();
    if (member == nullptr) return;
    const Wrong& wrong = Wrongs()[random_.Below(static_cast<uint32_t>(Wrongs().size()))];
    PushFacts push = NextPush(*member, RandomBase());
    wrong.spoil(push);
    const std::string before = Describe(core());

    const PushDecision decision = driver_.Push(push, 1e9);

    ASSERT_EQ(Name(decision.reply.outcome), Name(wrong.outcome));
    ASSERT_FALSE(decision.took_effect);
    ASSERT_EQ(Describe(core()), before);
  }

  void Repeat() {
    const Member* member = RandomMember();
    if (member == nullptr || sent_[member->incarnation].empty()) return;
    const auto& sent = sent_[member->incarnation];
    const size_t index = random_.Below(static_cast<uint32_t>(sent.size()));
    auto [push, first] = sent[index];
    const bool is_kept = index + MemberRecord::kAnswersKept >= sent.size();
    const bool is_changed = random_.Below(3) == 0;
    if (is_changed) ++push.checksum;
    const std::string before = Describe(core());
    const uint64_t parked = core().waiting();

    const PushDecision decision = driver_.Push(push, 1e9);

    ASSERT_FALSE(decision.took_effect);
    ASSERT_FALSE(decision.retained);
    if (!is_kept || is_changed) {
      const PushOutcome refusal =
          is_kept ? PushOutcome::kSequenceReused : PushOutcome::kOutOfSequence;
      ASSERT_EQ(Name(decision.reply.outcome), Name(refusal));
      ASSERT_EQ(Describe(core()), before);
      return;
    }
    first.first_outcome = std::exchange(first.outcome, PushOutcome::kDuplicate);
    ASSERT_EQ(decision.reply, first);
    if (decision.answer.has_value()) {
      const bool is_applied = sent[index].second.outcome == PushOutcome::kApplied;
      const Version want = is_applied ? std::max(first.version, naive_.decided)
                                      : naive_.VersionAfterPush(member->worker);
      if (push.header.pull && index + 1 == sent.size())
        naive_.owes_from.emplace(member->worker, want);
      NotePull(*decision.answer, want);
    }
    ASSERT_LE(core().waiting(), parked + 1);
  }

  void Pull() {
    const Member* member = RandomMember();
    const bool reads = member == nullptr || random_.Below(4) == 0;
    PullRequest request = {.shard_map = TestPlan().shard_map,
                           .min_version = Version{Value(core().published()) + random_.Below(4)}};
    if (random_.Below(2) == 0) request.min_version = Version{};
    Version want = request.min_version;
    bool is_to_train = false;
    if (!reads) {
      request.identity = IdentityOf(*member);
      request.trains = random_.Below(2) == 0;
      const uint64_t expected = sent_[member->incarnation].size() + 1;
      const bool is_late = expected > 1 && random_.Below(4) == 0;
      request.sequence = Sequence{is_late ? 1 + random_.Below(expected - 1) : expected};
      is_to_train = request.trains && !is_late;
      if (is_to_train && naive_.is_hardsync()) {
        want = std::max(want, naive_.decided);
        naive_.Ask(member->worker, want);
      }
    }

    const PullDecision decision = driver_.Pull(request);

    ASSERT_FALSE(std::holds_alternative<PullRefusal>(decision));
    if (const Serve* serve = std::get_if<Serve>(&decision)) {
      ASSERT_EQ(serve->work.has_value(), is_to_train && naive_.is_hardsync());
      NotePull(*serve, want);
    } else {
      NotePull(std::get<Park>(decision), want);
    }
  }

  void Cancel() {
    if (driver_.waiting().empty()) return;
    auto waiting = driver_.waiting().begin();
    std::advance(waiting, random_.Below(static_cast<uint32_t>(driver_.waiting().size())));
    const CallId call = *waiting;
    driver_.Cancel(call);
    wanted_.erase(call);
  }

  // Each of six workers may stay, leave, join or register again.
  void ChangeView() {
    View view{.number = ViewNumber{Value(naive_.view.number) + 1}};
    for (uint32_t id = 0; id < 6; ++id) {
      const Member* before = naive_.view.Find(WorkerId{id});
      const uint32_t fate = random_.Below(6);
      if (before != nullptr && fate > 1) view.members.push_back(*before);
      if ((before == nullptr && fate > 2) || fate == 1) {
        view.members.push_back({WorkerId{id}, Incarnation{next_incarnation_++}, false});
      }
    }
    driver_.OnView(view);
    naive_.OnView(view);
  }

  void Publish() {
    if (driver_.PublishNext()) naive_.published = Next(naive_.published);
    for (auto it = wanted_.begin(); it != wanted_.end();) {
      const auto released = driver_.released().find(it->first);
      if (released != driver_.released().end() && !core().is_drained()) {
        ASSERT_EQ(released->second.version, it->second) << "as soon as it is there";
      }
      it = released == driver_.released().end() ? std::next(it) : wanted_.erase(it);
    }
  }

  void PublishAll() {
    while (core().published() < core().decided()) Publish();
  }

  void CheckAgreement() {
    core().CheckInvariants();
    ASSERT_EQ(core().decided(), naive_.decided);
    ASSERT_EQ(core().published(), naive_.published);
    ASSERT_LE(core().published(), core().decided());
    ASSERT_EQ(core().round().contributions(), naive_.round.size());
    ASSERT_EQ(core().round().excused(), naive_.excused.size());
    ASSERT_EQ(driver_.LackedMembers(), naive_.Awaited());
    ASSERT_EQ(core().waiting(), driver_.waiting().size());
    for (const CallId call : driver_.waiting()) {
      const auto want = wanted_.find(call);
      ASSERT_NE(want, wanted_.end());
      ASSERT_GT(want->second, core().published());
    }
    uint64_t gradients = 0;
    for (const auto& [worker, count] : naive_.joined) {
      ASSERT_EQ(core().lag().workers().at(worker).pushes, count);
      gradients += count;
    }
    ASSERT_EQ(core().lag().gradients(), gradients);
    for (const Member& member : naive_.view.members) {
      ASSERT_EQ(Value(core().members().At(member.worker).expected()),
                sent_[member.incarnation].size() + 1);
    }
    CheckUpdates();
  }

  // Checks the updates made since the last call.
  void CheckUpdates() {
    ASSERT_EQ(driver_.updates().size(), naive_.closed.size());
    for (; updates_checked_ < naive_.closed.size(); ++updates_checked_) {
      const std::vector<GivenPush>& given = naive_.closed[updates_checked_];
      const ShardMachineDriver::DoneUpdate& done = driver_.updates()[updates_checked_];
      ASSERT_EQ(done.folded.size(), given.size());
      ASSERT_EQ(done.update.is_empty, given.empty());
      double sum = 0;
      double weights = 0;
      std::vector<WorkerId> workers;
      std::vector<Version> bases;
      for (const GivenPush& gradient : given) {
        const double weight = naive_.is_hardsync() ? gradient.examples : 1.0;
        sum += weight * gradient.gradient;
        weights += weight;
        workers.push_back(gradient.worker);
        bases.push_back(gradient.base);
      }
      // Weights and divisor are floats: the error is a few roundings of numbers below 1.
      const std::vector<double>& model = driver_.weights();
      const double step = model[updates_checked_] - model[updates_checked_ + 1];
      ASSERT_NEAR(step, given.empty() ? 0.0 : sum / weights, 2e-6);
      ASSERT_TRUE(std::is_permutation(workers.begin(), workers.end(), done.folded.begin()));
      if (!naive_.is_hardsync()) {
        ASSERT_EQ(done.folded, workers) << "in order of completion";
      }
      if (given.empty()) continue;
      const LagTracker::VectorClock& clock = core().lag().vector_clocks().back();
      ASSERT_EQ(Value(clock.version), updates_checked_ + 1);
      ASSERT_EQ(clock.bases, bases);
    }
  }

  RandomStream random_;
  NaiveShard naive_;
  ShardMachineDriver driver_;
  uint64_t next_incarnation_ = 0;
  std::map<Incarnation, std::vector<std::pair<PushFacts, PushReply>>> sent_;
  std::map<CallId, Version> wanted_;
  size_t updates_checked_ = 0;
};

struct Setting {
  std::string name;
  ConsistencySpec consistency;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

class ShardMachineProperty : public testing::TestWithParam<Setting> {};

TEST_P(ShardMachineProperty, AgreesWithTheNaiveModelUnderRandomHistories) {
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(GetParam().name + " seed " + std::to_string(seed));
    History history(GetParam().consistency, seed);
    for (int step = 0; step < 300; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      history.Step();
      if (testing::Test::HasFailure()) return;
    }
    history.End();
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, ShardMachineProperty,
                         testing::Values(Setting{"hardsync", {Policy::kHardsync}},
                                         Setting{"softsync1", {Policy::kSoftsync}},
                                         Setting{"softsync2", Softsync(2)},
                                         Setting{"async", {Policy::kAsync}}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slipstream

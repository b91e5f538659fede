#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/core/shard/shard_return.h"
#include "tests/server/core/shard/naive_rounds.h"
#include "tests/server/core/shard/random_shard.h"
#include "tests/server/core/shard/shard_calls.h"
#include "tests/support/shard_machine_driver.h"

namespace slipstream {
namespace {

using Kind = ShardEvent::Kind;

/// Each push takes effect once, with the staleness it has; a wrong one is refused by its name and
/// changes nothing; and one that comes again is answered as the first time.
class PushesCountOnce : public ShardProperty {
 public:
  explicit PushesCountOnce(const ShardSetting& setting) : setting_(setting) {}

  std::string name() const override { return "each push counts once"; }

  void Check(const ShardStep& step) override {
    if (step.event.kind == Kind::kReturn) sent_.clear();
    if (step.event.kind == Kind::kPush) CheckPush(step);
    for (const Member& member : step.machine.view().members) {
      ASSERT_EQ(Value(step.machine.members().At(member.worker).expected()),
                sent_[member.incarnation].size() + 1);
    }
  }

 private:
  void CheckPush(const ShardStep& step) {
    const PushFacts& push = step.event.push;
    const PushRecord& record = *step.effect.output.record;
    auto& sent = sent_[push.header.identity.incarnation];
    if (step.event.wrong.has_value()) {
      ASSERT_EQ(Name(record.reply.outcome), Name(*step.event.wrong));
    } else if (Value(push.header.sequence) <= sent.size()) {
      const size_t index = Value(push.header.sequence) - 1;
      CheckRepeated(sent[index].first, sent[index].second, step,
                    index + MemberRecord::kAnswersKept >= sent.size());
    } else if (!record.took_effect) {
      ASSERT_FALSE(setting_.has_naive_rounds()) << Name(record.reply.outcome);
      ASSERT_TRUE(record.reply.outcome == PushOutcome::kTooStale ||
                  record.reply.outcome == PushOutcome::kShapeMismatch);
    } else {
      const bool is_round = setting_.consistency.traits().one_per_member;
      const uint64_t staleness = Value(step.decided_before) - Value(push.header.base);
      const bool is_fresh = setting_.publishes || (push.header.count == 0 && !is_round);
      ASSERT_EQ(record.reply.staleness, is_fresh ? 0 : staleness);
      ASSERT_EQ(record.reply.generation, step.machine.generation());
      sent.emplace_back(push, record.reply);
      return;
    }
    ASSERT_FALSE(record.took_effect);
    ASSERT_FALSE(step.effect.output.keeps_payload);
    if (record.reply.outcome != PushOutcome::kDuplicate) {
      ASSERT_EQ(Describe(step.machine), step.described_before);
    }
  }

  static void CheckRepeated(const PushFacts& first_push, PushReply first, const ShardStep& step,
                            bool is_kept) {
    const PushReply& reply = step.effect.output.record->reply;
    if (!is_kept) {
      ASSERT_EQ(Name(reply.outcome), Name(PushOutcome::kOutOfSequence));
    } else if (step.event.push.checksum != first_push.checksum) {
      ASSERT_EQ(Name(reply.outcome), Name(PushOutcome::kSequenceReused));
    } else {
      first.first_outcome = std::exchange(first.outcome, PushOutcome::kDuplicate);
      ASSERT_EQ(reply, first);
    }
  }

  const ShardSetting& setting_;
  std::map<Incarnation, std::vector<std::pair<PushFacts, PushReply>>> sent_;
};

/// Each payload is folded once, into the round that it joined. An update makes the next version
/// with the mean of its round, and is the one that was drafted.
class UpdatesAreMeans : public ShardProperty {
 public:
  UpdatesAreMeans(const ShardSetting& setting, const NaiveRounds& rounds)
      : by_rank_(setting.consistency.traits().order == PolicyTraits::Order::kRank),
        rounds_(rounds) {}

  std::string name() const override { return "updates are the means of their rounds"; }

  void Check(const ShardStep& step) override {
    const ShardEvent& event = step.event;
    const ShardOutput& output = step.effect.output;
    if (event.kind == Kind::kReturn) {
      payloads_.clear();
      folded_.clear();
    }
    if (output.keeps_payload) {
      const Payload payload = {event.push.header.identity.worker, event.gradient};
      ASSERT_TRUE(payloads_.emplace(step.effect.push, payload).second) << "a name used twice";
    }
    for (const Fold& fold : output.folds) Carry(fold);
    if (!by_rank_) {
      ASSERT_TRUE(payloads_.empty()) << "a gradient that nobody is awaited before is folded";
    }
    ASSERT_EQ(step.machine.bytes_queued(), payloads_.size() * TestPlan().count * sizeof(float));
    if (step.effect.draft.has_value() && output.record->took_effect) {
      ASSERT_TRUE(output.update.has_value() && output.update->is_drafted);
    }
    if (output.update.has_value()) {
      CheckUpdate(*output.update, step);
      folded_.clear();
    } else if (event.kind != Kind::kReturn) {
      ASSERT_EQ(step.machine.decided(), step.decided_before);
    }
  }

 private:
  struct Payload {
    WorkerId worker{};
    double gradient = 0;
  };

  void Carry(const Fold& fold) {
    const auto payload = payloads_.extract(fold.push);
    ASSERT_FALSE(payload.empty()) << "folds a payload that is not held";
    ASSERT_EQ(fold.first, folded_.empty()) << "only the first fold of a round starts the sum";
    if (fold.first) sum_ = 0;
    sum_ += static_cast<double>(fold.clip) * fold.weight * payload.mapped().gradient;
    folded_.push_back(payload.mapped().worker);
  }

  void CheckUpdate(const Update& update, const ShardStep& step) const {
    ASSERT_EQ(update.from, step.decided_before) << "updates follow one another";
    ASSERT_EQ(update.to, Next(update.from));
    ASSERT_EQ(step.machine.decided(), update.to);
    ASSERT_EQ(update.is_empty, folded_.empty()) << "an update is of what was folded";
    const auto& clocks = step.machine.lag().vector_clocks();
    const bool has_clock = !clocks.empty() && clocks.back().version == update.to;
    ASSERT_EQ(has_clock, !update.is_empty);
    if (update.is_empty || !rounds_.is_known) return;
    double sum = 0;
    double weights = 0;
    std::vector<WorkerId> workers;
    std::vector<Version> bases;
    for (const GivenPush& gradient : rounds_.closed()) {
      const double weight = by_rank_ ? gradient.examples : 1.0;
      sum += weight * gradient.gradient;
      weights += weight;
      workers.push_back(gradient.worker);
      bases.push_back(gradient.base);
    }
    // Weights and divisor are floats: the error is a few roundings of numbers below 1.
    ASSERT_NEAR(sum_ * static_cast<double>(update.inverse_divisor), sum / weights, 2e-6);
    ASSERT_EQ(update.learning_rate, 1.0f);
    ASSERT_TRUE(std::ranges::is_permutation(folded_, workers));
    if (!by_rank_) {
      ASSERT_EQ(folded_, workers) << "in order of completion";
    }
    ASSERT_EQ(clocks.back().bases, bases);
  }

  const bool by_rank_;
  const NaiveRounds& rounds_;
  std::map<PushId, Payload> payloads_;
  double sum_ = 0;
  std::vector<WorkerId> folded_;  // Since the last update.
};

/// A machine whose state goes through bytes now and then decides the same. It returns to what was
/// saved, too, and nothing is saved of an open round.
class SameThroughBytes : public ShardProperty {
 public:
  SameThroughBytes(const ShardMachine::Options& options, uint64_t seed, ShardsSeen& seen)
      : random_(seed, 31), twin_(options), seen_(seen) {
    twin_.SetPlan(RandomShardPlan());
  }

  std::string name() const override { return "a state that went through bytes is the same"; }

  void Check(const ShardStep& step) override {
    ShardEvent event = step.event;
    if (event.kind == Kind::kReturn) {
      ++seen_.returns;
      ASSERT_EQ(step.machine.decided(), event.saved->versions.decided());
      ASSERT_EQ(step.machine.published(), step.machine.decided());
      ASSERT_EQ(step.machine.generation(), event.generation);
      event.saved = std::make_shared<ShardState>(FromBytes(EncodeShardState(*event.saved)));
    }
    const ShardEffect same = Apply(event, twin_);
    ASSERT_EQ(same.push, step.effect.push);
    ASSERT_EQ(same.draft, step.effect.draft);
    ExpectSame(step.effect.output, same.output);
    if (step.effect.output.saves) {
      ++seen_.saves;
      ASSERT_EQ(step.machine.round().contributions(), 0u) << "an open round is not saved";
    }
    if (step.machine.round().contributions() > 0 || random_.Below(12) > 0) return;
    ++seen_.through_bytes;
    const std::string bytes = EncodeShardState(step.machine.state());
    ASSERT_EQ(EncodeShardState(twin_.state()), bytes);
    twin_.Restore(FromBytes(bytes));
  }

 private:
  static ShardState FromBytes(const std::string& bytes) {
    absl::StatusOr<ShardState> state = DecodeShardState(bytes);
    EXPECT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(EncodeShardState(*state), bytes);
    return *std::move(state);
  }

  static void ExpectSame(const ShardOutput& a, const ShardOutput& b) {
    ASSERT_TRUE(std::ranges::equal(a.folds, b.folds));
    ASSERT_EQ(a.update.has_value(), b.update.has_value());
    if (a.update.has_value()) {
      const auto parts = [](const Update& update) {
        return std::tie(update.from, update.to, update.is_empty, update.is_drafted,
                        update.inverse_divisor, update.learning_rate, update.step_scale);
      };
      ASSERT_EQ(parts(*a.update), parts(*b.update));
    }
    const auto is_same = [](const ShardAnswer& x, const ShardAnswer& y) {
      return x.call == y.call && x.refusal == y.refusal && x.push == y.push &&
             x.weights == y.weights && x.trainers == y.trainers;
    };
    ASSERT_TRUE(std::ranges::equal(a.answers, b.answers, is_same));
    ASSERT_EQ(a.lagged, b.lagged);
    ASSERT_EQ(a.record.has_value(), b.record.has_value());
    if (a.record.has_value()) {
      ASSERT_EQ(a.record->reply, b.record->reply);
      ASSERT_EQ(a.record->took_effect, b.record->took_effect);
    }
    ASSERT_EQ(std::pair(a.keeps_payload, a.saves), std::pair(b.keeps_payload, b.saves));
  }

  RandomStream random_;
  ShardMachine twin_;
  ShardsSeen& seen_;
};

}  // namespace

std::vector<std::unique_ptr<ShardProperty>> PropertiesOf(const ShardSetting& setting,
                                                         const ShardMachine::Options& options,
                                                         uint64_t seed, ShardsSeen& seen) {
  std::vector<std::unique_ptr<ShardProperty>> properties;
  auto rounds = std::make_unique<NaiveRounds>(setting);
  const NaiveRounds& known = *rounds;
  properties.push_back(std::move(rounds));  // Others ask it about the event that it has seen.
  properties.push_back(std::make_unique<PushesCountOnce>(setting));
  properties.push_back(std::make_unique<UpdatesAreMeans>(setting, known));
  properties.push_back(std::make_unique<CallsAreAnswered>(setting, options, known, seen));
  properties.push_back(std::make_unique<SameThroughBytes>(options, seed, seen));
  return properties;
}

}  // namespace slipstream

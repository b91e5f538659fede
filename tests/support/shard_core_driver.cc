#include "tests/support/shard_core_driver.h"

#include <gtest/gtest.h>

#include <sstream>

namespace slipstream {

ShardCoreDriver::ShardCoreDriver(const ShardCore::Options& options)
    : ShardCoreDriver(options, TestPlan()) {}

ShardCoreDriver::ShardCoreDriver(const ShardCore::Options& options, const ShardCore::Plan& plan)
    : core_(options) {
  core_.SetPlan(plan);
}

void ShardCoreDriver::Start(const View& view) {
  OnView(view);
  OnPhase(Phase::kTraining);
  Carry(core_.OnInitialized());
}

PushDecision ShardCoreDriver::Push(const ShardCore::PushFacts& push, double gradient) {
  const uint64_t bytes = push.header.count * sizeof(float);
  if (const std::optional<PushReply> refusal = core_.OnPushHeader(push.header)) {
    return {.reply = *refusal};
  }
  const std::optional<Forecast> forecast = core_.ForecastUpdate(push.header);
  PushDecision decision = core_.OnPush(push);
  // A push that turns out to be broken, or another one's repetition, causes nothing.
  if (forecast.has_value() && decision.took_effect) CheckForecast(*forecast, decision);
  if (decision.retained.has_value()) {
    const Payload payload = {push.header.identity.worker, gradient, bytes};
    EXPECT_TRUE(payloads_.emplace(*decision.retained, payload).second) << "a name used twice";
  } else {
    core_.ReleaseBytes(bytes);
  }
  if (decision.answer.has_value()) NoteParked(*decision.answer);
  Carry(decision.effects);
  return decision;
}

PullDecision ShardCoreDriver::Pull(const PullRequest& request) {
  PullDecision decision = core_.OnPull(request);
  const ShardCore::Reader reader = ShardCore::ReaderOf(request);
  if (const Park* park = std::get_if<Park>(&decision.outcome)) {
    NoteParked(*park);
    pulls_waiting_.emplace(park->ticket, reader);
  } else if (std::holds_alternative<Serve>(decision.outcome)) {
    Carry(core_.OnPullDone(reader));
  }
  Carry(decision.effects);
  return decision;
}

void ShardCoreDriver::Cancel(Ticket ticket) {
  waiting_.erase(ticket);
  pulls_waiting_.erase(ticket);
  core_.OnCancelled(ticket);
}

bool ShardCoreDriver::PublishNext() {
  if (unpublished_.empty()) return false;
  const Version version = unpublished_.front();
  unpublished_.pop_front();
  Carry(core_.OnPublished(version));
  return true;
}

void ShardCoreDriver::PublishAll() {
  while (PublishNext()) {
  }
}

std::string ShardCoreDriver::LastFolded() const {
  if (updates_.empty()) return "no update";
  std::string text;
  for (WorkerId worker : updates_.back().folded) {
    text += (text.empty() ? "" : " ") + std::to_string(Value(worker));
  }
  return text;
}

void ShardCoreDriver::Carry(const Effects& effects) {
  for (const Fold& fold : effects.folds) CarryFold(fold);
  if (effects.update.has_value()) CarryUpdate(*effects.update);
  for (const Release& release : effects.released) {
    EXPECT_EQ(waiting_.erase(release.ticket), 1u)
        << "released a ticket that does not wait: " << Value(release.ticket);
    EXPECT_EQ(release.version, core_.published());
    released_.emplace(release.ticket, release);
    // A released pull is sent at once.
    if (const auto pull = pulls_waiting_.extract(release.ticket)) {
      Carry(core_.OnPullDone(pull.mapped()));
    }
  }
}

void ShardCoreDriver::CarryFold(const Fold& fold) {
  const auto found = payloads_.find(fold.push);
  if (found == payloads_.end()) {
    ADD_FAILURE() << "folds a payload not held: " << static_cast<uint64_t>(fold.push);
    return;
  }
  EXPECT_EQ(fold.first, folded_.empty()) << "only the first fold of a round starts the sum";
  const double term = static_cast<double>(fold.weight) * found->second.gradient;
  sum_ = fold.first ? term : sum_ + term;
  folded_.push_back(found->second.worker);
  core_.ReleaseBytes(found->second.bytes);
  payloads_.erase(found);
}

void ShardCoreDriver::CarryUpdate(const Update& update) {
  EXPECT_EQ(Value(update.from) + 1, weights_.size()) << "updates follow one another";
  EXPECT_EQ(update.to, Next(update.from));
  EXPECT_EQ(update.is_empty, folded_.empty()) << "an update is of what was folded";
  const double step = update.is_empty ? 0.0
                                      : static_cast<double>(update.learning_rate) *
                                            static_cast<double>(update.inverse_divisor) * sum_;
  weights_.push_back(weights_.back() - step);
  updates_.push_back({update, folded_});
  unpublished_.push_back(update.to);
  folded_.clear();
  sum_ = 0;
}

void ShardCoreDriver::CheckForecast(const Forecast& forecast, const PushDecision& decision) {
  ++forecasts_;
  ASSERT_EQ(decision.effects.folds.size(), 1u) << "a forecast is of one gradient alone";
  ASSERT_TRUE(decision.effects.update.has_value());
  const Fold& fold = decision.effects.folds.front();
  const Update& update = *decision.effects.update;
  EXPECT_TRUE(fold.first);
  EXPECT_EQ(fold.weight, forecast.weight);
  EXPECT_EQ(update.from, forecast.from);
  EXPECT_EQ(update.inverse_divisor, 1.0f);
  EXPECT_EQ(update.step_scale, 1.0f);
  EXPECT_EQ(update.learning_rate, forecast.learning_rate);
}

void ShardCoreDriver::NoteParked(const std::variant<Serve, Park>& answer) {
  const Park* park = std::get_if<Park>(&answer);
  if (park == nullptr) return;
  EXPECT_FALSE(released_.contains(park->ticket)) << "a ticket given twice";
  EXPECT_TRUE(waiting_.insert(park->ticket).second) << "a ticket given twice";
}

ShardCore::Plan TestPlan() {
  return {.run = 11, .shard_map = 22, .count = 4, .batches_total = 1'000'000};
}

ShardCore::Options TestOptions(const ConsistencySpec& consistency) {
  return {.consistency = consistency, .learning_rate = 1.0};
}

View FoundingView(uint32_t workers) {
  View view{.number = ViewNumber{1}};
  for (uint32_t worker = 0; worker < workers; ++worker) {
    view.members.push_back({WorkerId{worker}, Incarnation{worker + 1}, true});
  }
  return view;
}

Identity IdentityOf(const Member& member) {
  return {TestPlan().run, member.worker, member.incarnation};
}

ShardCore::PushFacts PushOf(uint32_t worker, uint64_t sequence, uint64_t base) {
  const ShardCore::Plan plan = TestPlan();
  return {.header = {.identity = {plan.run, WorkerId{worker}, Incarnation{worker + 1}},
                     .sequence = Sequence{sequence},
                     .shard_map = plan.shard_map,
                     .base = Version{base},
                     .count = plan.count,
                     .examples = 32},
          .values_received = plan.count,
          .checksum = 1'000'000 * (uint64_t{worker} + 1) + sequence};
}

ShardCore::PushFacts ExchangeOf(uint32_t worker, uint64_t sequence, uint64_t base) {
  ShardCore::PushFacts push = PushOf(worker, sequence, base);
  push.header.pull = true;
  return push;
}

ShardCore::PushFacts ExcuseOf(uint32_t worker, uint64_t sequence, uint64_t base) {
  ShardCore::PushFacts push = PushOf(worker, sequence, base);
  push.header.count = 0;
  push.header.examples = 0;
  push.values_received = 0;
  return push;
}

PullRequest TrainingPullOf(uint32_t worker, uint64_t min_version, uint64_t sequence) {
  const ShardCore::Plan plan = TestPlan();
  return {.identity = Identity{plan.run, WorkerId{worker}, Incarnation{worker + 1}},
          .shard_map = plan.shard_map,
          .min_version = Version{min_version},
          .trains = true,
          .sequence = Sequence{sequence}};
}

std::string Describe(const ShardCore& core) {
  std::ostringstream text;
  text << "decided " << Value(core.decided()) << " published " << Value(core.published())
       << " phase " << static_cast<int>(core.phase()) << " view " << Value(core.view().number);
  for (const Member& member : core.view().members) {
    text << " " << Value(member.worker) << "#" << Value(member.incarnation) << "@"
         << Value(core.members().At(member.worker).expected());
  }
  text << " round " << core.round().contributions() << "+" << core.round().excused() << " of";
  for (Version base : core.round().bases()) text << " " << Value(base);
  text << " awaited";
  for (WorkerId worker : core.Awaited()) text << " " << Value(worker);
  text << " lag " << core.lag().gradients() << "/" << core.lag().mean() << "/"
       << core.lag().window_mean() << "/" << core.lag().vector_clocks().size() << " examples "
       << core.examples_applied() << " parked " << core.parked() << " bytes " << core.bytes_queued()
       << " drained " << core.is_drained();
  for (const auto& [outcome, count] : core.outcomes()) {
    if (!IsRefusal(outcome)) text << " " << Name(outcome) << " " << count;
  }
  return text.str();
}

}  // namespace slipstream

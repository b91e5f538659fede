#include "tests/support/shard_machine_driver.h"

#include <gtest/gtest.h>

#include <sstream>

#include "common/protocol/composite_push.h"
#include "server/core/shard/shard_return.h"

namespace slipstream {

ShardMachineDriver::ShardMachineDriver(const ShardMachine::Options& options)
    : ShardMachineDriver(options, TestPlan()) {}

ShardMachineDriver::ShardMachineDriver(const ShardMachine::Options& options, const ShardPlan& plan)
    : core_(options) {
  core_.SetPlan(plan);
}

void ShardMachineDriver::Start(const View& view) {
  OnView(view);
  OnPhase(Phase::kTraining);
  Carry(core_.OnInitialized(1));
}

PushDecision ShardMachineDriver::Push(const ShardMachine::PushFacts& push, double gradient) {
  const PushAdmission admission = core_.OnPushHeader(push.header);
  if (admission.refusal.has_value()) return {.reply = *admission.refusal};
  ShardMachine::PushFacts facts = push;
  facts.push = admission.push;
  const CallId call = NewCall();
  const ShardOutput output = core_.OnPush(call, facts);
  // A broken push or a repetition has no effect, so its draft is not used. Nor is that of a push
  // which turns out to be clipped, or without a gradient for some tensors.
  const PushTrailer& trailer = push.header.trailer;
  const bool is_another = trailer.clip != 1 || !trailer.absent.empty();
  EXPECT_FALSE(is_another && output.update.has_value() && output.update->is_drafted);
  if (admission.draft.has_value() && output.record->took_effect && !is_another) CheckDraft(output);
  if (output.keeps_payload) {
    const PushHeader& header = push.header;
    const WorkerId worker =
        IsComposite(header) ? header.parts.front().worker : header.identity.worker;
    const Payload payload = {worker, gradient, header.count * sizeof(float)};
    EXPECT_TRUE(payloads_.emplace(facts.push, payload).second) << "a name used twice";
  }
  PushDecision decision = {.reply = output.record->reply,
                           .took_effect = output.record->took_effect,
                           .retained = output.keeps_payload};
  const std::optional<ShardAnswer> answer = Carry(output, call);
  if (!answer.has_value()) {
    waiting_.insert(call);
    decision.answer = Park{call};
  } else if (answer->weights.has_value()) {
    decision.answer = Serve{answer->weights->version, answer->weights->work,
                            answer->weights->examples, answer->weights->parts};
  }
  return decision;
}

PullDecision ShardMachineDriver::Pull(const PullRequest& request) {
  const CallId call = NewCall();
  const Reader reader = ReaderOf(request);
  const std::optional<ShardAnswer> answer = Carry(core_.OnPull(call, request), call);
  if (!answer.has_value()) {
    waiting_.insert(call);
    pulls_waiting_.emplace(call, reader);
    return Park{call};
  }
  if (answer->refusal.has_value()) return *answer->refusal;
  Carry(core_.OnPullDone(call, reader));
  return Serve{answer->weights->version, answer->weights->work, answer->weights->examples};
}

void ShardMachineDriver::Cancel(CallId call) {
  const bool waits = waiting_.erase(call) > 0;
  pulls_waiting_.erase(call);
  EXPECT_EQ(core_.OnCancelled(call), waits);
}

std::optional<Forecast> ShardMachineDriver::ForecastOf(const PushHeader& header) {
  const PushAdmission admission = core_.OnPushHeader(header);
  if (!admission.refusal.has_value()) core_.OnPushAbandoned(admission.push, header);
  return admission.draft;
}

bool ShardMachineDriver::PublishNext() {
  if (unpublished_.empty()) return false;
  const Version version = unpublished_.front();
  unpublished_.pop_front();
  Carry(core_.OnPublished(version));
  return true;
}

void ShardMachineDriver::Return(Generation generation) {
  const size_t version = Value(saved_.back().versions.decided());
  core_.Restore(Returned(saved_.back(), generation));
  weights_.resize(version + 1);
  updates_.resize(version);
  payloads_.clear();
  sum_ = 0;
  folded_.clear();
  unpublished_.clear();
  waiting_.clear();
  pulls_waiting_.clear();
}

void ShardMachineDriver::PublishAll() {
  while (PublishNext()) {
  }
}

std::vector<WorkerId> ShardMachineDriver::LackedMembers() const {
  const NamedLack lack = core_.Lacks();
  return {lack.members.begin(), lack.members.end()};
}

std::string ShardMachineDriver::LastFolded() const {
  if (updates_.empty()) return "no update";
  std::string text;
  for (WorkerId worker : updates_.back().folded) {
    text += (text.empty() ? "" : " ") + std::to_string(Value(worker));
  }
  return text;
}

std::optional<ShardAnswer> ShardMachineDriver::Carry(const ShardOutput& output, CallId own) {
  if (output.saves) {
    EXPECT_EQ(core_.round().contributions(), 0u) << "a round is not saved";
    saved_.push_back(core_.state());
  }
  for (const Fold& fold : output.folds) CarryFold(fold);
  if (output.update.has_value()) CarryUpdate(*output.update);
  std::optional<ShardAnswer> answer;
  for (const ShardAnswer& given : output.answers) {
    if (given.call == own) {
      answer = given;
    } else {
      CarryAnswer(given);
    }
  }
  return answer;
}

void ShardMachineDriver::CarryAnswer(const ShardAnswer& answer) {
  EXPECT_EQ(waiting_.erase(answer.call), 1u)
      << "answers a call that does not wait: " << Value(answer.call);
  Serve served = {.version = core_.published()};
  if (answer.weights.has_value()) {
    EXPECT_EQ(answer.weights->version, core_.published());
    served.work = answer.weights->work;
    served.parts = answer.weights->parts;
  }
  released_.emplace(answer.call, served);
  // A released pull is sent at once.
  if (const auto pull = pulls_waiting_.extract(answer.call)) {
    Carry(core_.OnPullDone(answer.call, pull.mapped()));
  }
}

void ShardMachineDriver::CarryFold(const Fold& fold) {
  const auto found = payloads_.find(fold.push);
  if (found == payloads_.end()) {
    ADD_FAILURE() << "folds a payload not held: " << static_cast<uint64_t>(fold.push);
    return;
  }
  EXPECT_EQ(fold.first, folded_.empty()) << "only the first fold of a round starts the sum";
  const double term = static_cast<double>(fold.clip) * fold.weight * found->second.gradient;
  sum_ = fold.first ? term : sum_ + term;
  folded_.push_back(found->second.worker);
  core_.ReleaseBytes(found->second.bytes);
  payloads_.erase(found);
}

void ShardMachineDriver::CarryUpdate(const Update& update) {
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

void ShardMachineDriver::CheckDraft(const ShardOutput& output) {
  ++drafts_;
  EXPECT_TRUE(output.update.has_value() && output.update->is_drafted);
}

ShardPlan TestPlan() {
  return {.run = 11, .shard_map = 22, .count = 4, .batches_total = 1'000'000};
}

ShardMachine::Options TestOptions(const ConsistencySpec& consistency) {
  return {.stages = {{.consistency = consistency, .learning_rate = 1.0}}, .takes_composites = true};
}

ShardMachine::Options WithSaves(const ConsistencySpec& consistency) {
  ShardMachine::Options options = TestOptions(consistency);
  options.saves = true;
  return options;
}

SaveOrder OrderOf(uint64_t number, uint64_t version) {
  return {.number = number, .version = Version{version}};
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

ShardMachine::PushFacts PushOf(uint32_t worker, uint64_t sequence, uint64_t base) {
  const ShardPlan plan = TestPlan();
  return {.header = {.identity = {plan.run, WorkerId{worker}, Incarnation{worker + 1}},
                     .sequence = Sequence{sequence},
                     .shard_map = plan.shard_map,
                     .base = Version{base},
                     .count = plan.count,
                     .examples = 32,
                     .clock = WorkerClock{sequence}},
          .values_received = plan.count,
          .checksum = 1'000'000 * (uint64_t{worker} + 1) + sequence};
}

ShardMachine::PushFacts ExchangeOf(uint32_t worker, uint64_t sequence, uint64_t base) {
  ShardMachine::PushFacts push = PushOf(worker, sequence, base);
  push.header.pull = true;
  return push;
}

ShardMachine::PushFacts CompositeOf(const std::vector<ShardMachine::PushFacts>& pushes,
                                    bool weighs_examples) {
  std::vector<const PushHeader*> headers;
  std::vector<uint64_t> checksums;
  for (const ShardMachine::PushFacts& push : pushes) {
    headers.push_back(&push.header);
    checksums.push_back(push.checksum);
  }
  ShardMachine::PushFacts facts = pushes.front();
  facts.header = CompositeOf(headers, checksums, weighs_examples);
  facts.values_received = facts.header.count;
  return facts;
}

ShardMachine::PushFacts ExcuseOf(uint32_t worker, uint64_t sequence, uint64_t base) {
  ShardMachine::PushFacts push = PushOf(worker, sequence, base);
  push.header.count = 0;
  push.header.examples = 0;
  push.header.clock = {};
  push.values_received = 0;
  return push;
}

PullRequest TrainingPullOf(uint32_t worker, uint64_t min_version, uint64_t sequence) {
  const ShardPlan plan = TestPlan();
  return {.identity = Identity{plan.run, WorkerId{worker}, Incarnation{worker + 1}},
          .shard_map = plan.shard_map,
          .min_version = Version{min_version},
          .trains = true,
          .sequence = Sequence{sequence}};
}

std::string Describe(const ShardMachine& core) {
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
  for (WorkerId worker : core.Lacks().members) text << " " << Value(worker);
  text << " lag " << core.lag().gradients() << "/" << core.lag().mean() << "/"
       << core.lag().window_mean() << "/" << core.lag().vector_clocks().size() << " examples "
       << core.examples_applied() << " parked " << core.waiting() << " bytes "
       << core.bytes_queued() << " drained " << core.is_drained();
  for (const auto& [outcome, count] : core.outcomes()) {
    if (!IsRefusal(outcome)) text << " " << Name(outcome) << " " << count;
  }
  return text.str();
}

}  // namespace slipstream

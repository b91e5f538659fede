#include "server/aggregator/aggregator.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/composite_push.h"
#include "tests/server/aggregator/aggregator_fixture.h"

namespace slipstream {
namespace {

std::vector<float> ValuesOf(const Answer& answer) {
  const std::span<const float> values = answer.weights->values();
  return {values.begin(), values.end()};
}

TEST_F(AggregatorTest, TwoPushesBecomeOneAndBothAreAnswered) {
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall first;
  RecordingCall second;

  EXPECT_FALSE(Push(Header(0), 2, first).has_value());
  EXPECT_FALSE(Push(Header(1), 4, second).has_value());

  const Answer to_first = first.Await();
  const Answer to_second = second.Await();
  const std::vector<ScriptedShard::Exchanged> sent = shard_.Await(1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].values, std::vector<float>(kValues, 3));
  EXPECT_EQ(FaultOfParts(sent[0].header), "");
  ASSERT_EQ(sent[0].header.parts.size(), 2u);
  EXPECT_EQ(sent[0].header.parts[1].worker, WorkerId{1});
  EXPECT_EQ(to_first.push->outcome, PushOutcome::kApplied);
  EXPECT_EQ(to_first.push->version, Version{1});
  EXPECT_EQ(ValuesOf(to_first), std::vector<float>(kValues, 1));
  EXPECT_EQ(to_first.header->clock, WorkerClock{100});
  EXPECT_EQ(to_second.header->clock, WorkerClock{101});
  EXPECT_TRUE(to_second.header->parts.empty());
  EXPECT_EQ(to_first.weights, to_second.weights) << "the values were copied";
  const v1::AggregatorStatus status = aggregator_->Report();
  EXPECT_EQ(status.parts(), 2u);
  EXPECT_EQ(status.composites(), 1u);
  EXPECT_EQ(status.sent_back(), 0u);
}

TEST_F(AggregatorTest, ATensorIsAbsentIfNobodyHasAGradientForIt) {
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall calls[2];
  for (const uint32_t worker : {0, 1}) {
    PushHeader header = Header(worker);
    header.trailer.absent.Add(1);
    header.trailer.absent.Add(4 + worker);
    Push(header, 2, calls[worker]);
  }

  TensorSet first;
  first.Add(1);
  EXPECT_EQ(shard_.Await(1)[0].header.trailer.absent, first);
  for (RecordingCall& call : calls) call.Await();
}

TEST_F(AggregatorTest, EachPartHasTheChecksumThatTheShardWouldFind) {
  Start(1);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall call;
  PushAssembly push(Header(0));
  ASSERT_TRUE(push.Add(0, Received(std::vector<float>(kValues, 2))).ok());

  Push(Header(0), 2, call);

  call.Await();
  EXPECT_EQ(shard_.Await(1)[0].header.parts.front().checksum, push.Facts().checksum);
}

TEST_F(AggregatorTest, AWorkerThatIsAloneIsNotKeptWaiting) {
  Start(1);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall call;

  Push(Header(0), 2, call);

  EXPECT_EQ(call.Await().push->outcome, PushOutcome::kApplied);
  EXPECT_EQ(shard_.Await(1)[0].values, std::vector<float>(kValues, 2));
}

TEST_F(AggregatorTest, WhatTheShardDoesNotCountIsSentBack) {
  Start(2);
  shard_.ReplyBy(
      [](const PushHeader&) { return ExchangeAnswer{.push = NotCombined("one came before")}; });
  RecordingCall first;
  RecordingCall second;
  Push(Header(0), 2, first);
  Push(Header(1), 4, second);
  for (RecordingCall* const call : {&first, &second}) {
    const Answer answer = call->Await();
    EXPECT_EQ(answer.push->outcome, PushOutcome::kNotCombined);
    EXPECT_FALSE(answer.header.has_value());
  }
  const v1::AggregatorStatus status = aggregator_->Report();
  EXPECT_EQ(status.sent_back(), 2u);
  EXPECT_EQ(status.composites(), 0u);
}

TEST_F(AggregatorTest, SendsPushesOfAnEarlierGenerationOfTheShardBack) {
  Start(1);
  orders_.number += 1;
  orders_.returns = {ShardReturn{.generation = Generation{2}}};
  aggregator_->OnOrders(orders_);
  PushHeader earlier = Header(0);
  earlier.generation = Generation{1};
  const BegunPush begun = aggregator_->BeginPush(earlier);
  ASSERT_TRUE(begun.refusal.has_value());
  EXPECT_EQ(begun.refusal->outcome, PushOutcome::kNotCombined);

  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  PushHeader now = Header(0);
  now.generation = Generation{2};
  RecordingCall call;
  Push(now, 2, call);
  EXPECT_EQ(call.Await().push->outcome, PushOutcome::kApplied);
}

TEST_F(AggregatorTest, LearnsOfANewGenerationFromTheShard) {
  Start(1);
  shard_.ReplyBy([](const PushHeader&) {
    ExchangeAnswer answer = {.push = NotCombined("its generation is over"), .weights = {}};
    answer.push.generation = Generation{1};
    return answer;
  });
  RecordingCall call;
  Push(Header(0), 2, call);
  EXPECT_EQ(call.Await().push->outcome, PushOutcome::kNotCombined);

  EXPECT_TRUE(aggregator_->BeginPush(Header(0)).refusal.has_value());
}

TEST_F(AggregatorTest, EndsItsWorkersCallsIfItDoesNotReachTheShard) {
  Start(2);
  shard_.ReplyBy([](const PushHeader&) { return absl::UnavailableError("the shard is away"); });
  RecordingCall first;
  RecordingCall second;
  Push(Header(0), 2, first);
  Push(Header(1), 4, second);
  for (RecordingCall* const call : {&first, &second}) {
    EXPECT_EQ(call->Await().refusal.code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(aggregator_->Report().sent_back(), 2u);
}

TEST_F(AggregatorTest, AWorkerThatWantsNoWeightsGetsNone) {
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall first;
  RecordingCall second;
  PushHeader without = Header(0);
  without.pull = false;

  Push(without, 2, first);
  Push(Header(1), 4, second);

  EXPECT_FALSE(first.Await().header.has_value());
  EXPECT_TRUE(second.Await().header.has_value());
}

TEST_F(AggregatorTest, AVersionThatTheWorkerHoldsIsNotSentAgain) {
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 3); });
  RecordingCall first;
  RecordingCall second;
  PushHeader holds = Header(0, 3);
  holds.holds_base = true;

  Push(holds, 2, first);
  Push(Header(1, 3), 4, second);

  const Answer answer = first.Await();
  EXPECT_TRUE(answer.header->unchanged);
  EXPECT_EQ(answer.weights, nullptr);
  EXPECT_FALSE(second.Await().header->unchanged);
}

TEST_F(AggregatorTest, WorkersOfDifferentVersionsGoOnWithTheNewest) {
  run_.optimizer.staleness_scaling = StalenessScaling::kPerGradient;
  Start(2);
  shard_.ReplyBy(
      [](const PushHeader& composite) { return Applied(composite, 10 + Value(composite.base)); });
  RecordingCall first;
  RecordingCall second;

  Push(Header(0, 1), 2, first);
  Push(Header(1, 2), 4, second);

  const Answer to_first = first.Await();
  EXPECT_EQ(to_first.push->version, Version{11});
  EXPECT_EQ(to_first.header->version, Version{12});
  EXPECT_EQ(to_first.header->clock, WorkerClock{100});
  EXPECT_EQ(ValuesOf(to_first), std::vector<float>(kValues, 12));
  EXPECT_EQ(second.Await().header->version, Version{12});
  EXPECT_EQ(shard_.Await(2).size(), 2u);
}

TEST_F(AggregatorTest, WorkIsForTheWeightsThatItCameWith) {
  run_.optimizer.staleness_scaling = StalenessScaling::kPerGradient;
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) {
    ExchangeAnswer answer = Applied(composite, 10 + Value(composite.base));
    for (PartAnswer& part : answer.weights->parts) part.work = RoundWork();
    return answer;
  });
  RecordingCall first;
  RecordingCall second;

  Push(Header(0, 1), 2, first);
  Push(Header(1, 2), 4, second);

  const Answer to_first = first.Await();
  EXPECT_EQ(to_first.header->version, Version{11});
  EXPECT_TRUE(to_first.header->work.has_value());
  EXPECT_EQ(second.Await().header->version, Version{12});
}

TEST_F(AggregatorTest, TakesOnlyGradientsOfItsMembers) {
  Start(3);
  struct Refused {
    PushHeader header;
    bool is_of_member = false;
  };
  std::map<std::string, Refused> all;
  const auto refused = [&](const std::string& why, uint32_t worker, bool is_of_member,
                           const auto& change) {
    all[why] = {.header = Header(worker), .is_of_member = is_of_member};
    change(all[why].header);
  };
  refused("another group", 2, false, [](PushHeader&) {});
  refused("no member", 1, false, [](PushHeader& h) { h.identity.incarnation = Incarnation{9}; });
  refused("another run", 0, false, [](PushHeader& h) { h.identity.run = 6; });
  refused("a slot too high", 0, false, [](PushHeader& h) { h.slot = 1; });
  refused("parts", 0, false, [](PushHeader& h) { h.parts.resize(1); });
  refused("another map", 0, true, [](PushHeader& h) { ++h.shard_map; });
  refused("another size", 0, true, [](PushHeader& h) { ++h.count; });
  refused("no values", 0, true, [](PushHeader& h) { h.count = 0; });
  refused("no gradient", 0, true, [](PushHeader& h) { h.kind = PushKind::kValues; });
  refused("no examples", 0, true, [](PushHeader& h) { h.examples = 0; });
  refused("too many examples", 0, true,
          [](PushHeader& h) { h.examples = TreeRun().training.batch_size + 1; });

  for (const auto& [why, push] : all) {
    const BegunPush begun = aggregator_->BeginPush(push.header);
    ASSERT_TRUE(begun.refusal.has_value()) << why;
    EXPECT_EQ(begun.refusal->outcome, PushOutcome::kNotCombined) << why;
    EXPECT_EQ(begun.is_of_member, push.is_of_member) << why;
  }
}

TEST_F(AggregatorTest, AWorkerThatWasSentBackIsNotWaitedFor) {
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall first;
  RecordingCall second;
  Push(Header(0), 2, first);

  const std::optional<Answer> refused =
      Push(Header(1), std::numeric_limits<float>::infinity(), second);

  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->push->outcome, PushOutcome::kNotCombined);
  EXPECT_EQ(first.Await().push->outcome, PushOutcome::kApplied);
  EXPECT_EQ(shard_.Await(1)[0].header.parts.size(), 1u);
}

TEST_F(AggregatorTest, AWorkerThatIsGoneIsNotWaitedFor) {
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall first;
  RecordingCall second;
  Push(Header(0), 2, first);
  Push(Header(1), 4, second);
  first.Await();
  second.Await();

  aggregator_->OnCallGone(&second);
  Push(Header(0, 1), 2, first);

  EXPECT_EQ(first.Await().push->outcome, PushOutcome::kApplied);
  EXPECT_EQ(shard_.Await(2)[1].header.parts.size(), 1u);
}

TEST_F(AggregatorTest, ACancelledPushIsNotSent) {
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall first;
  RecordingCall second;
  Push(Header(0), 2, first);

  EXPECT_TRUE(aggregator_->Cancel(&first));
  EXPECT_FALSE(aggregator_->Cancel(&first));
  Push(Header(1), 4, second);

  second.Await();
  EXPECT_EQ(shard_.Await(1)[0].header.parts.size(), 1u);
  EXPECT_FALSE(first.is_answered());
}

TEST_F(AggregatorTest, HoldsNoMorePushesThanItsWorkersMayHave) {
  Start(2);
  std::vector<PushAssembly> arriving;
  for (int i = 0; i < 3; ++i) {
    const BegunPush begun = aggregator_->BeginPush(Header(0));
    ASSERT_FALSE(begun.refusal.has_value());
    arriving.emplace_back(Header(0), begun.push);
  }

  EXPECT_TRUE(aggregator_->BeginPush(Header(0)).refusal.has_value());
  aggregator_->AbandonPush(arriving.front());

  EXPECT_FALSE(aggregator_->BeginPush(Header(0)).refusal.has_value());
}

TEST_F(AggregatorTest, TakesNothingBeforeItKnowsItsShard) {
  Start(2);
  aggregator_->OnUpstream("");
  EXPECT_TRUE(aggregator_->BeginPush(Header(0)).refusal.has_value());

  aggregator_->OnUpstream("shard:1");
  EXPECT_FALSE(aggregator_->BeginPush(Header(0)).refusal.has_value());
}

TEST_F(AggregatorTest, WaitsForAWorkerOnlyForAWhile) {
  Start(2);
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 1); });
  RecordingCall call;
  Push(Header(0), 2, call);

  seconds_ = absl::ToInt64Seconds(Combiner::kLongPatience);
  ++orders_.number;
  aggregator_->OnOrders(orders_);  // Has it look at the clock.

  EXPECT_EQ(call.Await().push->outcome, PushOutcome::kApplied);
  EXPECT_EQ(shard_.Await(1)[0].header.parts.size(), 1u);
}

TEST_F(AggregatorTest, SaysForWhomItWaits) {
  Start(2);
  RecordingCall call;
  EXPECT_EQ(aggregator_->Report().waiting_for_size(), 0);

  Push(Header(0), 2, call);

  const v1::AggregatorStatus status = aggregator_->Report();
  ASSERT_EQ(status.waiting_for_size(), 1);
  EXPECT_EQ(status.waiting_for(0), 1u);
  EXPECT_EQ(status.waiting_seconds(), 0);
  EXPECT_TRUE(aggregator_->Cancel(&call));
}

TEST_F(AggregatorTest, EndsWhileCallsWait) {
  Start(2);
  RecordingCall sent;
  RecordingCall gone;
  Push(Header(0), 2, sent);
  Push(Header(1), 4, gone);
  shard_.Await(1);

  EXPECT_TRUE(aggregator_->Cancel(&gone));
  aggregator_.reset();

  EXPECT_EQ(sent.Await().refusal.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(gone.is_answered());
}

TEST_F(AggregatorTest, KnowsItsWorkersBeforeTheirViewComes) {
  Start(1);

  EXPECT_TRUE(aggregator_->MayBeMember({kRun, WorkerId{1}, Incarnation{2}}));
  EXPECT_TRUE(aggregator_->MayBeMember({kRun, WorkerId{0}, Incarnation{1}}));
  EXPECT_FALSE(aggregator_->MayBeMember({kRun, WorkerId{0}, Incarnation{0}})) << "it is fenced";
  EXPECT_FALSE(aggregator_->MayBeMember({kRun, WorkerId{2}, Incarnation{3}})) << "another group";
  EXPECT_FALSE(aggregator_->MayBeMember({kRun + 1, WorkerId{0}, Incarnation{1}}));
}

}  // namespace
}  // namespace slipstream

#include "server/core/shard/waiting_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/archive.h"
#include "common/base/philox.h"

namespace slipstream {
namespace {

PendingCall CallWith(uint64_t name, uint64_t version, uint64_t slowest = 0) {
  return {.call = CallId{name},
          .condition = {.version = Version{version}, .slowest = WorkerClock{slowest}},
          .is_pull = true};
}

/// Returns the names of the calls that are asked for, none of which is answered.
std::vector<CallId> Asked(WaitingCalls& calls, const WaitingCalls::Reached& reached) {
  std::vector<CallId> asked;
  calls.Serve(reached, [&asked](const PendingCall& call) {
    asked.push_back(call.call);
    return false;
  });
  return asked;
}

TEST(WaitingCallsTest, AsksByAgeForThoseWhoseConditionsAreReached) {
  WaitingCalls calls;
  calls.Add(CallWith(1, 5));
  calls.Add(CallWith(2, 9));
  calls.Add(CallWith(3, 9, /*slowest=*/4));
  calls.Add(CallWith(4, 3));
  PendingCall exact = CallWith(5, 9);
  exact.exact = Stamp{.number = 9};
  calls.Add(exact);

  EXPECT_EQ(Asked(calls, {Version{4}, WorkerClock{3}}), (std::vector{CallId{4}, CallId{5}}));
  EXPECT_EQ(Asked(calls, {Version{5}, WorkerClock{4}}),
            (std::vector{CallId{1}, CallId{3}, CallId{4}, CallId{5}}));
}

TEST(WaitingCallsTest, ACallGoesOnWaitingUnderTheConditionThatItIsGiven) {
  WaitingCalls calls;
  calls.Add(CallWith(1, 0, /*slowest=*/4));
  calls.Serve({Version{}, WorkerClock{4}}, [](PendingCall& call) {
    call.condition = {.version = Version{7}};
    return false;
  });

  EXPECT_TRUE(Asked(calls, {Version{6}, WorkerClock{9}}).empty());
  EXPECT_EQ(Asked(calls, {Version{7}, WorkerClock{}}), std::vector{CallId{1}});
}

TEST(WaitingCallsTest, AreThoseOfAListThatIsSearchedEachTime) {
  RandomStream random(5, 1);
  WaitingCalls calls;
  std::vector<PendingCall> list;
  for (uint64_t step = 0; step < 2'000; ++step) {
    PendingCall call = CallWith(step, random.Below(6), random.Below(2) * random.Below(6));
    if (random.Below(3) > 0) call.reader = {WorkerId{random.Below(3)}, Incarnation{1}};
    call.is_pull = random.Below(2) == 0;
    if (!call.is_pull) call.push = PushReply();
    calls.Add(call);
    list.push_back(call);
    const CallId cancelled{step - random.Below(9)};
    const auto is_cancelled = [&](const PendingCall& each) { return each.call == cancelled; };
    if (random.Below(3) == 0) {
      ASSERT_EQ(calls.Cancel(cancelled), std::erase_if(list, is_cancelled) > 0);
    }
    const WaitingCalls::Reached reached = {Version{random.Below(6)}, WorkerClock{random.Below(6)}};
    std::vector<CallId> expected;
    std::erase_if(list, [&](const PendingCall& each) {
      const PullCondition& condition = each.condition;
      const bool is_reached = condition.slowest > WorkerClock{}
                                  ? condition.slowest <= reached.slowest
                                  : condition.version <= reached.version;
      if (is_reached) expected.push_back(each.call);
      return is_reached && Value(each.call) % 2 == 0;
    });
    std::vector<CallId> asked;
    calls.Serve(reached, [&asked](const PendingCall& each) {
      asked.push_back(each.call);
      return Value(each.call) % 2 == 0;
    });
    ASSERT_EQ(asked, expected);
    ASSERT_EQ(calls.size(), list.size());
    ASSERT_EQ(calls.Pulls(call.reader),
              static_cast<size_t>(std::ranges::count_if(list, [&](const PendingCall& each) {
                return each.is_pull && each.reader == call.reader;
              })));
    calls.CheckInvariants();
  }
}

TEST(WaitingCallsTest, AreReadByAgeAsTheyWereWritten) {
  WaitingCalls calls;
  for (const uint64_t name : {3, 1, 2}) calls.Add(CallWith(name, name));
  calls.Cancel(CallId{1});
  ArchiveWriter writer;
  writer(calls);
  const std::string bytes = writer.Take();

  WaitingCalls read;
  ArchiveReader reader(bytes);
  reader(read);

  ASSERT_TRUE(reader.is_complete());
  read.CheckInvariants();
  EXPECT_EQ(Asked(read, {Version{9}, WorkerClock{}}), (std::vector{CallId{3}, CallId{2}}));
}

}  // namespace
}  // namespace slipstream

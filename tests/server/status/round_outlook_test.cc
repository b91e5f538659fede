#include "server/status/round_outlook.h"

#include <gtest/gtest.h>

#include "server/status/round_clock.h"

namespace slipstream {
namespace {

OpenRoundFacts::Awaited Live(uint32_t worker, int64_t lease_milliseconds) {
  return {WorkerId{worker}, true, absl::Milliseconds(lease_milliseconds), std::nullopt};
}

OpenRoundFacts::Awaited Gone(uint32_t worker) {
  return {WorkerId{worker}, false, absl::ZeroDuration(), std::nullopt};
}

std::string Awaiting(std::vector<OpenRoundFacts::Awaited> awaited) {
  OpenRoundFacts facts;
  facts.awaited = std::move(awaited);
  facts.live_workers = 4;
  return DescribeOutlook(facts);
}

std::string Missing(uint32_t gradients, uint32_t live) {
  OpenRoundFacts facts;
  facts.gradients_missing = gradients;
  facts.live_workers = live;
  return DescribeOutlook(facts);
}

TEST(RoundOutlookTest, NamesWhomASynchronousRoundWaitsForAndWhatIfTheyDoNotCome) {
  EXPECT_EQ(Awaiting({Live(3, 3200)}),
            "closes when worker 3 pushes; without a word from worker 3 its lease ends in 3.2 s, "
            "and the round closes without it");
  EXPECT_EQ(Awaiting({Live(0, 5000), Live(1, 4100), Live(3, 4900)}),
            "closes when workers 0, 1 and 3 push; without a word from worker 1 its lease ends "
            "first, in 4.1 s, and it is waited for no longer");
}

TEST(RoundOutlookTest, SaysWhoLivesAndKeepsItOpenAllTheSame) {
  OpenRoundFacts::Awaited stalled = Live(3, 3200);
  stalled.stalled_for = absl::Seconds(40);

  EXPECT_EQ(Awaiting({Live(1, 4000), stalled}),
            "closes when workers 1 and 3 push; worker 3 is stalled: it lives, and has neither "
            "fetched nor pushed for 40.0 s");
}

TEST(RoundOutlookTest, SaysThatTheGuardHoldsItBack) {
  OpenRoundFacts facts;
  facts.awaited = {Live(1, 2000)};
  facts.is_held_back_by_guard = true;

  EXPECT_EQ(DescribeOutlook(facts),
            "held back by the staleness guard: closes when worker 1 pushes; without a word from "
            "worker 1 its lease ends in 2.0 s, and the round closes without it");
}

TEST(RoundOutlookTest, AWorkerThatIsGoneIsLeftOut) {
  EXPECT_EQ(Awaiting({Gone(2)}),
            "worker 2 is gone and left out with the next view, which closes the round");
  EXPECT_EQ(Awaiting({Live(0, 5000), Gone(2), Gone(3)}),
            "workers 2 and 3 are gone and left out with the next view; closes when worker 0 "
            "pushes; without a word from worker 0 its lease ends in 5.0 s, and the round closes "
            "without it");
}

TEST(RoundOutlookTest, CountsManyInsteadOfNamingThem) {
  std::vector<OpenRoundFacts::Awaited> many;
  for (uint32_t worker = 0; worker < 100; ++worker) many.push_back(Live(worker, 9000 - worker));

  EXPECT_EQ(Awaiting(many),
            "closes when 100 workers push; without a word from worker 99 its lease ends first, in "
            "8.9 s, and it is waited for no longer");
}

TEST(RoundOutlookTest, OtherRoundsWaitForGradientsOfAnybody) {
  EXPECT_EQ(Missing(2, 4), "closes with 2 more gradients, from whichever of 4 live workers");
  EXPECT_EQ(Missing(1, 1), "closes with 1 more gradient, from whichever of 1 live worker");
  EXPECT_EQ(Missing(1, 0), "closes when a worker comes and pushes: none is live");
}

TEST(RoundClockTest, TellsHowLongARoundIsOpenAndUnchanged) {
  const auto at = [](int64_t seconds) { return absl::FromUnixSeconds(seconds); };
  RoundClock clock;
  EXPECT_EQ(clock.open(at(5)), absl::ZeroDuration());

  clock.Observe(Version{0}, 0, at(10));
  clock.Observe(Version{0}, 1, at(12));
  clock.Observe(Version{0}, 1, at(14));
  EXPECT_EQ(clock.open(at(20)), absl::Seconds(10));
  EXPECT_EQ(clock.unchanged(at(20)), absl::Seconds(8));

  clock.Observe(Version{1}, 0, at(20));
  EXPECT_EQ(clock.open(at(21)), absl::Seconds(1));
  EXPECT_EQ(clock.unchanged(at(21)), absl::Seconds(1));
}

}  // namespace
}  // namespace slipstream

#include "worker/core/aggregator_use.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

class AggregatorUseTest : public testing::Test {
 protected:
  /// Lets the aggregator fail, and returns for how long it is left alone.
  absl::Duration PauseOf() {
    const absl::Time begin = now_;
    (void)use_.OnFailure(now_);
    while (!use_.IsUsable(now_)) now_ += absl::Milliseconds(500);
    return now_ - begin;
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  AggregatorUse use_;
};

TEST_F(AggregatorUseTest, AnAggregatorThatFailsIsLeftAloneForLongerEachTime) {
  EXPECT_TRUE(use_.IsUsable(now_));
  for (const int seconds : {1, 2, 4, 8, 16, 30, 30}) EXPECT_EQ(PauseOf(), absl::Seconds(seconds));

  EXPECT_TRUE(use_.OnAnswer());

  EXPECT_EQ(PauseOf(), absl::Seconds(1));
}

TEST_F(AggregatorUseTest, CombiningNothingIsAFailureOnlyIfItLasts) {
  for (int round = 0; round < 2; ++round) {
    EXPECT_FALSE(use_.OnRefusal(PushOutcome::kNotCombined));
    EXPECT_FALSE(use_.OnRefusal(PushOutcome::kNotCombined));
    use_.OnAnswer();
  }
  use_.OnRefusal(PushOutcome::kNotCombined);
  use_.OnRefusal(PushOutcome::kNotCombined);
  EXPECT_TRUE(use_.OnRefusal(PushOutcome::kNotCombined));
  EXPECT_TRUE(use_.OnRefusal(PushOutcome::kNotCombined)) << "until it has combined a push";
}

TEST_F(AggregatorUseTest, AnyOtherRefusalIsAFailure) {
  EXPECT_TRUE(use_.OnRefusal(PushOutcome::kRetryLater));
  EXPECT_TRUE(use_.OnRefusal(PushOutcome::kFenced));
}

}  // namespace
}  // namespace slipstream

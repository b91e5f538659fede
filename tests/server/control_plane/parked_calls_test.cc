#include "server/control_plane/parked_calls.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace slipstream {
namespace {

using Calls = ParkedCalls<std::string, int>;
using Answered = std::vector<std::pair<std::string, int>>;

class ParkedCallsTest : public testing::Test {
 protected:
  /// Waits until `answer_` is there, or answers 0 when its time is up.
  Calls::Question Question() {
    return [this](bool is_last) {
      ++asked_;
      return is_last && !answer_.has_value() ? std::optional(0) : answer_;
    };
  }

  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::optional<int> answer_;
  int asked_ = 0;
  Calls calls_;
};

TEST_F(ParkedCallsTest, ACallIsAskedAgainAfterAChangeAlone) {
  calls_.Park("a", Question(), absl::Seconds(1), now_);
  answer_ = 7;
  EXPECT_EQ(calls_.TakeAnswered(0, now_), Answered());
  EXPECT_EQ(asked_, 0);

  EXPECT_EQ(calls_.TakeAnswered(1, now_), (Answered{{"a", 7}}));
  EXPECT_EQ(calls_.TakeAnswered(2, now_), Answered());
}

TEST_F(ParkedCallsTest, ACallWhoseTimeIsUpIsAnsweredWithWhatThereIs) {
  calls_.Park("long", Question(), absl::Hours(1), now_);
  calls_.Park("short", Question(), absl::Seconds(1), now_);
  now_ += absl::Seconds(1);
  EXPECT_EQ(calls_.TakeAnswered(0, now_), (Answered{{"short", 0}}));
  now_ += Calls::kWaitMax;
  EXPECT_EQ(calls_.TakeAnswered(0, now_), (Answered{{"long", 0}})) << "however long it asked for";
}

TEST_F(ParkedCallsTest, ACallThatWasRemovedIsNotAnswered) {
  const uint64_t name = calls_.Park("a", Question(), absl::Seconds(1), now_);
  EXPECT_TRUE(calls_.Remove(name));
  EXPECT_FALSE(calls_.Remove(name));
  EXPECT_EQ(calls_.TakeAnswered(1, now_ + absl::Hours(1)), Answered());
}

TEST_F(ParkedCallsTest, IsFullAtItsBoundAndGivesAllBack) {
  for (size_t i = 0; i < Calls::kMax; ++i) {
    ASSERT_FALSE(calls_.is_full());
    calls_.Park("a", Question(), absl::Seconds(1), now_);
  }
  EXPECT_TRUE(calls_.is_full());
  EXPECT_EQ(calls_.TakeAll().size(), Calls::kMax);
  EXPECT_FALSE(calls_.is_full());
}

}  // namespace
}  // namespace slipstream

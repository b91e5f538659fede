#include "common/config/suggestion.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

const std::vector<std::string> kKeys = {"name", "n", "epochs", "batch_size", "warmup_epochs"};

TEST(SuggestionTest, FindsTheKeyOneOrTwoSlipsAway) {
  EXPECT_EQ(Nearest("epoch", kKeys), "epochs");
  EXPECT_EQ(Nearest("epcohs", kKeys), "epochs");
  EXPECT_EQ(Nearest("batchSize", kKeys), "batch_size");
  EXPECT_EQ(Nearest("NAME", kKeys), "name");
}

TEST(SuggestionTest, FindsTheKeyThatGoesOn) {
  EXPECT_EQ(Nearest("warmup", kKeys), "warmup_epochs");
  EXPECT_EQ(Nearest("PS_LEARNING", {"PS_LEARNING_RATE_OF_A_LAYER"}), "PS_LEARNING_RATE_OF_A_LAYER");
}

TEST(SuggestionTest, SuggestsNothingForAnotherWord) {
  EXPECT_EQ(Nearest("zebra", kKeys), std::nullopt);
  EXPECT_EQ(Nearest("", kKeys), std::nullopt);
  EXPECT_EQ(Nearest("x", kKeys), std::nullopt);
  EXPECT_EQ(Nearest(std::string(1'000'000, 'e'), kKeys), std::nullopt);
  EXPECT_EQ(DidYouMean("zebra", kKeys), "");
}

}  // namespace
}  // namespace slipstream

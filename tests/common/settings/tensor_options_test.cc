#include "common/settings/tensor_options.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/philox.h"
#include "common/settings/run_spec.h"

namespace slipstream {
namespace {

TEST(TensorOptionsTest, APatternMatchesTheWholeName) {
  EXPECT_TRUE(MatchesPattern("0.bias", "0.bias"));
  EXPECT_FALSE(MatchesPattern("0.bias", "10.bias"));
  EXPECT_FALSE(MatchesPattern("0.bias", "0.bias2"));
  EXPECT_FALSE(MatchesPattern("", "0.bias"));
  EXPECT_TRUE(MatchesPattern("", ""));
}

TEST(TensorOptionsTest, AStarStandsForAnyTextAndAQuestionMarkForOneByte) {
  for (const char* pattern : {"*", "**", "*.bias", "10.*", "1*s", "*0*", "10.bias*", "??.bias",
                              "*?.b??s", "*.*", "1?*?s"}) {
    EXPECT_TRUE(MatchesPattern(pattern, "10.bias")) << pattern;
  }
  for (const char* pattern : {"*.weight", "0.*", "?.bias", "???.bias", "10.bias?", "*b", "*s*b*",
                              "[01]0.bias", "10_bias"}) {
    EXPECT_FALSE(MatchesPattern(pattern, "10.bias")) << pattern;
  }
  EXPECT_TRUE(MatchesPattern("a*b", "aabab")) << "the star has to take more than the first b";
  EXPECT_TRUE(MatchesPattern("*ab*ab", "ababab"));
}

TEST(TensorOptionsTest, MatchesWhatThePlainRecursionMatches) {
  const std::function<bool(std::string_view, std::string_view)> matches =
      [&matches](std::string_view pattern, std::string_view name) -> bool {
    if (pattern.empty()) return name.empty();
    const std::string_view rest = pattern.substr(1);
    if (pattern.front() == '*') {
      return matches(rest, name) || (!name.empty() && matches(pattern, name.substr(1)));
    }
    if (name.empty()) return false;
    const bool is_alike = pattern.front() == '?' || pattern.front() == name.front();
    return is_alike && matches(rest, name.substr(1));
  };
  RandomStream random(3, 0);
  const auto text = [&random](std::string_view letters) {
    std::string drawn(random.Below(8), ' ');
    for (char& letter : drawn) letter = letters[random.Below(letters.size())];
    return drawn;
  };
  for (int i = 0; i < 20'000; ++i) {
    const std::string pattern = text("ab*?");
    const std::string name = text("ab");
    ASSERT_EQ(MatchesPattern(pattern, name), matches(pattern, name)) << pattern << " " << name;
  }
}

TEST(TensorOptionsTest, ALongNameTakesNoLongerThanItsLengthTimesThePattern) {
  // A matcher that tries every place for every star would not come back.
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "a*";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(512, 'a')));
}

/// Four tensors of 10, 2, 20 and 3 values.
TensorLayout TwoLayers() {
  TensorLayout layout;
  EXPECT_TRUE(layout.Append("0.weight", {5, 2}).ok());
  EXPECT_TRUE(layout.Append("0.bias", {2}).ok());
  EXPECT_TRUE(layout.Append("1.weight", {20}).ok());
  EXPECT_TRUE(layout.Append("1.bias", {3}).ok());
  return layout;
}

using Items = std::vector<TensorOptions>;
using Spans = std::vector<OptionSpan>;

TEST(TensorOptionsTest, WithoutItemsThereIsOneSpan) {
  EXPECT_EQ(OptionSpansWithin({0, 35}, TwoLayers(), 0.1, {}), (Spans{{{0, 35}, 0.1, 1}}));
  EXPECT_EQ(OptionSpansWithin({5, 30}, TwoLayers(), 0.1, {}), (Spans{{{0, 25}, 0.1, 1}}));
}

TEST(TensorOptionsTest, TheFirstItemThatMatchesCountsAsAWhole) {
  const Items items = {{.match = "0.*", .learning_rate_factor = 0.5},
                       {.match = "*.bias", .weight_decay = 0, .learning_rate_factor = 2}};

  EXPECT_EQ(OptionSpansWithin({0, 35}, TwoLayers(), 0.1, items),
            (Spans{{{0, 12}, 0.1, 0.5}, {{12, 32}, 0.1, 1}, {{32, 35}, 0, 2}}));
}

TEST(TensorOptionsTest, SpansAreCutAtTheRangeAndCountFromItsBegin) {
  const Items items = {{.match = "*.bias", .weight_decay = 0}};

  EXPECT_EQ(OptionSpansWithin({11, 34}, TwoLayers(), 0.1, items),
            (Spans{{{0, 1}, 0, 1}, {{1, 21}, 0.1, 1}, {{21, 23}, 0, 1}}));
}

TEST(TensorOptionsTest, NeighboursWithEqualOptionsShareASpan) {
  const Items items = {{.match = "0.weight", .weight_decay = 0.1},
                       {.match = "1.*", .learning_rate_factor = 0},
                       {.match = "*", .learning_rate_factor = 1}};

  EXPECT_EQ(OptionSpansWithin({0, 35}, TwoLayers(), 0.1, items),
            (Spans{{{0, 12}, 0.1, 1}, {{12, 35}, 0.1, 0}}));
}

TEST(TensorOptionsTest, FrozenPartsAreCutAtTheRangeAndCountFromItsBegin) {
  const Items items = {{.match = "0.bias", .learning_rate_factor = 0.5},
                       {.match = "*.bias", .learning_rate_factor = 0},
                       {.match = "0.*", .learning_rate_factor = 0}};

  EXPECT_EQ(FrozenWithin({4, 33}, TwoLayers(), items),
            (std::vector<ParameterRange>{{0, 6}, {28, 29}}));
  EXPECT_EQ(FrozenWithin({10, 32}, TwoLayers(), items), std::vector<ParameterRange>());
  EXPECT_EQ(FrozenWithin({0, 35}, TwoLayers(), {}), std::vector<ParameterRange>());
}

RunSpec RunOf(AlgorithmKind algorithm) {
  RunSpec run;
  run.worker.algorithm = algorithm;
  run.optimizer.weight_decay = 0.1;
  run.optimizer.per_tensor = {{.match = "a", .weight_decay = 0, .learning_rate_factor = 0.5},
                              {.match = "b", .weight_decay = 0.2, .learning_rate_factor = 0}};
  return run;
}

TEST(TensorOptionsTest, ServersFollowThemIfWorkersPushGradients) {
  for (const AlgorithmKind algorithm : {AlgorithmKind::kGradient, AlgorithmKind::kDownpour}) {
    const RunSpec run = RunOf(algorithm);
    EXPECT_EQ(run.server_optimizer().per_tensor, run.optimizer.per_tensor);
  }
}

TEST(TensorOptionsTest, ServersKeepWhatIsFrozenWhateverWorkersPush) {
  for (const AlgorithmKind algorithm : {AlgorithmKind::kLocalSgd, AlgorithmKind::kEasgd}) {
    EXPECT_EQ(RunOf(algorithm).server_optimizer().per_tensor,
              (Items{{.match = "a"}, {.match = "b", .learning_rate_factor = 0}}));
  }
}

}  // namespace
}  // namespace slipstream

#include "deploy/psctl/status/staleness_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace slipstream {
namespace {

TEST(StalenessHistogramTest, DrawsALinePerValue) {
  const std::vector<uint64_t> counts = {10, 20, 0, 1, 0, 0};

  EXPECT_EQ(FormatHistogram(counts, 3, {.lines_max = 8, .bar_width = 10}),
            "staleness  gradients  share   up to\n"
            "        0         10  32.3%   32.3%  #####\n"
            "        1         20  64.5%   96.8%  ##########\n"
            "        2          0   0.0%   96.8%\n"
            "        3          1   3.2%  100.0%  #\n");
}

TEST(StalenessHistogramTest, JoinsValuesWhereThereAreManyAndSaysThatTheLastIsOpen) {
  const std::vector<uint64_t> counts = {1, 1, 1, 1, 1};

  EXPECT_EQ(FormatHistogram(counts, 9, {.lines_max = 3, .bar_width = 4}),
            "staleness  gradients  share   up to\n"
            "      0-1          2  40.0%   40.0%  ####\n"
            "      2-3          2  40.0%   80.0%  ####\n"
            "       4+          1  20.0%  100.0%  ##\n");
}

TEST(StalenessHistogramTest, TheLastLineHasWhatLiesBeyondTheDistribution) {
  std::vector<uint64_t> counts(61, 0);
  counts[0] = 4000;
  counts[1] = 5990;
  counts[25] = 7;
  counts[60] = 3;

  EXPECT_EQ(DistributionEnd(counts), 2u);
  EXPECT_EQ(FormatHistogram(counts, 60, {.lines_max = 8, .bar_width = 4}),
            "staleness  gradients  share   up to\n"
            "        0       4000  40.0%   40.0%  ###\n"
            "        1       5990  59.9%   99.9%  ####\n"
            "     2-60         10   0.1%  100.0%  #\n");
}

TEST(StalenessHistogramTest, IsEmptyWithoutGradients) {
  EXPECT_EQ(FormatHistogram({}, 0), "");
  EXPECT_EQ(FormatHistogram(std::vector<uint64_t>(5, 0), 0), "");
}

TEST(StalenessHistogramTest, KeepsToItsLines) {
  for (size_t buckets = 1; buckets < 100; ++buckets) {
    SCOPED_TRACE(testing::Message() << "buckets " << buckets);
    const std::string text = FormatHistogram(std::vector<uint64_t>(buckets, 3), buckets - 1);
    ASSERT_LE(std::count(text.begin(), text.end(), '\n'), 17);
  }
}

}  // namespace
}  // namespace slipstream

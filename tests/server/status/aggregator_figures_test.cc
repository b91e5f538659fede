#include "server/status/aggregator_figures.h"

#include <gtest/gtest.h>

#include <string>

#include "common/base/limits.h"

namespace slipstream {
namespace {

TEST(AggregatorFiguresTest, KeepsNoMoreThanAnAggregatorCanHave) {
  v1::AggregatorStatus report;
  report.set_address(std::string(1000, 'a'));
  report.set_parts(7);
  report.set_composites(5);
  report.set_sent_back(2);
  report.set_waiting_seconds(0.5);
  for (uint32_t worker = 0; worker < 10 * kFanoutMax; ++worker) report.add_waiting_for(worker);

  const v1::AggregatorStatus figures = FiguresOf(report);

  EXPECT_EQ(figures.address(), "");
  EXPECT_EQ(figures.parts(), 7u);
  EXPECT_EQ(figures.composites(), 5u);
  EXPECT_EQ(figures.sent_back(), 2u);
  EXPECT_DOUBLE_EQ(figures.waiting_seconds(), 0.5);
  ASSERT_EQ(figures.waiting_for_size(), static_cast<int>(kFanoutMax));
  EXPECT_EQ(figures.waiting_for(1), 1u);
}

}  // namespace
}  // namespace slipstream

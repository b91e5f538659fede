#include "deploy/psctl/compare/run_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "deploy/psctl/compare/svg_document.h"

namespace slipstream {
namespace {

using testing::HasSubstr;
using testing::Not;

size_t CountOf(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

PlotGroup Group(const std::string& label) {
  RunCurves run;
  run.accuracy_by_time = {{1, 0.5}, {2, 0.75}};
  run.accuracy_by_epoch = {{1, 0.5}, {2, 0.75}};
  run.loss_by_time = {{1, 2}, {2, 1}};
  run.loss_by_epoch = run.loss_by_time;
  run.rate_by_time = {{0.5, 100}, {1.5, 300}};
  return {.label = label, .runs = {run, run}, .staleness = {5, 3, 0, 2}};
}

TEST(RunPlotTest, EachRunIsALineInTheColorOfItsGroup) {
  const std::string svg = PlotRuns({Group("async"), Group("hardsync")});

  // There are three curves for each of two runs, and the distribution of staleness.
  EXPECT_EQ(CountOf(svg, "class=\"line stroke-0\""), 7u + 1u) << "and the legend";
  EXPECT_EQ(CountOf(svg, "class=\"line stroke-1\""), 7u + 1u);
  EXPECT_EQ(CountOf(svg, "class=\"column fill-0\""), 3u) << "a column for each staleness seen";
  EXPECT_THAT(svg, HasSubstr(">async (2 runs)</text>"));
  EXPECT_THAT(svg, HasSubstr(">Test accuracy over time</text>"));
}

TEST(RunPlotTest, ShowsLossesWhereThereIsNoAccuracy) {
  PlotGroup group = Group("regression");
  for (RunCurves& run : group.runs) run.accuracy_by_time = run.accuracy_by_epoch = {};

  const std::string svg = PlotRuns({group});

  EXPECT_THAT(svg, HasSubstr(">Test loss over epochs</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("accuracy")));
}

TEST(RunPlotTest, SaysWhereNothingWasMeasured) {
  const std::string svg = PlotRuns({{.label = "short", .runs = {RunCurves()}, .staleness = {}}});

  EXPECT_EQ(CountOf(svg, ">nothing was measured</text>"), 4u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(RunPlotTest, ManyValuesOfStalenessShareColumns) {
  PlotGroup group = Group("many");
  group.staleness.assign(1024, 1);

  const std::string svg = PlotRuns({group});

  EXPECT_EQ(CountOf(svg, "class=\"column fill-0\""), 64u);
}

TEST(RunPlotTest, TheAxisOfStalenessEndsWhereTheDistributionsDo) {
  PlotGroup group = Group("tail");
  group.staleness.assign(61, 0);
  for (size_t sigma = 0; sigma < 10; ++sigma) group.staleness[sigma] = 1000;
  group.staleness[25] = 3;
  group.staleness[60] = 1;

  const std::string svg = PlotRuns({group});

  EXPECT_EQ(CountOf(svg, "class=\"column fill-0\""), 10u) << "each has a column of its own";
  EXPECT_THAT(svg, HasSubstr(">staleness σ, in updates; 0.04% lie beyond, up to 60</text>"));
}

TEST(RunPlotTest, ARunThatDivergedEndsWithACross) {
  PlotGroup group = Group("async");
  group.note = "1 epochs, 1 diverged in epoch 3";
  group.runs[1].accuracy_by_time.push_back({3, 0.1});
  group.runs[1].accuracy_by_epoch.push_back({3, 0.1});
  group.runs[1].ends_diverged = true;

  const std::string svg = PlotRuns({group});

  // Two lines of a cross in each of two charts, beside the seven curves.
  EXPECT_EQ(CountOf(svg, "class=\"line stroke-0\""), 7u + 1u + 4u);
  EXPECT_THAT(svg, HasSubstr(">async (2 runs): 1 epochs, 1 diverged in epoch 3</text>"));
}

TEST(RunPlotTest, LongLabelsAreCut) {
  const std::string svg = PlotRuns({Group(std::string(500, 'x'))});

  EXPECT_THAT(svg, HasSubstr(">" + std::string(120, 'x') + "… (2 runs)</text>"));
}

TEST(RunPlotTest, LabelsAreTextAndNoMarkup) {
  const std::string svg = PlotRuns({Group("<script>&\"'\x01\xFF\xEF\xBF\xBF")});

  EXPECT_THAT(svg, Not(HasSubstr("<script>")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;&amp;&quot;'\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
}

TEST(SvgDocumentTest, ClosesWhatItOpens) {
  SvgDocument document(10, 20, "a & b", "text { fill: red; }\n");
  document.Line({1, 2}, {3.25, 4}, "axis");

  EXPECT_EQ(std::move(document).Finish(),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"10\" height=\"20\" "
            "viewBox=\"0 0 10 20\">\n"
            "<title>a &amp; b</title>\n<style>\ntext { fill: red; }\n</style>\n"
            "<line x1=\"1\" y1=\"2\" x2=\"3.25\" y2=\"4\" class=\"axis\"/>\n</svg>\n");
}

}  // namespace
}  // namespace slipstream

#include "deploy/psctl/compare/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "deploy/psctl/compare/plot_style.h"

namespace slipstream {
namespace {

const ChartScale kScale = {.low = 0, .high = 10, .ticks = {}};

/// Returns what follows each occurrence of `mark`, up to the next quote.
std::multiset<std::string> After(const std::string& text, const std::string& mark) {
  std::multiset<std::string> found;
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    at += mark.size();
    found.insert(text.substr(at, text.find('"', at) - at));
  }
  return found;
}

TEST(ChartTest, TextsOfNeighboursAreBesideEachOther) {
  SvgDocument document(400, 300, "texts", "");
  Chart chart(document, {{0, 0}, 400, 300}, {.title = "", .x = "", .y_unit = ""}, kScale, kScale);

  for (int i = 0; i < 5; ++i) chart.DrawText({5, 5}, "(1, 4, 30)");

  const std::string svg = std::move(document).Finish();
  std::set<std::string> places;
  size_t texts = 0;
  for (size_t at = svg.find("<text x=\""); at != std::string::npos;
       at = svg.find("<text x=\"", at + 1)) {
    const size_t end = svg.find('>', at);
    if (svg.substr(end + 1, 10) != "(1, 4, 30)") continue;
    ++texts;
    places.insert(svg.substr(at, end - at));
  }
  EXPECT_EQ(texts, 5u);
  EXPECT_EQ(places.size(), 5u);
}

TEST(ChartTest, AnIntervalHasTwoCaps) {
  SvgDocument document(400, 300, "interval", "");
  Chart chart(document, {{0, 0}, 400, 300}, {.title = "", .x = "", .y_unit = ""}, kScale, kScale);

  chart.DrawInterval(5, 2, 8, "1");

  EXPECT_EQ(After(std::move(document).Finish(), "class=\"").count("interval stroke-1"), 3u);
}

TEST(PlotStyleTest, ManyGroupsCanBeToldApart) {
  std::set<std::string> looks;
  std::set<std::string> marks;
  for (size_t group = 0; group < 24; ++group) {
    looks.insert(PlotColor(group));
    SvgDocument document(10, 10, "", "");
    DrawMark(document, {5, 5}, group);
    marks.insert(std::move(document).Finish());
  }
  EXPECT_EQ(looks.size(), 24u);
  EXPECT_EQ(marks.size(), 24u);
  SvgDocument document(10, 10, "", "");
  for (const size_t group : {0u, 6u}) DrawMark(document, {5, 5}, group);
  const std::string svg = std::move(document).Finish();
  EXPECT_NE(svg.find("<circle"), std::string::npos);
  EXPECT_NE(svg.find("<polygon"), std::string::npos) << "the colour's second group";
}

}  // namespace
}  // namespace slipstream

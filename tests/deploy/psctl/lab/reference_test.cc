#include "deploy/psctl/lab/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "tests/deploy/psctl/lab/grid_support.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

constexpr char kTable[] =
    "sigma,mu,lambda,test_error_percent,training_time_s\n"
    "1,4,30,18.09,1573\n"
    "30,4,30,18.41,2073\n"
    "18,8,30,18.92,2488\n";

class ReferenceTest : public testing::Test {
 protected:
  ReferenceTest()
      : grid_(Expand("zip: {n: [1, 30, 18], batch_size: [4, 4, 8], workers: [30, 30, 30]}\n"
                     "reference: {file: r.csv, tolerance: 2}\n")) {}

  std::vector<ReferenceRow> Rows(const std::string& text) const {
    return std::get<std::vector<ReferenceRow>>(ParseReference(text, *grid_.grid.reference));
  }

  /// Compares with cells of these errors.
  ReferenceView Compare(const std::vector<double>& errors) {
    results_.resize(errors.size());
    for (size_t i = 0; i < errors.size(); ++i) {
      results_[i].cell = &grid_.cells.cells.at(i);
      results_[i].state = CellState::kDone;
      results_[i].error = errors[i];
    }
    points_ = PointsOf(results_);
    return CompareWith(Rows(kTable), *grid_.grid.reference, points_);
  }

  const Expanded grid_;
  std::vector<CellResult> results_;
  std::vector<PointResult> points_;
};

TEST_F(ReferenceTest, MatchesTheLettersOfTheLiterature) {
  const std::vector<ReferenceRow> rows = Rows(kTable);

  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[1].keys, testing::ElementsAre(testing::Pair("consistency.n", "30"),
                                                 testing::Pair("training.batch_size", "4"),
                                                 testing::Pair("cluster.workers", "30")));
  EXPECT_EQ(rows[1].error_percent, 18.41);
  EXPECT_EQ(rows[1].others.at(0).second, "2073");
}

TEST_F(ReferenceTest, PutsOursBeside) {
  const ReferenceView view = Compare({0.19, 0.18, 0.25});

  EXPECT_NEAR(*view.matches[0].difference(), 0.91, 1e-9);
  EXPECT_NEAR(*view.matches[2].difference(), 6.08, 1e-9);
  EXPECT_EQ(view.not_reproduced(), 1u);
  EXPECT_NEAR(*view.mean_difference, (0.91 - 0.41 + 6.08) / 3, 1e-9);
  EXPECT_NEAR(*view.rank_correlation, 0.5, 1e-9);
  EXPECT_THAT(VerdictText(view), HasSubstr("2 of 3 published errors are within 2 percentage "
                                           "points of ours: does not reproduce"));
  EXPECT_THAT(VerdictText(Compare({0.19, 0.19, 0.19})), HasSubstr("ours: reproduced"));
}

TEST_F(ReferenceTest, ARowWithoutAResultIsNotReproduced) {
  const ReferenceView view = Compare({0.19});

  EXPECT_FALSE(view.matches[1].ours.has_value());
  EXPECT_EQ(view.not_reproduced(), 2u);
}

TEST_F(ReferenceTest, FindsACellByTheValuesOfOneThatMeansTheSame) {
  const Expanded grid = Expand("product: {n: [30, 18]}\n");
  ASSERT_EQ(grid.cells.cells.size(), 1u);
  CellResult result;
  result.cell = &grid.cells.cells[0];
  result.error = 0.2;
  const std::vector<CellResult> results = {result};
  const std::vector<PointResult> points = PointsOf(results);

  const ReferenceView view =
      CompareWith(Rows("n,test_error_percent\n18,20\n19,20\n"), *grid_.grid.reference, points);

  EXPECT_TRUE(view.matches[0].ours.has_value());
  EXPECT_EQ(view.matches[1].point, nullptr);
}

TEST_F(ReferenceTest, NamesTheLineOfAnError) {
  const auto errors = [this](const std::string& text) {
    return ToString(std::get<std::vector<Diagnostic>>(ParseReference(text, *grid_.grid.reference)));
  };

  EXPECT_EQ(errors("n,test_error_percent\n1,2,3\n"), "r.csv:2:1: error: 3 values, and 2 columns\n");
  EXPECT_EQ(errors("n,test_error_percent\n1,many\n"),
            "r.csv:2:1: error: test_error_percent is no number: many\n");
  EXPECT_THAT(errors("n,error\n1,2\n"), HasSubstr("there is no column test_error_percent"));
  EXPECT_THAT(errors("a,test_error_percent\n1,2\n"), HasSubstr("no column stands for a key"));
  EXPECT_THAT(errors("n,test_error_percent\n"), HasSubstr("the reference has no rows"));
}

}  // namespace
}  // namespace slipstream

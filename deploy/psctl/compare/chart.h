#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_CHART_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_CHART_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "deploy/psctl/compare/chart_scale.h"
#include "deploy/psctl/compare/run_curves.h"
#include "deploy/psctl/compare/svg_document.h"

namespace slipstream {

/// The place of a chart in a picture, in pixels.
struct ChartBox {
  CurvePoint corner;  // Upper left.
  double width = 0;
  double height = 0;
};

/// A chart with axes, grid, title and labels, into which data are drawn. Data beyond the end of a
/// scale are drawn at that end.
///
/// Not thread-safe: one owner. The document must outlive it.
class Chart {
 public:
  struct Labels {
    std::string_view title;
    std::string_view x;
    std::string_view y_unit;  // Follows each number of the y axis.
  };

  /// Draws everything except the data.
  Chart(SvgDocument& document, const ChartBox& box, const Labels& labels, const ChartScale& x,
        const ChartScale& y);

  /// Draws a line through the points.
  void DrawLine(const Curve& curve, const std::string& color);

  /// Draws the mark of a group on each point.
  void DrawMarks(const Curve& curve, size_t group);

  /// Draws a bar from `low` up to `high`, such as a confidence interval.
  void DrawInterval(double x, double low, double high, const std::string& color);

  /// Writes a text beside a point, at the next place that no other text of this function takes.
  void DrawText(const CurvePoint& point, std::string_view text);

  /// Draws a cross on a point.
  void DrawCross(CurvePoint point, const std::string& color);

  /// Draws a column from the x axis up to `y`.
  void DrawColumn(double x_begin, double x_end, double y, const std::string& color);

  /// Writes a note into the middle of a chart without data.
  void DrawNote(std::string_view note);

 private:
  /// Returns the place of a point of the data in the picture.
  CurvePoint At(double x, double y) const;

  SvgDocument& document_;
  const ChartBox area_;  // The area of the data.
  const ChartScale x_;
  const ChartScale y_;
  std::vector<ChartBox> texts_;  // The places of the texts beside points.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_CHART_H_

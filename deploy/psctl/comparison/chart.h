#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_CHART_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_CHART_H_

#include <string>
#include <string_view>

#include "deploy/psctl/comparison/chart_scale.h"
#include "deploy/psctl/comparison/run_curves.h"
#include "deploy/psctl/comparison/svg_document.h"

namespace slipstream {

/// A chart's place in a picture, in pixels.
struct ChartBox {
  CurvePoint corner;  // Upper left.
  double width = 0;
  double height = 0;
};

/// One chart with axes, grid, title and labels, and the data drawn into it. Data beyond a scale are
/// drawn at its end.
///
/// Not thread-safe: one owner. The document must outlive it.
class Chart {
 public:
  struct Labels {
    std::string_view title;
    std::string_view x;
    std::string_view y_unit;  // Behind each number of the y axis.
  };

  /// Draws everything but the data.
  Chart(SvgDocument& document, const ChartBox& box, const Labels& labels, const ChartScale& x,
        const ChartScale& y);

  /// A line through the points.
  void DrawLine(const Curve& curve, const std::string& color);

  /// A dot on each point.
  void DrawDots(const Curve& curve, const std::string& color);

  /// A column from the x axis up to `y`.
  void DrawColumn(double x_begin, double x_end, double y, const std::string& color);

  /// Words in the middle of a chart without data.
  void DrawNote(std::string_view note);

 private:
  CurvePoint At(double x, double y) const;

  SvgDocument& document_;
  const ChartBox area_;  // Between the axes.
  const ChartScale x_;
  const ChartScale y_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_CHART_H_

#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_SVG_DOCUMENT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_SVG_DOCUMENT_H_

#include <span>
#include <string>
#include <string_view>

#include "deploy/psctl/compare/run_curves.h"

namespace slipstream {

/// Returns `text` for use as character data or in an attribute value of XML: markup is escaped, and
/// characters that XML does not allow become U+FFFD or a blank.
std::string XmlText(std::string_view text);

/// An SVG picture. Later shapes cover earlier ones. Coordinates are pixels from the upper left
/// corner. A style sheet gives shapes their looks: each shape has classes, separated by blanks.
///
/// Not thread-safe: one owner.
class SvgDocument {
 public:
  /// `title` is the text for readers who do not see the picture; `style` is CSS without markup.
  SvgDocument(double width, double height, std::string_view title, std::string_view style);

  void Rectangle(CurvePoint corner, double width, double height, std::string_view classes);
  void Line(CurvePoint from, CurvePoint to, std::string_view classes);
  void Polyline(std::span<const CurvePoint> points, std::string_view classes);
  void Polygon(std::span<const CurvePoint> corners, std::string_view classes);
  void Dot(CurvePoint center, double radius, std::string_view classes);
  void Text(CurvePoint place, std::string_view text, std::string_view classes);

  /// Returns the text of the whole file. No other method may be called afterwards.
  std::string Finish() &&;

 private:
  void Points(std::string_view shape, std::span<const CurvePoint> points, std::string_view classes);

  std::string text_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_SVG_DOCUMENT_H_

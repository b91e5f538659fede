#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_SVG_DOCUMENT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_SVG_DOCUMENT_H_

#include <span>
#include <string>
#include <string_view>

#include "deploy/psctl/comparison/run_curves.h"

namespace slipstream {

/// Any text as character data and attribute values of XML: markup is escaped, and what XML cannot
/// hold becomes U+FFFD or a blank.
std::string XmlText(std::string_view text);

/// An SVG picture as it is drawn, from the back to the front. Coordinates are pixels from the upper
/// left corner. Looks come from a style sheet: each shape has classes of it, separated by blanks.
///
/// Not thread-safe: one owner.
class SvgDocument {
 public:
  /// `title` is what readers hear who do not see the picture; `style` is CSS without markup.
  SvgDocument(double width, double height, std::string_view title, std::string_view style);

  void Rectangle(CurvePoint corner, double width, double height, std::string_view classes);
  void Line(CurvePoint from, CurvePoint to, std::string_view classes);
  void Polyline(std::span<const CurvePoint> points, std::string_view classes);
  void Dot(CurvePoint center, double radius, std::string_view classes);
  void Text(CurvePoint place, std::string_view text, std::string_view classes);

  /// The whole file. Call once, last.
  std::string Finish() &&;

 private:
  std::string text_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARISON_SVG_DOCUMENT_H_

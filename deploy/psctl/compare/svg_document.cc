#include "deploy/psctl/compare/svg_document.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "common/base/printable.h"

namespace slipstream {
namespace {

/// Returns a number with six digits. That gives at least hundredths of a pixel for pictures up to
/// 9999 pixels wide.
std::string Pixels(double value) { return fmt::format("{:.6g}", value); }

}  // namespace

std::string XmlText(std::string_view text) {
  std::string escaped;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  // UTF-8 can encode U+FFFE and U+FFFF, but XML does not allow them.
  for (const char* outlaw : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (size_t at = escaped.find(outlaw); at != escaped.npos; at = escaped.find(outlaw)) {
      escaped.replace(at, 3, "\xEF\xBF\xBD");
    }
  }
  return escaped;
}

SvgDocument::SvgDocument(double width, double height, std::string_view title,
                         std::string_view style) {
  text_ = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n<title>{2}</title>\n<style>\n{3}</style>\n",
      Pixels(width), Pixels(height), XmlText(title), style);
}

void SvgDocument::Rectangle(CurvePoint corner, double width, double height,
                            std::string_view classes) {
  text_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"/>\n",
                       Pixels(corner.x), Pixels(corner.y), Pixels(width), Pixels(height),
                       XmlText(classes));
}

void SvgDocument::Line(CurvePoint from, CurvePoint to, std::string_view classes) {
  text_ +=
      fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", Pixels(from.x),
                  Pixels(from.y), Pixels(to.x), Pixels(to.y), XmlText(classes));
}

void SvgDocument::Points(std::string_view shape, std::span<const CurvePoint> points,
                         std::string_view classes) {
  std::string places;
  for (const CurvePoint& point : points) {
    fmt::format_to(std::back_inserter(places), "{}{},{}", places.empty() ? "" : " ",
                   Pixels(point.x), Pixels(point.y));
  }
  text_ += fmt::format("<{} points=\"{}\" class=\"{}\"/>\n", shape, places, XmlText(classes));
}

void SvgDocument::Polyline(std::span<const CurvePoint> points, std::string_view classes) {
  Points("polyline", points, classes);
}

void SvgDocument::Polygon(std::span<const CurvePoint> corners, std::string_view classes) {
  Points("polygon", corners, classes);
}

void SvgDocument::Dot(CurvePoint center, double radius, std::string_view classes) {
  text_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"/>\n", Pixels(center.x),
                       Pixels(center.y), Pixels(radius), XmlText(classes));
}

void SvgDocument::Text(CurvePoint place, std::string_view text, std::string_view classes) {
  text_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", Pixels(place.x),
                       Pixels(place.y), XmlText(classes), XmlText(text));
}

std::string SvgDocument::Finish() && { return std::move(text_) + "</svg>\n"; }

}  // namespace slipstream

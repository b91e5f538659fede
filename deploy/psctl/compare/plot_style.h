#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_PLOT_STYLE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_PLOT_STYLE_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "deploy/psctl/compare/run_curves.h"
#include "deploy/psctl/compare/svg_document.h"

namespace slipstream {

/// Returns the name of the looks of a plot's group, for Chart. People with any colour vision can
/// tell the colours apart. If there are more groups than colours, colours repeat with lines of
/// other dashes; 24 groups differ.
std::string PlotColor(size_t group);

/// The looks of what is no group: bounds, ideals and means.
inline constexpr char kIdealColor[] = "ideal";

/// Draws the mark of a group's points. Neighbouring groups have marks of different shapes; groups
/// with the same colour do, too.
void DrawMark(SvgDocument& document, CurvePoint center, size_t group);

/// Draws a line of a legend, with a sample of the group's line and its mark.
void DrawLegendLine(SvgDocument& document, CurvePoint left, size_t group, std::string_view text);

/// Returns the style sheet of plots, for a light page and a dark one, as the reader prefers.
std::string PlotStyleSheet();

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_PLOT_STYLE_H_

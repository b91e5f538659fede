#ifndef SLIPSTREAM_DEPLOY_PSCTL_COMPARE_PLOT_STYLE_H_
#define SLIPSTREAM_DEPLOY_PSCTL_COMPARE_PLOT_STYLE_H_

#include <cstddef>
#include <string>

namespace slipstream {

/// Returns the name of the colour of a plot's group, for Chart. People with any colour vision can
/// tell the colours apart. If there are more groups than colours, colours repeat, with dashed
/// lines.
std::string PlotColor(size_t group);

/// Returns the style sheet of plots, for a light page and a dark one, as the reader prefers.
std::string PlotStyleSheet();

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_COMPARE_PLOT_STYLE_H_

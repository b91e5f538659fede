#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_PLOTS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_PLOTS_H_

#include <string>
#include <vector>

#include "deploy/psctl/lab/lab_report.h"

namespace slipstream {

/// A plot of a grid, as an SVG element for a page with PlotStyleSheet().
struct LabPlot {
  std::string svg;

  /// Says in a sentence or two what the plot shows.
  std::string caption;
};

/// Returns the plots for which there are results: the error against epochs and against time, with
/// intervals over seeds; the (σ, μ, λ) plot, the error of each point against its time; the error
/// against μλ; and the speed-up over the number of workers. Points with about the same μλ have
/// the same colour, if there are several groups of them.
std::vector<LabPlot> LabPlots(const LabReport& report);

/// Returns the distribution of staleness of each point, with the bound 2n.
std::vector<LabPlot> SigmaPlots(const LabReport& report);

/// Returns "(30, 4, 30)": the staleness that the policy means to have (n of n-softsync, 0 where
/// gradients are never stale, else the rounded mean), μ and λ.
std::string SigmaMuLambda(const PointResult& point);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_LAB_PLOTS_H_

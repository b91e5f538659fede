#ifndef SLIPSTREAM_DEPLOY_PSCTL_LAB_SETUP_TEXT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_LAB_SETUP_TEXT_H_

#include <string>
#include <vector>

#include "deploy/lab/world_spec.h"
#include "deploy/psctl/lab/lab_report.h"

namespace slipstream {

/// Returns what a world is like, in sentences.
std::vector<std::string> WorldFacts(const WorldSpec& world);

/// Returns what the cells of a grid have in common, in sentences: engine, programs, base, other
/// settings, and the world.
std::vector<std::string> SetupFacts(const LabReport& report);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_LAB_SETUP_TEXT_H_

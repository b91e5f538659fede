#ifndef SLIPSTREAM_COMMON_SETTINGS_LEARNING_WARNINGS_H_
#define SLIPSTREAM_COMMON_SETTINGS_LEARNING_WARNINGS_H_

#include <string>
#include <vector>

#include "common/settings/run_spec.h"

namespace slipstream {

/// Returns a warning for each combination of settings that is known not to learn, or not as it is
/// written: what is wrong, who has found it, and what to set instead. Such a run may still start.
/// Each limit was published or measured; deploy/examples/README.md has the figures.
std::vector<std::string> LearningWarnings(const RunSpec& run);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_LEARNING_WARNINGS_H_

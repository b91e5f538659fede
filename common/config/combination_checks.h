#ifndef SLIPSTREAM_COMMON_CONFIG_COMBINATION_CHECKS_H_
#define SLIPSTREAM_COMMON_CONFIG_COMBINATION_CHECKS_H_

#include <string>
#include <string_view>
#include <vector>

#include "common/config/combinations.h"
#include "common/config/diagnostic.h"
#include "common/config/run_draft.h"

namespace slipstream {

/// Reports the settings of the run that do not go together (combinations.h), under each of its
/// policies.
void CheckCombinations(const RunDraft& draft, DiagnosticList& diagnostics);

/// Returns the names of the values of a key that `values` are, or, if `held` is not set, of all
/// others, while the other settings are those of `run`. Empty if the key's values have no names.
std::vector<std::string> NamesOf(const Values& values, const RunSpec& run, bool held);

/// Returns what the values of the key at `path` do not go with, one sentence for each combination
/// that is reported there; empty if there is none.
std::string DescribeCombinations(std::string_view path);

/// Returns all combinations as the documentation's table, in Markdown.
std::string CombinationsTable();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_COMBINATION_CHECKS_H_

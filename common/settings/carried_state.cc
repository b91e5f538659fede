#include "common/settings/carried_state.h"

#include <fmt/format.h>

#include "common/base/encoding.h"
#include "common/settings/algorithm_rows.h"
#include "common/settings/optimizer_rows.h"

namespace slipstream {

std::vector<std::string> CarriedState(const RunSpec& run) {
  std::vector<std::string> carried;
  const EncodingRow& codec = RowOf(run.wire.push_codec);
  const AlgorithmRow& algorithm = RowOf(run.worker.algorithm);
  const RuleRow& rule = RowOf(run.optimizer.kind);
  if (codec.feeds_error_back) carried.push_back(fmt::format("rounding errors of {}", codec.name));
  if (algorithm.keeps_weights) carried.push_back(fmt::format("weights of {}", algorithm.name));
  if (algorithm.has_local_weights && rule.state_arrays > 0) {
    carried.push_back(fmt::format("state of {}", rule.name));
  }
  return carried;
}

}  // namespace slipstream

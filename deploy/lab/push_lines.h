#ifndef SLIPSTREAM_DEPLOY_LAB_PUSH_LINES_H_
#define SLIPSTREAM_DEPLOY_LAB_PUSH_LINES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "common/protocol/batch_ranges.h"

namespace slipstream {

/// A line of a push log: one push that used up its sequence (server/storage/README.md).
struct PushLine {
  size_t number = 0;  // Of the line in the file, from 1.
  WorkerId worker{};
  Incarnation incarnation{};
  Sequence sequence{};
  BatchRanges batches;
  uint32_t examples = 0;
  Version base{};
  Version version{};
  uint64_t staleness = 0;
  std::string outcome;
  uint32_t stage = 0;

  /// Whether a gradient came with it that is part of a version.
  bool counts() const { return examples > 0 && (outcome == "APPLIED" || outcome == "BUFFERED"); }
};

/// Reads the text of a push log; `file` names it in errors. A last line that is cut off is left
/// out. DATA_LOSS names the line that is none.
absl::StatusOr<std::vector<PushLine>> ReadPushLines(absl::string_view text,
                                                    const std::string& file);

/// Does the same for the file at `path`; NOT_FOUND if it cannot be read.
absl::StatusOr<std::vector<PushLine>> ReadPushLog(const std::string& path);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_PUSH_LINES_H_

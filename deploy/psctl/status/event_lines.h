#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_EVENT_LINES_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_EVENT_LINES_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "proto/status.pb.h"

namespace slipstream {

/// The events of a run as lines for people or as JSON, each once.
///
/// Not thread-safe: one owner.
class EventLines {
 public:
  explicit EventLines(bool is_json, absl::TimeZone zone = absl::LocalTimeZone())
      : is_json_(is_json), zone_(zone) {}

  /// Returns a line for each event of the status that no status before had, oldest first, and where
  /// events are missing, a line that says how many: `{"missed": 3}` in JSON.
  std::string Next(const v1::RunStatus& status);

 private:
  std::string LineOf(const v1::RunEvent& event) const;
  std::string MissedLine(uint64_t missed) const;

  // Constant after construction.
  const bool is_json_;
  const absl::TimeZone zone_;

  uint64_t run_ = 0;
  uint64_t told_ = 0;  // The number of the newest event of the run that was told.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_EVENT_LINES_H_

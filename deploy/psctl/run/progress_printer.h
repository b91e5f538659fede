#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_PROGRESS_PRINTER_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_PROGRESS_PRINTER_H_

#include <cstdint>
#include <string_view>

#include "absl/time/time.h"
#include "common/settings/run_spec.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Shows on stderr how a run goes: on a terminal one line that is redrawn; elsewhere a plain line
/// when the phase changes and every two seconds of training. Evaluations and notes stay in both.
/// If stderr cannot be written, the run goes on.
///
/// Not thread-safe: one owner.
class ProgressPrinter {
 public:
  /// Finds out whether stderr is a terminal. With JSON every line is logged through spdlog, and no
  /// line is redrawn.
  explicit ProgressPrinter(LogSpec::Format format = LogSpec::Format::kText);

  /// Erases the redrawn line.
  ~ProgressPrinter();
  ProgressPrinter(const ProgressPrinter&) = delete;
  ProgressPrinter& operator=(const ProgressPrinter&) = delete;

  void Show(const v1::RunStatus& status, absl::Time now);

  /// Prints a line that stays.
  void Note(std::string_view text);

  void ClearBar();

 private:
  void ShowEvaluations(const v1::RunStatus& status);
  void ShowPlain(const v1::RunStatus& status, absl::Time now);

  const bool is_json_;
  const bool is_terminal_;
  bool has_bar_ = false;
  v1::Phase phase_ = v1::PHASE_UNSPECIFIED;
  absl::Time last_line_ = absl::InfinitePast();
  uint64_t evaluation_shown_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_PROGRESS_PRINTER_H_

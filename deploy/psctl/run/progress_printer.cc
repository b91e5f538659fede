#include "deploy/psctl/run/progress_printer.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>

#include "common/base/printable.h"
#include "common/log/log.h"
#include "common/process/output_text.h"
#include "deploy/psctl/status/progress_view.h"

namespace slipstream {
namespace {

constexpr absl::Duration kPlainLineInterval = absl::Seconds(2);
constexpr size_t kColumnsIfUnknown = 80;

size_t TerminalColumns() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumnsIfUnknown;
  return size.ws_col;
}

}  // namespace

ProgressPrinter::ProgressPrinter(LogSpec::Format format)
    : is_json_(format == LogSpec::Format::kJson),
      is_terminal_(!is_json_ && isatty(STDERR_FILENO) == 1) {}

ProgressPrinter::~ProgressPrinter() { ClearBar(); }

void ProgressPrinter::Show(const v1::RunStatus& status, absl::Time now) {
  ShowEvaluations(status);
  if (!is_terminal_) return ShowPlain(status, now);
  // One column stays free, because a full line would wrap on some terminals.
  const std::string bar = FormatProgressBar(status, TerminalColumns() - 1);
  WriteToStderr("\r\x1b[K" + bar);
  has_bar_ = true;
}

void ProgressPrinter::Note(std::string_view text) {
  if (is_json_) return LogInfo(std::string(text));
  ClearBar();
  WriteToStderr(PrintableLines(text) + "\n");
}

void ProgressPrinter::ClearBar() {
  if (has_bar_) WriteToStderr("\r\x1b[K");
  has_bar_ = false;
}

void ProgressPrinter::ShowEvaluations(const v1::RunStatus& status) {
  for (const v1::EvaluationStatus& evaluation : status.evaluations()) {
    if (evaluation.number() <= evaluation_shown_) continue;
    evaluation_shown_ = evaluation.number();
    Note(FormatEvaluation(evaluation));
  }
}

void ProgressPrinter::ShowPlain(const v1::RunStatus& status, absl::Time now) {
  const bool is_due = status.phase() == v1::TRAINING && now - last_line_ >= kPlainLineInterval;
  if (status.phase() == phase_ && !is_due) return;
  phase_ = status.phase();
  last_line_ = now;
  Note(FormatProgress(status));
}

}  // namespace slipstream

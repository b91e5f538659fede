#include "deploy/psctl/complaint.h"

#include <fmt/format.h>

#include <string>

#include "common/base/printable.h"
#include "common/process/output_text.h"

namespace slipstream {

ExitCode Complain(ExitCode code, std::string_view message) {
  WriteToStderr(fmt::format("psctl: error: {}\n", PrintableLines(message)));
  return code;
}

ExitCode Complain(const absl::Status& failure) {
  return Complain(ExitCodeFor(failure), std::string(failure.message()));
}

int EndWith(const absl::Status& failure) { return static_cast<int>(Complain(failure)); }

int EndWithAdvice(const absl::Status& failure) {
  const bool is_away = absl::IsUnavailable(failure) || absl::IsDeadlineExceeded(failure);
  const std::string advice = is_away ? "; psctl doctor finds out why" : "";
  return static_cast<int>(Complain(ExitCodeFor(failure), std::string(failure.message()) + advice));
}

}  // namespace slipstream

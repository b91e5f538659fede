#ifndef SLIPSTREAM_COMMON_PROCESS_LOGGING_H_
#define SLIPSTREAM_COMMON_PROCESS_LOGGING_H_

#include <string_view>

#include "common/run/run_spec.h"

namespace slipstream {

/// Makes spdlog's default logger write lines like
///
///   2026-03-01T12:00:00.123Z server-0 info    worker registered worker=3 incarnation=1
///
/// to stderr, coloured on a terminal only; `role` names the process. Every line is flushed, so
/// nothing is lost however the process ends. Call it once, before other threads; calling it again
/// changes role and level.
void StartLogging(std::string_view role, LogSpec::Level level);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_LOGGING_H_

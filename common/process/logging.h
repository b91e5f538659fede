#ifndef SLIPSTREAM_COMMON_PROCESS_LOGGING_H_
#define SLIPSTREAM_COMMON_PROCESS_LOGGING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/run/run_spec.h"

namespace slipstream {

/// Which process a line comes from.
struct LogSource {
  /// "server", "worker", "psctl".
  std::string role;

  /// The shard of a server, the id of a worker once it has one.
  std::optional<uint32_t> number;
};

/// Makes spdlog's default logger write to stderr, one line per message. As text, coloured on a
/// terminal only:
///
///   2026-03-01T12:00:00.123456Z server-0 info    worker registered worker=3 incarnation=1
///
/// As JSON, one object per line; `shard` of servers, `worker` of workers that have an id:
///
///   {"time":"2026-03-01T12:00:00.123456Z","level":"info","role":"server","shard":0,
///    "message":"worker registered worker=3 incarnation=1"}
///
/// Bytes of a message that are no UTF-8 come out as U+FFFD, in text also other control characters
/// than white space, which is a blank there. Every line is flushed, so nothing
/// is lost however the process ends. Call it once, before other threads; calling it again changes
/// source, level and format.
void StartLogging(const LogSource& source, LogSpec::Level level, LogSpec::Format format);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROCESS_LOGGING_H_

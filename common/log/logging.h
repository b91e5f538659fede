#ifndef SLIPSTREAM_COMMON_LOG_LOGGING_H_
#define SLIPSTREAM_COMMON_LOG_LOGGING_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/settings/run_spec.h"

namespace slipstream {

/// The process that a line comes from.
struct LogSource {
  /// "server", "worker" or "psctl".
  std::string role;

  /// The shard of a server, the number of an aggregator among the servers, or the id of a worker
  /// once it has one.
  std::optional<uint32_t> number;
};

/// Makes spdlog's default logger write to stderr, one line per message. In text format, lines are
/// coloured on a terminal only:
///
///   2026-03-01T12:00:00.123456Z server-0 info    worker registered worker=3 incarnation=1
///
/// In JSON format, each line is one object, with `shard` for servers and `worker` for workers that
/// have an id, and with `fields` if the line has any (log.h):
///
///   {"time":"2026-03-01T12:00:00.123456Z","level":"info","role":"server","shard":0,
///    "message":"worker registered","fields":{"worker":3,"incarnation":1}}
///
/// Bytes of a message that are not UTF-8 are written as U+FFFD. In text format so are control
/// characters, except for white space, which is written as a blank. A line is written before this
/// thread goes on, so nothing is lost however the process ends, unless nobody takes the lines or
/// too many are alike (log_sink.h). Call it once, before other threads start; a further call
/// changes source, level and format.
void StartLogging(const LogSource& source, LogSpec::Level level, LogSpec::Format format);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOG_LOGGING_H_

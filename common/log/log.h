#ifndef SLIPSTREAM_COMMON_LOG_LOG_H_
#define SLIPSTREAM_COMMON_LOG_LOG_H_

#include <spdlog/common.h>

#include <string>
#include <vector>

#include "common/base/log_line.h"

namespace slipstream {

/// Writes a line to spdlog's default logger, for which its text is TextOf(line). All of the
/// project's lines go through here, so that in the JSON format each keeps its fields.
///
/// Thread-safe.
void Log(spdlog::level::level_enum level, const LogLine& line);

void LogDebug(std::string text, std::vector<LogField> fields = {});
void LogInfo(std::string text, std::vector<LogField> fields = {});
void LogWarning(std::string text, std::vector<LogField> fields = {});
void LogError(std::string text, std::vector<LogField> fields = {});

/// Returns the line that this thread is logging, for a formatter that is called meanwhile; nullptr
/// if what is logged did not come through Log.
const LogLine* LineBeingLogged();

/// Makes a line the one that this thread is logging, until it goes.
class BeingLogged {
 public:
  explicit BeingLogged(const LogLine& line);
  ~BeingLogged();
  BeingLogged(const BeingLogged&) = delete;
  BeingLogged& operator=(const BeingLogged&) = delete;

 private:
  const LogLine* const before_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_LOG_LOG_H_

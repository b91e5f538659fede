#ifndef SLIPSTREAM_WORKER_PYTHON_LOG_LINES_H_
#define SLIPSTREAM_WORKER_PYTHON_LOG_LINES_H_

#include <string>
#include <vector>

namespace slipstream {

/// A line that was logged.
struct LoggedLine {
  int level = 0;  // As in Python's module logging: 10 debug, 20 info, 30 warning, 40 error.
  std::string text;
};

/// From now on keeps the lines that are logged, in place of writing them. A thread that logs must
/// not call into an interpreter that may be about to end, so the interpreter fetches them.
void KeepLogLines();

/// Returns the lines that were logged since the last call, oldest first. Of more than 1,000 lines
/// the oldest are lost. Thread-safe.
std::vector<LoggedLine> TakeLogLines();

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_PYTHON_LOG_LINES_H_

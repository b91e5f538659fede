#ifndef SLIPSTREAM_COMMON_SECURITY_TOKEN_FILE_H_
#define SLIPSTREAM_COMMON_SECURITY_TOKEN_FILE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Reads a file of run tokens, one on a line: 16 to 256 visible ASCII characters each, at most 8.
/// Empty lines are ignored. A path env:NAME stands for the environment variable NAME. A client
/// shows the first token, and a server accepts any, so that a new token can be put in front
/// everywhere before the old one is removed. NOT_FOUND or INVALID_ARGUMENT, naming the file; no
/// message ever contains a token.
absl::StatusOr<std::vector<std::string>> ReadTokens(const std::string& path);

/// The tokens of a file that may change while they are used: every few seconds, the next caller
/// reads it again.
///
/// Thread-safe: guarded by its own mutex, under which no file is read.
class TokenFile {
 public:
  /// Reads the file; an empty path stands for no tokens.
  explicit TokenFile(std::string path);

  /// Returns the token that a client shows at `now`; empty as long as the file has never been
  /// readable.
  std::string First(absl::Time now);

  /// Returns whether `token` is one of the file's. It takes as long for a wrong token as for a
  /// right one of the same length.
  bool Holds(std::string_view token, absl::Time now);

 private:
  /// Reads the file again if that was not done lately. If it cannot be read, the tokens stay.
  void Refresh(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Read() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string path_;
  Mutex mutex_;
  std::vector<std::string> tokens_ ABSL_GUARDED_BY(mutex_);
  absl::Time read_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SECURITY_TOKEN_FILE_H_

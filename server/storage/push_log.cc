#include "server/storage/push_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/files/output_file.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

constexpr mode_t kMode = 0666;  // The process's umask clears some of these bits.

absl::Status CannotCreate(const std::string& path) {
  return absl::DataLossError(
      fmt::format("cannot create the push log {}: {}", path, WhyNoOutput(errno)));
}

/// Returns a text like "12" or "12-19;40-42".
std::string Text(const BatchRanges& ranges) {
  std::string text;
  for (const BatchRange& range : ranges) {
    if (!text.empty()) text += ';';
    text += std::to_string(range.first);
    if (range.count > 1) text += fmt::format("-{}", range.first + range.count - 1);
  }
  return text;
}

}  // namespace

absl::StatusOr<PushLog> PushLog::Create(const std::string& path) {
  FileDescriptor opened(OpenOutput(path, 0, kMode));
  if (!opened.is_open()) return CannotCreate(path);
  // The file is emptied only once it is locked: a server that is started twice must not cost the
  // first one its log. On a file system without locks, the file is taken to be free.
  if (flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::ResourceExhaustedError(
        fmt::format("the push log {} is written by another process: end that, or choose another "
                    "log.push_log",
                    path));
  }
  // A pipe cannot be truncated, and need not be.
  if (ftruncate(opened.get(), 0) != 0 && errno != EINVAL) return CannotCreate(path);
  PushLog log(path, std::move(opened));
  log.appended_ =
      "time,worker,incarnation,sequence,batch,examples,base,version,staleness,outcome,loss,stage\n";
  if (absl::Status flushed = log.Flush(); !flushed.ok()) return flushed;
  return log;
}

void PushLog::Append(absl::Time decided, const PushHeader& header, const PushReply& reply,
                     uint32_t stage) {
  const std::string loss = header.trailer.loss ? fmt::format("{:.6g}", *header.trailer.loss) : "";
  appended_ +=
      fmt::format("{:.6f},{},{},{},{},{},{},{},{},{},{},{}\n",
                  absl::ToDoubleSeconds(decided - absl::UnixEpoch()), Value(header.identity.worker),
                  Value(header.identity.incarnation), Value(header.sequence), Text(header.batches),
                  header.examples, Value(header.base), Value(reply.version), reply.staleness,
                  Name(reply.outcome), loss, stage);
}

absl::Status PushLog::Flush() {
  size_t written = 0;
  while (failure_.ok() && written < appended_.size()) {
    const ssize_t count =
        write(file_.get(), appended_.data() + written, appended_.size() - written);
    if (count > 0) {
      written += static_cast<size_t>(count);
    } else if (errno != EINTR) {
      const std::string reason = std::strerror(errno);
      KeepWholeLines(written);
      failure_ = absl::DataLossError(PushLogEnd(path_, pushes_, reason));
    }
  }
  if (failure_.ok()) CountLines(written);
  appended_.clear();
  return failure_;
}

void PushLog::CountLines(size_t written) {
  bytes_ += written;
  const auto end = appended_.begin() + static_cast<std::ptrdiff_t>(written);
  auto lines = static_cast<uint64_t>(std::count(appended_.begin(), end, '\n'));
  if (!has_heading_ && lines > 0) {
    has_heading_ = true;
    --lines;
  }
  pushes_ += lines;
}

void PushLog::KeepWholeLines(size_t written) {
  const size_t end = std::string_view(appended_).substr(0, written).rfind('\n');
  CountLines(end == std::string_view::npos ? 0 : end + 1);
  if (ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) {
    LogWarning("the last line of the push log may be cut",
               {{"path", path_}, {"reason", std::strerror(errno)}});
  }
}

std::string PushLogEnd(const std::string& path, uint64_t pushes, std::string_view reason) {
  return fmt::format("the push log {} ends after {} push{}: {}", path, pushes,
                     pushes == 1 ? "" : "es", reason);
}

}  // namespace slipstream

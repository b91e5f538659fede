#include "server/storage/push_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "common/files/file_descriptor.h"

namespace slipstream {
namespace {

constexpr mode_t kMode = 0666;  // The process's umask takes away from it.

absl::Status CannotCreate(const std::string& path) {
  return absl::DataLossError(
      fmt::format("cannot create the push log {}: {}", path, std::strerror(errno)));
}

/// "12" or "12-19;40-42".
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
  FileDescriptor opened(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, kMode));
  if (!opened.is_open()) return CannotCreate(path);
  // Only then is it emptied: a server that is started twice must not cost the first one its log.
  // A file system without locks cannot tell; what is in the file is then nobody's.
  if (flock(opened.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::ResourceExhaustedError(
        fmt::format("the push log {} is written by another process", path));
  }
  if (ftruncate(opened.get(), 0) != 0) return CannotCreate(path);
  std::FILE* file = fdopen(opened.get(), "w");
  if (file == nullptr) return CannotCreate(path);
  opened.Release();
  PushLog log(path, file);
  std::fputs("worker,incarnation,sequence,batch,examples,base,version,staleness,outcome\n", file);
  if (absl::Status flushed = log.Flush(); !flushed.ok()) return flushed;
  return log;
}

absl::Status PushLog::Append(const PushHeader& header, const PushReply& reply) {
  const std::string line =
      fmt::format("{},{},{},{},{},{},{},{},{}\n", Value(header.identity.worker),
                  Value(header.identity.incarnation), Value(header.sequence), Text(header.batches),
                  header.examples, Value(header.base), Value(reply.version), reply.staleness,
                  Name(reply.outcome));
  if (std::fputs(line.c_str(), file_.get()) < 0) return Failure("write");
  return absl::OkStatus();
}

absl::Status PushLog::Flush() {
  return std::fflush(file_.get()) == 0 ? absl::OkStatus() : Failure("write");
}

absl::Status PushLog::Failure(const char* verb) const {
  return absl::DataLossError(
      fmt::format("cannot {} the push log {}: {}", verb, path_, std::strerror(errno)));
}

}  // namespace slipstream

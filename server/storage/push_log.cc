#include "server/storage/push_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace slipstream {

absl::StatusOr<PushLog> PushLog::Create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) {
    return absl::DataLossError(
        fmt::format("cannot create the push log {}: {}", path, std::strerror(errno)));
  }
  PushLog log(path, file);
  std::fputs("worker,incarnation,sequence,batch,examples,base,version,staleness,outcome\n", file);
  if (absl::Status flushed = log.Flush(); !flushed.ok()) return flushed;
  return log;
}

absl::Status PushLog::Append(const PushRecord& record) {
  const PushHeader& header = record.header;
  const std::string line =
      fmt::format("{},{},{},{},{},{},{},{},{}\n", Value(header.identity.worker),
                  Value(header.identity.incarnation), Value(header.sequence), header.batch,
                  header.examples, Value(header.base), Value(record.reply.version),
                  record.reply.staleness, Name(record.reply.outcome));
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

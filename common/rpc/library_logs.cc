#include "common/rpc/library_logs.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <string>

#include "absl/strings/match.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

void LogOfGrpc(gpr_log_func_args* entry) {
  // Only this message of gRPC's means that something has ended for good: CVE-2023-4785, before gRPC
  // 1.57.
  if (absl::StrContains(entry->message, "Failed accept4")) {
    LogError(
        "no further connection is accepted until this server is started again; those that are "
        "there go on",
        {{"reason", entry->message}});
    return;
  }
  LogDebug("grpc", {{"file", entry->file}, {"line", entry->line}, {"message", entry->message}});
}

void LogOfProtobuf(google::protobuf::LogLevel, const char* file, int line,
                   const std::string& message) {
  LogDebug("protobuf", {{"file", file}, {"line", line}, {"message", message}});
}

}  // namespace

void TakeLibraryLogs() {
  gpr_set_log_function(LogOfGrpc);
  google::protobuf::SetLogHandler(LogOfProtobuf);
}

}  // namespace slipstream

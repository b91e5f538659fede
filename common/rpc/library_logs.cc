#include "common/rpc/library_logs.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include <string>

#include "absl/strings/match.h"

namespace slipstream {
namespace {

void LogOfGrpc(gpr_log_func_args* entry) {
  // Only this message of gRPC's means that something has ended for good: CVE-2023-4785, before gRPC
  // 1.57.
  if (absl::StrContains(entry->message, "Failed accept4")) {
    spdlog::error(
        "no further connection is accepted until this server is started again; those that are "
        "there go on: {}",
        entry->message);
    return;
  }
  spdlog::debug("grpc {}:{}: {}", entry->file, entry->line, entry->message);
}

void LogOfProtobuf(google::protobuf::LogLevel, const char* file, int line,
                   const std::string& message) {
  spdlog::debug("protobuf {}:{}: {}", file, line, message);
}

}  // namespace

void TakeLibraryLogs() {
  gpr_set_log_function(LogOfGrpc);
  google::protobuf::SetLogHandler(LogOfProtobuf);
}

}  // namespace slipstream

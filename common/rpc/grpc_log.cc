#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include "absl/strings/match.h"

namespace slipstream {
namespace {

void Log(gpr_log_func_args* entry) {
  // Of its own words this alone ends something for good: CVE-2023-4785, of gRPC before 1.57.
  if (absl::StrContains(entry->message, "Failed accept4")) {
    spdlog::error(
        "no further connection is accepted until this server is started again; those that are "
        "there go on: {}",
        entry->message);
    return;
  }
  spdlog::debug("grpc {}:{}: {}", entry->file, entry->line, entry->message);
}

}  // namespace

void TakeLogOfGrpc() { gpr_set_log_function(Log); }

}  // namespace slipstream

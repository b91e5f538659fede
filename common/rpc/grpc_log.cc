#include "common/rpc/grpc_log.h"

#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

namespace slipstream {
namespace {

void Log(gpr_log_func_args* entry) {
  spdlog::debug("grpc {}:{}: {}", entry->file, entry->line, entry->message);
}

}  // namespace

void TakeLogOfGrpc() { gpr_set_log_function(Log); }

}  // namespace slipstream

#include "common/rpc/library_settings.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <malloc.h>

#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "common/log/log.h"
#include "common/memory/heap_trim.h"

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

void UseSystemResolver() { setenv("GRPC_DNS_RESOLVER", "native", 0); }

void TuneLocks() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

void KeepFreedMemory() {
#ifdef __GLIBC__
  // malloc raises its thresholds to the largest block of its own mapping that was freed, up to this
  // size, header included (mallopt(3), "dynamic mmap threshold"). Nothing writes to the block, so
  // it takes no memory.
  constexpr size_t kThresholdMax = 4 * sizeof(long) << 20;
  constexpr size_t kHeader = 8192;
  void* volatile block = malloc(kThresholdMax - kHeader);
  free(block);
#endif
}

void TuneForTransfers() {
#ifdef __GLIBC__
  // A refused setting only costs speed, so results are ignored.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, static_cast<int>(HeapTrim::kTopPad));
  // Memory that one thread frees is then reused by all others. A payload is read, folded and freed
  // by different threads: with an arena for each, the process would keep every arena's peak.
  mallopt(M_ARENA_MAX, 1);
#endif
  TuneLocks();
}

}  // namespace slipstream

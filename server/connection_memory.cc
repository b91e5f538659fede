#include "server/connection_memory.h"

#include <algorithm>

#include "common/settings/shards.h"

namespace slipstream {
namespace {

// The room for messages other than pushes.
constexpr uint64_t kBytesMin = uint64_t{64} << 20;

// gRPC's own reflection service has a thread for each of its calls; no other service has any.
constexpr int kThreadsMax = 32;

uint64_t ShareOf(uint64_t limit) { return limit / 10 * 9; }

}  // namespace

ConnectionMemory::ConnectionMemory(uint64_t limit) : limit_(limit), quota_("server") {
  quota_.Resize(ShareOf(limit));
  quota_.SetMaxThreads(kThreadsMax);
}

void ConnectionMemory::ReserveFor(uint64_t values, const RunSpec& run) {
  quota_.Resize(BytesBeside(values, run, limit_));
}

uint64_t ConnectionMemory::BytesBeside(uint64_t values, const RunSpec& run, uint64_t limit) {
  const uint64_t pushes = ShardPushBytes(values, run);
  const uint64_t beside = ShardBytesNeeded(values, run) - pushes;
  const uint64_t share = ShareOf(limit);
  const uint64_t left = share > beside ? share - beside : 0;
  return std::max(left, pushes + kBytesMin);
}

}  // namespace slipstream

#include "worker/client/server_addresses.h"

#include <cstdint>
#include <utility>

#include "common/base/limits.h"
#include "common/log/log.h"

namespace slipstream {

void ServerAddresses::Note(ShardId shard, const std::string& address) {
  if (Value(shard) >= kServersMax || address.empty()) return;
  std::string before;
  {
    MutexLock lock(mutex_);
    before = std::exchange(addresses_[shard], address);
  }
  if (before.empty() || before == address) return;
  LogInfo("server moved", {{"shard", Value(shard)}, {"from", before}, {"to", address}});
}

void ServerAddresses::Note(const std::vector<std::string>& addresses) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    Note(ShardId{static_cast<uint32_t>(i)}, addresses[i]);
  }
}

std::string ServerAddresses::Of(ShardId shard) const {
  MutexLock lock(mutex_);
  const auto found = addresses_.find(shard);
  return found == addresses_.end() ? std::string() : found->second;
}

bool ServerAddresses::IsAt(ShardId shard, const std::string& address) const {
  MutexLock lock(mutex_);
  const auto found = addresses_.find(shard);
  return found == addresses_.end() || found->second == address;
}

}  // namespace slipstream

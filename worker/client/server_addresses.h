#ifndef SLIPSTREAM_WORKER_CLIENT_SERVER_ADDRESSES_H_
#define SLIPSTREAM_WORKER_CLIENT_SERVER_ADDRESSES_H_

#include <map>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace slipstream {

/// Where the servers of a run are now, by the coordinator's newest word. A server may come back at
/// another address than it had when this process joined.
///
/// The thread that talks to the coordinator notes the addresses; the channels to the shards look
/// theirs up before each call (ShardChannel).
///
/// Thread-safe: guarded by its own mutex; never blocks on I/O.
class ServerAddresses {
 public:
  /// Notes the address, host:port, of the shard's server, and logs if it was another one before.
  void Note(ShardId shard, const std::string& address);

  /// Notes the addresses of the servers of the first shards, in their order. None are no news.
  void Note(const std::vector<std::string>& addresses);

  /// Returns the address of the shard's server; empty if none was noted.
  std::string Of(ShardId shard) const;

  /// Returns whether the shard's server is at this address, as far as is known.
  bool IsAt(ShardId shard, const std::string& address) const;

 private:
  mutable Mutex mutex_;
  std::map<ShardId, std::string> addresses_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_SERVER_ADDRESSES_H_

#ifndef SLIPSTREAM_SERVER_CONNECTION_MEMORY_H_
#define SLIPSTREAM_SERVER_CONNECTION_MEMORY_H_

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <cstdint>

#include "common/run/run_spec.h"

namespace slipstream {

/// The bytes that a server's connections may hold, all together: what is read, kept until it is
/// used, or to be written. Near that gRPC reads less, and then ends calls; a shard itself refuses
/// pushes before, by RETRY_LATER.
///
/// It is nine tenths of what this process may have (the memory of the machine, or the limit of a
/// control group), without what the shard takes once its model is known. Pushes count here, as that
/// is where they are kept; there is always room for those of all gradients under way.
///
/// Thread-safe.
class ConnectionMemory {
 public:
  /// `limit`: what this process may have.
  explicit ConnectionMemory(uint64_t limit);

  void GiveTo(grpc::ServerBuilder& builder) const { builder.SetResourceQuota(quota_); }

  /// The shard has so many values.
  void MakeRoomFor(uint64_t values, const RunSpec& run);

  /// Returns how many bytes connections may hold beside such a shard.
  static uint64_t BytesBeside(uint64_t values, const RunSpec& run, uint64_t limit);

 private:
  const uint64_t limit_;
  grpc::ResourceQuota quota_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONNECTION_MEMORY_H_

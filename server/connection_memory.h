#ifndef SLIPSTREAM_SERVER_CONNECTION_MEMORY_H_
#define SLIPSTREAM_SERVER_CONNECTION_MEMORY_H_

#include <grpcpp/resource_quota.h>
#include <grpcpp/server_builder.h>

#include <cstdint>

#include "common/settings/run_spec.h"

namespace slipstream {

/// Bounds the bytes that a server's connections may hold, all together: bytes that are read, kept
/// until they are used, or to be written. Near the bound gRPC reads less, and then ends calls.
/// Before that, a shard itself refuses pushes with RETRY_LATER.
///
/// The bound is nine tenths of the memory that this process may have (that of the machine, or the
/// limit of a control group), less what the shard takes once its model is known. Pushes count here,
/// as they are kept in these buffers; there is always room for the pushes of all gradients in
/// flight.
///
/// Thread-safe.
class ConnectionMemory {
 public:
  /// `limit`: the bytes of memory that this process may have.
  explicit ConnectionMemory(uint64_t limit);

  void GiveTo(grpc::ServerBuilder& builder) const { builder.SetResourceQuota(quota_); }

  /// Lowers the bound by what a shard of so many values takes.
  void ReserveFor(uint64_t values, const RunSpec& run);

  /// Returns how many bytes connections may hold beside a shard of so many values.
  static uint64_t BytesBeside(uint64_t values, const RunSpec& run, uint64_t limit);

 private:
  const uint64_t limit_;
  grpc::ResourceQuota quota_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONNECTION_MEMORY_H_

#ifndef SLIPSTREAM_SERVER_DATA_PLANE_VALUE_COUNTS_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_VALUE_COUNTS_H_

#include <atomic>
#include <cstdint>

#include "proto/status.pb.h"

namespace slipstream {

/// Counts the values of pushes that came to a shard, whether they counted or not, and of weights
/// that it began to give out, and the bytes that they take on the way, encoded or in shared memory.
///
/// Thread-safe.
class ValueCounts {
 public:
  void OnPushed(uint64_t values, uint64_t bytes) { pushed_.Add(values, bytes); }
  void OnPulled(uint64_t values, uint64_t bytes) { pulled_.Add(values, bytes); }

  void Describe(v1::ShardStatus& status) const {
    status.set_pushed_bytes(pushed_.bytes);
    status.set_pushed_fp32_bytes(pushed_.values * sizeof(float));
    status.set_pulled_bytes(pulled_.bytes);
    status.set_pulled_fp32_bytes(pulled_.values * sizeof(float));
  }

 private:
  struct Direction {
    void Add(uint64_t more_values, uint64_t more_bytes) {
      values.fetch_add(more_values, std::memory_order_relaxed);
      bytes.fetch_add(more_bytes, std::memory_order_relaxed);
    }

    std::atomic<uint64_t> values = 0;
    std::atomic<uint64_t> bytes = 0;
  };

  Direction pushed_;
  Direction pulled_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_VALUE_COUNTS_H_

#ifndef SLIPSTREAM_WORKER_CLIENT_WEIGHTS_ARRIVAL_H_
#define SLIPSTREAM_WORKER_CLIENT_WEIGHTS_ARRIVAL_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "common/protocol/shard_messages.h"
#include "common/wire/values_codec.h"

namespace slipstream {

/// Puts the chunks of one shard's weights, as they arrive, where the caller wants them.
///
/// Not thread-safe: one owner. `target` must outlive it.
class WeightsArrival {
 public:
  explicit WeightsArrival(std::span<float> target) : target_(target) {}

  /// Fails with INTERNAL, as a peer's fault, if the chunk does not continue the ones before it or
  /// is of weights of another size.
  absl::Status Take(const std::optional<WeightsHeader>& header, uint64_t offset,
                    const ReceivedValues& values);

  bool is_complete() const { return header_ && arrived_ == target_.size(); }

  /// Absent before the first chunk.
  const std::optional<WeightsHeader>& header() const { return header_; }

 private:
  const std::span<float> target_;
  std::optional<WeightsHeader> header_;
  size_t arrived_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_WEIGHTS_ARRIVAL_H_

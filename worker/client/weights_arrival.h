#ifndef SLIPSTREAM_WORKER_CLIENT_WEIGHTS_ARRIVAL_H_
#define SLIPSTREAM_WORKER_CLIENT_WEIGHTS_ARRIVAL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "common/kernels/segments.h"
#include "common/protocol/shard_messages.h"
#include "worker/client/weights_listener.h"

namespace slipstream {

/// Puts the chunks of one shard's weights, as they arrive, where the caller wants them, over as
/// many tries as it takes.
///
/// A version is immutable: a further try that brings the same one writes only what had not come.
/// If it brings another one, the listener revokes what had come before a value is written, so that
/// nobody computes from a mixture.
///
/// A version that the target holds from before need not be sent at all.
///
/// Not thread-safe: one owner. `target` and `listener` must outlive it.
class WeightsArrival {
 public:
  /// `listener` may be null; it knows `target` as the positions from `begin` on.
  explicit WeightsArrival(std::span<float> target, size_t begin = 0,
                          WeightsListener* listener = nullptr)
      : target_(target), begin_(begin), listener_(listener) {}

  /// The target holds all values of this version.
  void StartFrom(Life life, Version version) { held_ = {life, version}; }

  /// Whether it still does: nothing of another version has been announced.
  bool Holds(Life life, Version version) const { return held_ == std::pair(life, version); }

  /// A new try begins: its first chunk carries a header again.
  void StartTry();

  /// Fails with INTERNAL, as a peer's fault, if the chunk does not continue the ones before it or
  /// is of weights of another size.
  absl::Status Take(const std::optional<WeightsHeader>& header, uint64_t offset,
                    const Segments& values);

  /// The same for values that somebody else may overwrite meanwhile: once they are copied,
  /// `is_intact` tells whether that happened. UNAVAILABLE then, and they have not come.
  absl::Status Take(const std::optional<WeightsHeader>& header, uint64_t offset,
                    const Segments& values, const std::function<bool()>& is_intact);

  /// Tells the listener of the last chunk, which is held back until here: the caller may have
  /// something to finish before the weights count as complete. REQUIRES: is_complete().
  void Finish();

  /// Every value came in this try or was there before it.
  bool is_complete() const { return has_begun_ && position_ == target_.size(); }

  /// Number of values.
  size_t size() const { return target_.size(); }

  /// Absent before the first chunk.
  const std::optional<WeightsHeader>& header() const { return header_; }

 private:
  void Begin(const WeightsHeader& header);
  absl::Status TakeHeld(const WeightsHeader& header, size_t count);
  void Tell(size_t end);

  // Constant after construction.
  const std::span<float> target_;
  const size_t begin_;
  WeightsListener* const listener_;

  // All of it is in place, though this brought none of it.
  std::optional<std::pair<Life, Version>> held_;
  std::optional<WeightsHeader> header_;  // Of what is in place.
  size_t arrived_ = 0;                   // Values of that, from the first on.
  size_t told_ = 0;                      // Of these, to the listener.

  // Of this try.
  bool has_begun_ = false;
  size_t position_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_WEIGHTS_ARRIVAL_H_

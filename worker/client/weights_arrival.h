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
#include "worker/model/model_listeners.h"

namespace slipstream {

/// Writes the chunks of one shard's weights, as they arrive, into the caller's array, over as many
/// tries as are needed.
///
/// A version is immutable: a further try that brings the same version writes only the values that
/// are missing. If it brings another version, all are written again. Whoever computes from them has
/// to be stopped first (WorkerSession::OnAnswer says when), so that nobody computes from a mixture
/// of versions.
///
/// The shard does not need to send a version that the target already holds.
///
/// Not thread-safe: one owner. `target` and `listener` must outlive it.
class WeightsArrival {
 public:
  /// `listener` may be null; it is told positions in the whole model, of which `target` begins at
  /// `begin`.
  explicit WeightsArrival(std::span<float> target, size_t begin = 0,
                          WeightsListener* listener = nullptr)
      : target_(target), begin_(begin), listener_(listener) {}

  /// Declares that the target holds all values of this version.
  void StartFrom(Generation generation, Version version) { held_ = {generation, version}; }

  /// True if the target still holds it: no other version has been announced.
  bool Holds(Generation generation, Version version) const {
    return held_ == std::pair(generation, version);
  }

  /// Begins a new try, whose first chunk carries a header again.
  void StartTry();

  /// Writes the values of a chunk. Fails with INTERNAL (the peer's fault) if the chunk does not
  /// continue the ones before it or belongs to weights of another size. `is_intact` is for values
  /// that somebody else may overwrite during the copy, and is asked after it: if they were not
  /// intact, Take fails with UNAVAILABLE and they do not count as arrived.
  absl::Status Take(const std::optional<WeightsHeader>& header, uint64_t offset,
                    const Segments& values, const std::function<bool()>& is_intact = {});

  /// Lets changes be applied to these values, those of the whole target in the version that the
  /// request named as held. They must outlive the arrival.
  void ApplyChangesTo(std::span<const float> held) { changed_from_ = held; }

  /// Writes the values that the held ones have become by a chunk's changes. Fails as Take does.
  absl::Status TakeChanges(const std::optional<WeightsHeader>& header, const ValueChanges& changes);

  /// Reports the last chunk to the listener. It is held back until here, because the caller may
  /// have something to finish before the weights count as complete. REQUIRES: is_complete().
  void Finish();

  /// True if every value came in this try or was there before it.
  bool is_complete() const { return has_begun_ && position_ == target_.size(); }

  /// The number of values.
  size_t size() const { return target_.size(); }

  /// The header of the latest weights; absent before the first chunk.
  const std::optional<WeightsHeader>& header() const { return header_; }

 private:
  absl::Status BeginIfHeader(const std::optional<WeightsHeader>& header);
  void Begin(const WeightsHeader& header);
  absl::Status TakeHeld(const WeightsHeader& header, size_t count);
  void Tell(size_t end);

  // Constant after construction.
  const std::span<float> target_;
  const size_t begin_;
  WeightsListener* const listener_;

  std::span<const float> changed_from_;

  // The version that the target held in full beforehand, if it still does.
  std::optional<std::pair<Generation, Version>> held_;
  std::optional<WeightsHeader> header_;  // The header of the values in place.
  size_t arrived_ = 0;                   // The number of leading values that have arrived.
  size_t told_ = 0;                      // How many of them were reported to the listener.

  // The state of the current try.
  bool has_begun_ = false;
  bool comes_as_changes_ = false;
  size_t position_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_WEIGHTS_ARRIVAL_H_

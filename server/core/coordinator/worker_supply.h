#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_WORKER_SUPPLY_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_WORKER_SUPPLY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/settings/consistency_spec.h"
#include "common/settings/run_spec.h"
#include "server/core/coordinator/membership.h"
#include "server/core/coordinator/notes.h"

namespace slipstream {

/// The workers of a run: which it takes, how many it needs, and for how long it goes on without
/// them. Where
/// workers make the weights themselves, it also keeps how they reach each other.
///
/// Not thread-safe: one owner, which serialises calls.
class WorkerSupply {
 public:
  /// The most bytes by which a worker can be reached.
  static constexpr size_t kContactBytesMax = size_t{64} << 10;

  /// Both must outlive the object.
  WorkerSupply(const RunSpec& spec, Membership& members, CoordinatorNotes& notes);

  /// Takes a worker, as Membership::Register does. `places`: those for which the servers have
  /// memory; `has_begun`: whether the run has the workers with which it begins.
  absl::StatusOr<Membership::Registration> Register(const Applicant& applicant, absl::Time now,
                                                    uint32_t places, bool has_begun);

  /// Returns whether the run can begin.
  bool AreThere() const { return members_.live() >= to_start_; }
  uint32_t to_start() const { return to_start_; }

  /// How long the run waits for workers, and for whatever else it needs, before it fails.
  absl::Duration timeout() const { return timeout_; }

  /// Returns whether, under this policy, the places of workers that go are kept for others.
  bool KeepsPlaces(const ConsistencySpec& policy) const {
    return waits_for_lost_ && policy.traits().waits_for_members;
  }

  /// Returns since when a round has had to wait in an empty place; nothing if none does.
  std::optional<absl::Time> PlacesAwaitedSince(const ConsistencySpec& policy) const;

  /// Return why training, or the measuring of final weights, cannot go on, once the run has waited
  /// long enough for workers.
  std::optional<std::string> WhyNoTraining(const ConsistencySpec& policy, absl::Time now);
  std::optional<std::string> WhyNoMeasuring(absl::Time now);

  /// Notes that nobody waits for workers any more.
  void AwaitNobody() { lacks_since_.reset(); }

  /// Since when workers have been lacking, and how many are. Nothing if none are, or if others are
  /// awaited in places of their own. `trains`: else the run measures its final weights.
  struct Lack {
    uint32_t workers = 0;
    absl::Time since;
  };
  std::optional<Lack> Lacking(bool trains) const;

  /// Notes that a worker is gone. `is_needed`: where all make the weights, the run cannot go on
  /// without it.
  void OnGone(WorkerId worker, bool is_needed);

  /// Returns why the run cannot go on without a worker that is gone; nothing if none was needed.
  std::optional<std::string> WhyLost() const;

  /// Notes how other workers reach this one. FAILED_PRECONDITION in runs whose workers do not make
  /// the weights.
  absl::Status Meet(WorkerId worker, const std::string& contact);

  /// Returns what the worker has told Meet; empty if it has not yet.
  absl::StatusOr<std::string> ContactOf(WorkerId worker) const;

  /// Returns which of the workers with which the run begins are not there.
  std::vector<WorkerId> Missing() const;
  std::string MissingText() const;

  /// Returns what a worker that left had to say, for the text of a failure; empty if none had.
  std::string LastWords() const;

  /// Does not count `gap`.
  void Forgive(absl::Duration gap) {
    if (lacks_since_.has_value()) *lacks_since_ += gap;
  }

 private:
  std::optional<std::string> Await(uint32_t least, const char* purpose, absl::Time now);

  // Constant after construction.
  const uint32_t to_start_;
  const uint32_t least_;
  const absl::Duration timeout_;
  const bool waits_for_lost_;     // Other workers take the places of lost ones.
  const bool has_one_publisher_;  // The weights of several would take turns.
  const bool all_reduces_;        // PolicyTraits::workers_make_weights.
  Membership& members_;
  CoordinatorNotes& notes_;

  // Since when the run has had fewer workers than it needs. Empty while it has enough.
  std::optional<absl::Time> lacks_since_;

  // With all_reduces_: the first worker that was gone while all were needed, and by which bytes the
  // others are reached.
  std::optional<WorkerId> lost_;
  std::map<WorkerId, std::string> contacts_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_WORKER_SUPPLY_H_

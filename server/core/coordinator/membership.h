#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_MEMBERSHIP_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_MEMBERSHIP_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/allowance.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"

namespace slipstream {

/// A worker that asks to take part in a run.
struct Applicant {
  /// The id that it asks for. Absent for the lowest free id.
  std::optional<WorkerId> worker;
  std::string host;
  uint32_t process = 0;  // The process id on `host`; for people.

  /// A random number, one per process, that tells a repeated call from the call of another process.
  /// 0 if it is unknown.
  uint64_t instance = 0;
};

/// Keeps which workers take part in a run: their ids, incarnations and leases, and the numbered
/// views made of them.
///
/// A worker is live from its registration until it leaves, its lease ends, or its id is registered
/// again. Records of workers that are gone stay, for status and so that an id can be used again.
///
/// While places are kept (KeepPlaces), a member that goes stays in the view, so that the shards go
/// on waiting for its gradients, until a worker registers under its id: that one takes its place.
///
/// Invariants:
///  - an incarnation is given out once, and a later one is higher;
///  - an id has at most one live incarnation;
///  - the view holds exactly the live workers and the empty places once the first view is made, and
///    its number rises with every change of them.
///
/// Not thread-safe: one owner, which serialises calls.
class Membership {
 public:
  static constexpr size_t kHostBytesMax = 256;
  static constexpr size_t kFailureBytesMax = 256;

  /// How many times ids may be registered that were before, at once and in each second.
  static constexpr double kAgainAtOnce = kWorkersMax;
  static constexpr double kAgainPerSecond = 8;

  enum class State : uint8_t { kLive, kLeft, kDead };

  struct Worker {
    Incarnation incarnation{};
    State state = State::kLive;
    bool founding = false;
    std::string host;
    uint64_t instance = 0;
    absl::Time last_heard;

    /// Set if it is gone and its place in the view is kept, and since when.
    bool leaves_place = false;
    absl::Time place_empty_since;

    /// Its clock with the newest push that a shard has reported.
    WorkerClock pushed{};

    /// The failure that it named when it left, or why it was declared dead. Empty after a clean
    /// end.
    std::string failure;

    /// How often the id was registered, and lost, as this process knows.
    uint64_t registrations = 0;
    uint64_t losses = 0;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.incarnation, self.state, self.founding, self.host, self.instance,
              self.leaves_place, self.pushed, self.failure);
    }
  };

  struct Registration {
    WorkerId worker{};
    Incarnation incarnation{};

    /// Set if the id was live: its older incarnation, `older`, is fenced from now on.
    bool fenced_older = false;
    Incarnation older{};

    /// Set if it has the place of a member before it, and so owes the open rounds what that one
    /// owed.
    bool takes_place = false;

    /// Set if the same process has this registration already: the first answer was lost on its way.
    bool is_repeated = false;
  };

  /// `lease`: how long a worker may be silent before it counts as dead.
  Membership(uint64_t run, absl::Duration lease) : run_(run), lease_(lease) {}

  /// Makes a worker live under the id that it asks for, or else under that of the first empty
  /// place, or else under the lowest id that no live worker has. A live worker of the same instance
  /// keeps its registration, so that a lost answer leaves no second one behind. Fails if the id or
  /// the name of the host is out of bounds, if all ids are taken, if `live_max` workers are live,
  /// or have places that are empty, without this one, or if ids are registered again too often.
  absl::StatusOr<Registration> Register(const Applicant& applicant, absl::Time now,
                                        uint32_t live_max = kWorkersMax);

  /// Renews the lease of a live incarnation. Fails, naming why, for another run, an older
  /// incarnation, or a worker that is gone.
  absl::Status Renew(const Identity& identity, absl::Time now);

  /// Renews the lease of a live incarnation that has pushed since, by its clock: a shard has told
  /// the coordinator of the push. Has no effect for others.
  void RenewByPush(WorkerId worker, Incarnation incarnation, WorkerClock clock, absl::Time now);

  /// Does the checks of Renew, but changes nothing.
  absl::Status Check(const Identity& identity) const;

  /// Ends a membership. With a failure it counts as a death.
  /// REQUIRES: Check(identity) is OK.
  void Leave(const Identity& identity, const std::string& failure, absl::Time now);

  /// Sets whether the places of members that go from now on are kept. If not, those that are empty
  /// are given up.
  void KeepPlaces(bool keeps);

  /// Extends the leases by `gap`, once: for so long, until `now`, this process could hear nobody.
  void Forgive(absl::Duration gap, absl::Time now);

  /// Begins the leases of all live workers anew, and the time for which places have been empty.
  void BeginLeases(absl::Time now);

  /// Ends the leases that have run out. Returns the workers that died, in order of ids.
  std::vector<WorkerId> Expire(absl::Time now);

  /// Makes view 1 out of the live workers, all of which are founding members. Later changes make
  /// further views.
  /// REQUIRES: not called before.
  void FoundView();

  /// Leaves out so many numbers of views and incarnations, which an older state does not know of.
  void SkipNumbers(uint64_t count);

  const View& view() const { return view_; }
  const std::map<WorkerId, Worker>& workers() const { return workers_; }
  uint32_t live() const { return live_; }
  bool IsLive(WorkerId worker) const;

  /// Returns the ids of the empty places, ascending.
  std::vector<WorkerId> EmptyPlaces() const;

  /// Returns the ids of the live workers, ascending.
  std::vector<WorkerId> LiveWorkers() const;

  /// REQUIRES: live() > 0.
  WorkerId LowestLive() const;

  /// Returns how much of the worker's lease is left; zero if the worker is gone.
  absl::Duration LeaseLeft(const Worker& worker, absl::Time now) const;

  /// The parts have no times: BeginLeases follows when they were read.
  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.workers_, self.live_, self.keeps_places_, self.empty_places_,
            self.last_incarnation_, self.view_);
  }

 private:
  std::optional<WorkerId> LowestFree() const;
  std::optional<WorkerId> FindInstance(const Applicant& applicant) const;
  void End(Worker& worker, State state, const std::string& failure, absl::Time now);
  void RemakeView();
  void FillView();

  // Constant after construction.
  const uint64_t run_;
  const absl::Duration lease_;

  // All workers ever seen, at most kWorkersMax.
  std::map<WorkerId, Worker> workers_;
  uint32_t live_ = 0;
  bool keeps_places_ = false;
  uint32_t empty_places_ = 0;
  // No lease ends before this time, so until then Expire need not look at each worker.
  absl::Time none_ends_before_ = absl::InfiniteFuture();
  uint64_t last_incarnation_ = 0;
  Allowance again_{kAgainAtOnce, kAgainPerSecond};
  View view_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_MEMBERSHIP_H_

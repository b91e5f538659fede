#ifndef SLIPSTREAM_SERVER_CORE_OUTSTANDING_PULLS_H_
#define SLIPSTREAM_SERVER_CORE_OUTSTANDING_PULLS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/view.h"

namespace slipstream {

/// The versions that members have been given to train on and not pushed a gradient of yet: the
/// bases of the gradients that are on their way.
///
/// A worker pushes in the order of its pulls, so a push also settles what was pulled before: an
/// answer that was lost, or weights that were thrown away.
///
/// Not thread-safe: one owner, which serialises calls.
class OutstandingPulls {
 public:
  /// `per_member_max`: gradients that a worker has on their way at a time. One pull more, and the
  /// newest is taken for lost: a worker asks a shard for one thing after another, so what it asks
  /// again is the last, whose answer broke off, and the gradients of the older ones still come.
  explicit OutstandingPulls(size_t per_member_max) : per_member_max_(per_member_max) {}

  /// Forgets the newest pull of a worker that has all it may have.
  void MakeRoom(WorkerId worker);
  void Add(WorkerId worker, Version base);

  /// The worker has pushed a gradient of this base, or said that none will come.
  void Settle(WorkerId worker, Version base);

  bool Has(WorkerId worker) const { return bases_.contains(worker); }

  /// Forgets everybody who is not in `view`, and past lives of those who are.
  void KeepMembers(const View& before, const View& view);

  /// Members with a gradient on its way whose base fulfils `is_old`, in order of ids.
  template <typename Predicate>
  std::vector<WorkerId> Where(Predicate is_old) const {
    std::vector<WorkerId> found;
    for (const auto& [worker, bases] : bases_) {
      if (is_old(bases.front())) found.push_back(worker);
    }
    return found;
  }

 private:
  const size_t per_member_max_;

  // Rising, as a member's pulls do; none is empty.
  std::map<WorkerId, std::deque<Version>> bases_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_OUTSTANDING_PULLS_H_

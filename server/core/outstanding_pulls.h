#ifndef SLIPSTREAM_SERVER_CORE_OUTSTANDING_PULLS_H_
#define SLIPSTREAM_SERVER_CORE_OUTSTANDING_PULLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/view.h"

namespace slipstream {

/// The versions that members have been given to train on and not pushed a gradient of yet: the
/// bases of the gradients that are on their way.
///
/// A member has several slots where it may have several gradients under way, and each slot has one
/// at a time: its weights are pulled, and then used or given up by the slot's next push. What a
/// worker will push next is its own affair, so gradients are told apart by slots and not by
/// sequences.
///
/// Not thread-safe: one owner, which serialises calls.
class OutstandingPulls {
 public:
  /// The slot has been, or will be, given `base`. Of two answers to one pull the worker may use
  /// either, so the older one counts.
  void Add(WorkerId worker, uint32_t slot, Version base);

  /// The slot's gradient has been pushed, or will not come.
  void Settle(WorkerId worker, uint32_t slot) { bases_.erase({worker, slot}); }

  std::optional<Version> Find(WorkerId worker, uint32_t slot) const;

  /// Whether a gradient of another slot of this worker is on its way.
  bool HasBeside(WorkerId worker, uint32_t slot) const;

  /// Forgets everybody who is not in `view`, and past lives of those who are.
  void KeepMembers(const View& before, const View& view);

  /// Members with a gradient on its way whose base fulfils `is_old`, in order of ids.
  template <typename Predicate>
  std::vector<WorkerId> Where(Predicate is_old) const {
    std::vector<WorkerId> found;
    for (const auto& [gradient, base] : bases_) {
      const WorkerId worker = gradient.first;
      const bool is_new = found.empty() || found.back() != worker;
      if (is_new && is_old(base)) found.push_back(worker);
    }
    return found;
  }

 private:
  std::map<std::pair<WorkerId, uint32_t>, Version> bases_;  // By worker and slot.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_OUTSTANDING_PULLS_H_

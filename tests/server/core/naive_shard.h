#ifndef SLIPSTREAM_TESTS_SERVER_CORE_NAIVE_SHARD_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_NAIVE_SHARD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/view.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// A gradient that was pushed, as one number.
struct GivenPush {
  WorkerId worker{};
  Version base{};
  uint32_t examples = 0;
  double gradient = 0;
};

/// A naive model of the rules of rounds. It keeps everything that ever happened.
class NaiveShard {
 public:
  explicit NaiveShard(const ConsistencySpec& consistency) : consistency_(consistency) {}

  bool is_hardsync() const { return consistency_.policy == ConsistencySpec::Policy::kHardsync; }

  void OnView(const View& next) {
    for (uint32_t id = 0; id < 64; ++id) {
      const WorkerId worker{id};
      const Member* before = view.Find(worker);
      const Member* now = next.Find(worker);
      if (before == nullptr || now == nullptr || before->incarnation != now->incarnation) {
        owes_from.erase(worker);
      }
      if (now != nullptr && now->founding) owes_from.emplace(worker, Version{});
    }
    view = next;
    CloseIfDue();
  }

  bool IsLate(WorkerId worker, Version base) const {
    if (is_draining && !is_hardsync()) return true;
    return is_hardsync() && (base < decided || HasAnswered(worker));
  }

  /// The earliest version that a worker that has pushed can compute its next gradient from.
  Version VersionAfterPush(WorkerId worker) const {
    return is_hardsync() && HasAnswered(worker) ? Next(decided) : decided;
  }

  void Join(const GivenPush& given) {
    round.push_back(given);
    ++joined[given.worker];
    CloseIfDue();
  }

  void Excuse(WorkerId worker) {
    excused.insert(worker);
    CloseIfDue();
  }

  /// A worker asks for weights to train on, of a version that the open round may still have to
  /// make.
  void Ask(WorkerId worker, Version version) {
    owes_from.emplace(worker, version);
    if (version > decided && !HasAnswered(worker)) Excuse(worker);
  }

  void Drain() {
    is_draining = true;
    CloseIfDue();
  }

  std::vector<WorkerId> Awaited() const {
    std::vector<WorkerId> awaited;
    if (!is_hardsync()) return awaited;
    for (const auto& [worker, from] : owes_from) {
      if (from <= decided && !HasAnswered(worker)) awaited.push_back(worker);
    }
    return awaited;
  }

  View view;
  bool is_draining = false;
  std::map<WorkerId, Version> owes_from;
  Version decided{};
  Version published{};
  std::vector<GivenPush> round;
  std::set<WorkerId> excused;
  std::vector<std::vector<GivenPush>> closed;  // Round i made version i + 1.
  std::map<WorkerId, uint64_t> joined;

 private:
  bool HasAnswered(WorkerId worker) const {
    return excused.contains(worker) ||
           std::any_of(round.begin(), round.end(),
                       [worker](const GivenPush& given) { return given.worker == worker; });
  }

  bool IsDue() const {
    if (is_hardsync()) return round.size() + excused.size() > 0 && Awaited().empty();
    if (round.empty()) return false;
    if (is_draining || consistency_.policy == ConsistencySpec::Policy::kAsync) return true;
    const auto fixed = static_cast<size_t>(consistency_.parameters["c"]);
    const auto n = static_cast<size_t>(consistency_.parameters["n"]);
    return round.size() >= (fixed > 0 ? fixed : std::max<size_t>(1, view.members.size() / n));
  }

  void CloseIfDue() {
    if (!IsDue()) return;
    closed.push_back(round);
    round.clear();
    excused.clear();
    decided = Next(decided);
  }

  ConsistencySpec consistency_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_NAIVE_SHARD_H_

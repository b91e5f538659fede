#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_PARKED_CALLS_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_PARKED_CALLS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace slipstream {

/// How often time passes in the coordinator. A call is answered at most this long after its
/// deadline.
inline constexpr absl::Duration kCoordinatorTick = absl::Milliseconds(20);

/// The calls that wait for an answer of the coordinator. After each event those are asked again
/// whose answer may have changed; a call whose time is up is answered with the state of that
/// moment.
///
/// Not thread-safe: one owner.
template <typename Call, typename Answer>
class ParkedCalls {
 public:
  /// How long a call waits at most before it is answered.
  static constexpr absl::Duration kWaitMax = absl::Seconds(10);

  /// The most calls that may wait, more than all members could have. Whoever parks calls refuses
  /// further ones with RESOURCE_EXHAUSTED.
  static constexpr size_t kMax = 10'000;

  /// Returns the call's answer, or nothing if it has to wait on. `is_last`: there is no time left
  /// to wait.
  using Question = std::function<std::optional<Answer>(bool is_last)>;

  bool is_full() const { return calls_.size() >= kMax; }

  /// Lets the call wait for up to `wait`. Returns the name under which Remove knows it. REQUIRES:
  /// !is_full().
  uint64_t Park(Call call, Question question, absl::Duration wait, absl::Time now) {
    const absl::Time deadline = now + std::min(wait, kWaitMax);
    next_deadline_ = std::min(next_deadline_, deadline);
    calls_.emplace(next_, Parked{std::move(call), deadline, std::move(question)});
    return next_++;
  }

  /// Returns whether the call was still waiting.
  bool Remove(uint64_t name) { return calls_.erase(name) > 0; }

  /// Takes out the calls that have an answer now. `changes`: counts what may change answers.
  std::vector<std::pair<Call, Answer>> TakeAnswered(uint64_t changes, absl::Time now) {
    std::vector<std::pair<Call, Answer>> answered;
    const bool has_changed = std::exchange(changes_, changes) != changes;
    if (!has_changed && now < next_deadline_) return answered;
    next_deadline_ = absl::InfiniteFuture();
    for (auto it = calls_.begin(); it != calls_.end();) {
      Parked& parked = it->second;
      const bool is_last = now >= parked.deadline;
      std::optional<Answer> answer;
      if (has_changed || is_last) answer = parked.question(is_last);
      if (!answer.has_value()) {
        next_deadline_ = std::min(next_deadline_, parked.deadline);
        ++it;
        continue;
      }
      answered.emplace_back(std::move(parked.call), *std::move(answer));
      it = calls_.erase(it);
    }
    return answered;
  }

  /// Takes out all calls, by age.
  std::vector<Call> TakeAll() {
    std::vector<Call> all;
    for (auto& [name, parked] : calls_) all.push_back(std::move(parked.call));
    calls_.clear();
    return all;
  }

 private:
  struct Parked {
    Call call;
    absl::Time deadline;
    Question question;
  };

  std::map<uint64_t, Parked> calls_;  // By age.
  uint64_t next_ = 0;
  absl::Time next_deadline_ = absl::InfiniteFuture();  // The earliest of theirs.
  uint64_t changes_ = 0;                               // When the calls were last asked.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_PARKED_CALLS_H_

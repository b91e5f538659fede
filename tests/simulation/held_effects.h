#ifndef SLIPSTREAM_TESTS_SIMULATION_HELD_EFFECTS_H_
#define SLIPSTREAM_TESTS_SIMULATION_HELD_EFFECTS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

namespace slipstream {

/// All that may leave a process only once its disk has what it follows from: answers, reports, and
/// what an observer may see. Changes of the process's state are numbered from 1 on.
///
/// Not thread-safe: one owner.
class HeldEffects {
 public:
  /// Runs `effect` once the disk has this change, and after all effects that came before; or `lost`
  /// if the process ends first. Exactly one of them runs.
  void Hold(uint64_t change, std::function<void()> effect, std::function<void()> lost) {
    if (change <= written_ && effects_.empty()) return effect();
    effects_.push_back({change, std::move(effect), std::move(lost)});
  }

  /// Notes that the disk has all changes up to this one, and runs the effects that waited for it.
  void Release(uint64_t written) {
    written_ = written;
    while (!effects_.empty() && effects_.front().change <= written_) {
      const std::function<void()> effect = std::move(effects_.front().run);
      effects_.pop_front();
      effect();
    }
  }

  /// The process has ended.
  void Lose() {
    for (const Effect& each : std::exchange(effects_, {})) each.lost();
  }

  bool empty() const { return effects_.empty(); }

  /// The newest change that the disk has.
  uint64_t written() const { return written_; }

 private:
  struct Effect {
    uint64_t change = 0;  // The disk has to have it first.
    std::function<void()> run;
    std::function<void()> lost;
  };

  std::deque<Effect> effects_;  // By age.
  uint64_t written_ = 0;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_HELD_EFFECTS_H_

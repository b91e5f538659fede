#ifndef SLIPSTREAM_TESTS_SIMULATION_SIM_JOURNAL_H_
#define SLIPSTREAM_TESTS_SIMULATION_SIM_JOURNAL_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "deploy/lab/event_queue.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/held_effects.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

/// The file with the coordinator's state, and all that may leave the coordinator only once the file
/// holds what it follows from: answers, and what an observer may see. A write takes a random time.
/// Without durability everything leaves at once.
///
/// Not thread-safe: one owner. All arguments must outlive it, and it must outlive the queue's last
/// event.
class SimJournal {
 public:
  SimJournal(const Scenario& scenario, EventQueue& queue)
      : is_used_(scenario.run.durability.saves()),
        time_max_(scenario.journal_time_max),
        queue_(queue),
        chance_(scenario.seed, kStream) {}

  /// Notes that the coordinator has made so many changes, after which its state is `state()`.
  template <typename State>
  void Note(uint64_t changes, State state) {
    if (!is_used_ || changes == noted_) return;
    noted_ = changes;
    newest_ = state();
    if (!is_writing_) Write();
  }

  /// Runs `effect` once all changes noted so far are in the file, and after all earlier effects; or
  /// `lost` if the process ends before.
  void Leave(
      std::function<void()> effect, std::function<void()> lost = [] {}) {
    effects_.Hold(noted_, std::move(effect), std::move(lost));
  }

  /// The process has ended: a write under way and all effects that wait for it are lost.
  void Kill() {
    ++writes_;
    is_writing_ = false;
    noted_ = effects_.written();
    effects_.Lose();
  }

  /// Goes on with the coordinator that was restored from the file, and has made so many changes.
  void Return(uint64_t changes) {
    noted_ = changes;
    effects_.Release(changes);
  }

  /// The file; empty before the first write.
  const std::string& file() const { return file_; }
  bool is_writing() const { return is_writing_; }

 private:
  static constexpr uint64_t kStream = 25;

  void Write() {
    is_writing_ = true;
    const absl::Duration time = chance_.Time(absl::Microseconds(10), time_max_);
    queue_.After(time, [this, write = ++writes_, changes = noted_, bytes = newest_] {
      if (write != writes_) return;
      is_writing_ = false;
      file_ = bytes;
      effects_.Release(changes);
      if (noted_ != effects_.written() && !is_writing_) Write();
    });
  }

  // Constant after construction.
  const bool is_used_;
  const absl::Duration time_max_;

  EventQueue& queue_;
  Chance chance_;
  std::string file_;
  std::string newest_;   // The state to write next.
  uint64_t noted_ = 0;   // The changes that the coordinator has made.
  HeldEffects effects_;  // They wait for these changes.
  bool is_writing_ = false;
  uint64_t writes_ = 0;  // Counts the writes, so that one that was lost has no effect.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SIM_JOURNAL_H_

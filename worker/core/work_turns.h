#ifndef SLIPSTREAM_WORKER_CORE_WORK_TURNS_H_
#define SLIPSTREAM_WORKER_CORE_WORK_TURNS_H_

#include <cstdint>
#include <vector>

#include "worker/core/work_news.h"

namespace slipstream {

/// Knows which of a pipeline's slots have work left, from one stage of the run to the next.
///
/// Not thread-safe: one owner.
class WorkTurns {
 public:
  explicit WorkTurns(uint32_t slots) : finished_(slots) {}

  /// The step that follows once a slot has nothing left to do.
  enum class Rest {
    kOthersGoOn,
    kAwaitNews,  // The next stage, or the end of work.
    kOver,       // No slot has work left in this run.
  };

  /// Notes that the slot has nothing left to do in this stage.
  Rest OnFinished(uint32_t slot);

  /// Notes an answer of the coordinator, which the worker heeds.
  void OnNews(const WorkNews& news);

  uint32_t slots() const { return static_cast<uint32_t>(finished_.size()); }

 private:
  std::vector<bool> finished_;  // By slot: in this stage.
  uint32_t stage_ = 0;
  bool has_no_more_units_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CORE_WORK_TURNS_H_

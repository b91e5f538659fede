#ifndef SLIPSTREAM_WORKER_COMPUTE_BATCH_PROGRAMS_H_
#define SLIPSTREAM_WORKER_COMPUTE_BATCH_PROGRAMS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "common/base/check.h"

namespace slipstream {

/// Programs that a library or a device prepares for one batch size, in some milliseconds. A run
/// needs few sizes (its own, the rest of an epoch, the evaluation's), so the programs of the latest
/// sizes are kept.
///
/// Not thread-safe: owned by one node or plan.
template <typename Program>
class BatchPrograms {
 public:
  static constexpr size_t kProgramsMax = 4;

  /// Prepares for passes of `count` examples. Calls make(), which returns a unique_ptr, unless the
  /// program of that size is kept.
  template <typename Make>
  void Prepare(uint32_t count, Make make) {
    if (Find(count) == nullptr) Add(count, make());
  }

  /// Returns the program for passes of `count` examples, and makes it the one prepared last; null
  /// if none is kept.
  Program* Find(uint32_t count) {
    const auto found = std::find_if(programs_.begin(), programs_.end(),
                                    [&](const Sized& sized) { return sized.count == count; });
    if (found == programs_.end()) return nullptr;
    programs_.splice(programs_.begin(), programs_, found);
    return found->program.get();
  }

  /// Adds the program for passes of `count` examples. REQUIRES: Find(count) is null.
  Program& Add(uint32_t count, std::unique_ptr<Program> program) {
    if (programs_.size() == kProgramsMax) programs_.pop_back();
    programs_.push_front({count, std::move(program)});
    return *programs_.front().program;
  }

  /// Returns the program for `count` examples. REQUIRES: `count` was prepared last.
  Program& For(uint32_t count) {
    PS_CHECK(!programs_.empty() && programs_.front().count == count);
    return *programs_.front().program;
  }

 private:
  struct Sized {
    uint32_t count = 0;
    std::unique_ptr<Program> program;
  };

  std::list<Sized> programs_;  // The one prepared last comes first.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_COMPUTE_BATCH_PROGRAMS_H_

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

/// Programs that a library or a device makes ready for one batch size in some milliseconds. A run
/// needs few sizes (its own, the rest of an epoch, the evaluation's), whose programs are kept.
///
/// Not thread-safe: owned by one node or plan.
template <typename Program>
class BatchPrograms {
 public:
  static constexpr size_t kProgramsMax = 4;

  /// The next passes are of `count` examples; calls make(), which returns a unique_ptr, unless that
  /// size's program is here.
  template <typename Make>
  void Prepare(uint32_t count, Make make) {
    if (Find(count) == nullptr) Add(count, make());
  }

  /// Null if that size's program is not here; else the next passes are of `count` examples.
  Program* Find(uint32_t count) {
    const auto found = std::find_if(programs_.begin(), programs_.end(),
                                    [&](const Sized& sized) { return sized.count == count; });
    if (found == programs_.end()) return nullptr;
    programs_.splice(programs_.begin(), programs_, found);
    return found->program.get();
  }

  /// The next passes are of `count` examples. REQUIRES: Find(count) is null.
  Program& Add(uint32_t count, std::unique_ptr<Program> program) {
    if (programs_.size() == kProgramsMax) programs_.pop_back();
    programs_.push_front({count, std::move(program)});
    return *programs_.front().program;
  }

  /// REQUIRES: `count` was prepared last.
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

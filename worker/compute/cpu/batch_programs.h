#ifndef SLIPSTREAM_WORKER_COMPUTE_CPU_BATCH_PROGRAMS_H_
#define SLIPSTREAM_WORKER_COMPUTE_CPU_BATCH_PROGRAMS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "common/base/check.h"

namespace slipstream {

/// Programs of oneDNN's primitives, each made for one batch size in some milliseconds. A run needs
/// few sizes (its own, the rest of an epoch, the evaluation's), whose programs are kept.
///
/// Not thread-safe: owned by one node.
template <typename Program>
class BatchPrograms {
 public:
  static constexpr size_t kProgramsMax = 4;

  /// The next passes are of `count` examples; calls make(), which returns a unique_ptr, unless that
  /// size's program is here.
  template <typename Make>
  void Prepare(uint32_t count, Make make) {
    const auto found = std::find_if(programs_.begin(), programs_.end(),
                                    [&](const Sized& sized) { return sized.count == count; });
    if (found != programs_.end()) {
      programs_.splice(programs_.begin(), programs_, found);
      return;
    }
    if (programs_.size() == kProgramsMax) programs_.pop_back();
    programs_.push_front({count, make()});
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

#endif  // SLIPSTREAM_WORKER_COMPUTE_CPU_BATCH_PROGRAMS_H_

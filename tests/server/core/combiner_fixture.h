#ifndef SLIPSTREAM_TESTS_SERVER_CORE_COMBINER_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_CORE_COMBINER_FIXTURE_H_

#include <cstdint>
#include <vector>

#include "common/base/ids.h"
#include "common/protocol/shard_messages.h"
#include "common/protocol/view.h"

namespace slipstream {

/// Returns the header of a gradient whose worker asks for weights.
inline PushHeader HeaderWith(uint32_t worker, uint64_t sequence, uint64_t base) {
  return {.identity = {.run = 1, .worker = WorkerId{worker}, .incarnation = Incarnation{worker}},
          .sequence = Sequence{sequence},
          .base = Version{base},
          .count = 10,
          .examples = 32,
          .pull = true};
}

inline View ViewOf(uint64_t number, const std::vector<Member>& members) {
  return {.number = ViewNumber{number}, .members = members};
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CORE_COMBINER_FIXTURE_H_

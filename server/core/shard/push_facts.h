#ifndef SLIPSTREAM_SERVER_CORE_SHARD_PUSH_FACTS_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_PUSH_FACTS_H_

#include <cstdint>

#include "common/protocol/shard_messages.h"
#include "server/core/shard/round.h"

namespace slipstream {

/// The facts about an admitted push once its payload has come.
struct PushFacts {
  PushId push{};
  PushHeader header;
  uint64_t values_received = 0;
  bool is_finite = true;
  uint64_t checksum = 0;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.push, self.header, self.values_received, self.is_finite, self.checksum);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_PUSH_FACTS_H_

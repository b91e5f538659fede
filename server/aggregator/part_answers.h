#ifndef SLIPSTREAM_SERVER_AGGREGATOR_PART_ANSWERS_H_
#define SLIPSTREAM_SERVER_AGGREGATOR_PART_ANSWERS_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "common/protocol/shard_messages.h"
#include "server/aggregator/uplink.h"
#include "server/data_plane/shard.h"
#include "server/storage/buffer_pool.h"

namespace slipstream {

// Functions that make the answers to workers out of those to composites.

/// A composite that the shard has counted.
struct CountedComposite {
  PushHeader header;
  ExchangeAnswer answer;
  Weights weights;  // The values of the answer; null if it has none.
};

/// Returns which workers go on with what they are told: one for each part.
std::vector<bool> GoesOn(const CountedComposite& composite);

/// Returns the composite with the newest weights among these; null if none has weights, or if work
/// came with any of them: then each worker has to compute from the weights that its work is for.
const CountedComposite* NewestOf(std::span<const CountedComposite* const> composites);

/// Returns the answer to the worker that sent `push`, the part of a composite at position `part`.
/// The weights are those of `newest`, unless that is null or of another generation.
Answer AnswerOf(const PushHeader& push, const CountedComposite& composite, size_t part,
                const CountedComposite* newest);

/// Returns the answer that sends a worker to the shard. `why` is for people.
PushReply NotCombined(std::string_view why);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_AGGREGATOR_PART_ANSWERS_H_

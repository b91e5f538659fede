#include "common/protocol/composite_push.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/check.h"

namespace slipstream {

PushHeader HeaderOf(const PushHeader& composite, const PushPart& part) {
  PushHeader header = {.identity = {composite.identity.run, part.worker, part.incarnation},
                       .sequence = part.sequence,
                       .shard_map = composite.shard_map,
                       .base = part.base,
                       .generation = composite.generation,
                       .count = composite.count,
                       .kind = composite.kind,
                       .examples = part.examples,
                       .batches = part.batches,
                       .pull = part.pull,
                       .chunk_bytes = composite.chunk_bytes,
                       .slot = part.slot,
                       .clock = part.clock,
                       .rests = part.rests,
                       .weights_encoding = composite.weights_encoding};
  header.trailer.loss = part.loss;
  return header;
}

PushReply ReplyTo(const PushReply& composite, const PushPart& part) {
  PushReply reply = composite;
  // The round that it is part of starts from the version before.
  if (!IsRefusal(reply.outcome)) reply.staleness = Value(reply.version) - 1 - Value(part.base);
  return reply;
}

PushPart PartOf(const PushHeader& push, uint64_t checksum) {
  return {.worker = push.identity.worker,
          .incarnation = push.identity.incarnation,
          .sequence = push.sequence,
          .base = push.base,
          .slot = push.slot,
          .clock = push.clock,
          .examples = push.examples,
          .batches = push.batches,
          .rests = push.rests,
          .pull = push.pull,
          .loss = push.trailer.loss,
          .checksum = checksum};
}

bool Combine(const PushHeader& a, const PushHeader& b) {
  return a.identity.run == b.identity.run && a.shard_map == b.shard_map &&
         a.generation == b.generation && a.count == b.count && a.kind == b.kind &&
         a.weights_encoding == b.weights_encoding;
}

PushHeader CompositeOf(std::span<const PushHeader* const> pushes,
                       std::span<const uint64_t> checksums, bool weighs_examples) {
  PS_CHECK(!pushes.empty() && pushes.size() == checksums.size());
  const PushHeader& first = *pushes.front();
  PushHeader composite = {.identity = {.run = first.identity.run},
                          .shard_map = first.shard_map,
                          .base = first.base,
                          .generation = first.generation,
                          .count = first.count,
                          .kind = first.kind,
                          .weights_encoding = first.weights_encoding,
                          .weighs_examples = weighs_examples};
  composite.trailer.absent = first.trailer.absent;
  for (size_t i = 0; i < pushes.size(); ++i) {
    PS_CHECK(Combine(first, *pushes[i]));
    composite.parts.push_back(PartOf(*pushes[i], checksums[i]));
    composite.base = std::min(composite.base, pushes[i]->base);
    composite.examples += pushes[i]->examples;
    composite.pull = composite.pull || pushes[i]->pull;
    composite.trailer.absent.IntersectWith(pushes[i]->trailer.absent);
  }
  std::ranges::sort(composite.parts, {}, &PushPart::worker);
  return composite;
}

std::string FaultOfParts(const PushHeader& composite) {
  uint64_t examples = 0;
  bool pulls = false;
  Version oldest = composite.parts.front().base;
  for (size_t i = 0; i < composite.parts.size(); ++i) {
    const PushPart& part = composite.parts[i];
    if (i > 0 && part.worker <= composite.parts[i - 1].worker) {
      return "its parts are not in order of worker ids, each once";
    }
    examples += part.examples;
    pulls = pulls || part.pull;
    oldest = std::min(oldest, part.base);
  }
  if (composite.count == 0) return "it has no values";
  if (examples != composite.examples) return "its examples are not the sum of its parts'";
  if (composite.base != oldest) return "its base is not the oldest of its parts'";
  if (composite.pull != pulls) return "it pulls, and no part does, or the other way round";
  const bool has_trailer = composite.trailer.loss.has_value() || composite.trailer.clip != 1;
  if (has_trailer || composite.rests || composite.leaves_out || composite.holds_base) {
    return "it has what only its parts can have";
  }
  return "";
}

}  // namespace slipstream

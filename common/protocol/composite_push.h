#ifndef SLIPSTREAM_COMMON_PROTOCOL_COMPOSITE_PUSH_H_
#define SLIPSTREAM_COMMON_PROTOCOL_COMPOSITE_PUSH_H_

#include <cstdint>
#include <span>
#include <string>

#include "common/protocol/shard_messages.h"

namespace slipstream {

/// A composite is the push of an aggregator, which combines the pushes of several workers into one.
/// Its header lists them as parts. A shard counts all parts, each by its worker's own sequence and
/// checksum, or it counts none and answers NOT_COMBINED. So an aggregator has nothing that could be
/// lost: a worker that does not hear of its push sends it to the shard, where it counts once.

constexpr bool IsComposite(const PushHeader& header) { return !header.parts.empty(); }

/// Returns the header of one part, as its worker would send it to the shard.
PushHeader HeaderOf(const PushHeader& composite, const PushPart& part);

/// Calls `visit(push)` with the header of each worker's push of which a push consists: with its
/// own, or with those of its parts in their order.
template <typename Visit>
void ForEachPush(const PushHeader& header, Visit visit) {
  if (!IsComposite(header)) return visit(header);
  for (const PushPart& part : header.parts) visit(HeaderOf(header, part));
}

/// Returns the reply to one part of a composite that was replied to so: the staleness is its own.
PushReply ReplyTo(const PushReply& composite, const PushPart& part);

/// Returns the part that a worker's complete push becomes. `checksum` is that of its payload.
PushPart PartOf(const PushHeader& push, uint64_t checksum);

/// Returns whether the pushes of two workers may be parts of one composite, whose values then have
/// one meaning. Where the shard scales each gradient by its staleness, their bases have to be
/// equal, too.
bool Combine(const PushHeader& a, const PushHeader& b);

/// Returns the header of the composite of these pushes, whose parts it gets in order of worker ids.
/// `weighs_examples`: how the values are their mean.
/// REQUIRES: there is one, each is of another worker and has values, and any two of them Combine.
PushHeader CompositeOf(std::span<const PushHeader* const> pushes,
                       std::span<const uint64_t> checksums, bool weighs_examples);

/// Returns what is wrong with the parts by themselves; empty if nothing is.
std::string FaultOfParts(const PushHeader& composite);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROTOCOL_COMPOSITE_PUSH_H_

#ifndef SLIPSTREAM_SERVER_DATA_PLANE_SHARD_EVENT_H_
#define SLIPSTREAM_SERVER_DATA_PLANE_SHARD_EVENT_H_

#include <cstdint>
#include <string>

#include "common/base/archive.h"

namespace slipstream {

/// The events that change what a shard does later. They are recorded behind the decision that they
/// bring about, and before the shard carries it out.
enum class ShardEvent : uint8_t {
  kOrders = 1,
  kCoordinatorAsked,
  kCoordinatorAnswered,
  kInitialWeights,  // Initial weights have come or are in place; the log does not have them.
  kPull,
  kPullDone,
  kPushHeader,
  kDraftDropped,  // No draft was begun for the push whose header came last.
  kPush,          // Its payload is beside it, if the shard keeps that.
  kPushAbandoned,
  kCancelled,
  kJobDone,     // The first of the unfinished jobs.
  kProcessEnd,  // The process ended, and another one goes on.
};

/// Returns an event with its arguments as bytes. A later release reads them, too; arguments that it
/// adds have their defaults then.
template <typename... Arguments>
std::string EncodeEvent(ShardEvent event, const Arguments&... arguments) {
  ArchiveWriter archive;
  archive(event, arguments...);
  return archive.Take();
}

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_DATA_PLANE_SHARD_EVENT_H_

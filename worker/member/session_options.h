#ifndef SLIPSTREAM_WORKER_MEMBER_SESSION_OPTIONS_H_
#define SLIPSTREAM_WORKER_MEMBER_SESSION_OPTIONS_H_

#include "common/base/ids.h"
#include "common/layout/shard_map.h"
#include "common/protocol/shard_messages.h"
#include "common/settings/run_spec.h"
#include "worker/core/worker_session.h"

namespace slipstream {

/// Returns the options of a member's session that the run asks for. `map` cuts the model.
WorkerSession::Options SessionOptionsFor(const RunSpec& run, const Identity& identity,
                                         const ShardMap& map);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_MEMBER_SESSION_OPTIONS_H_

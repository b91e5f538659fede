#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_ALARMS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_ALARMS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "deploy/psctl/text_table.h"
#include "proto/status.pb.h"

namespace slipstream {

/// The longest usual silence of a server. Servers report several times a second; one that is silent
/// for longer may be unreachable.
inline constexpr double kServerSilenceSecondsMax = 2;

/// A round to which nobody has pushed for longer than this is stalled.
inline constexpr double kRoundStillSecondsMax = 1;

/// Returns a text such as "worker 3 is stalled: it lives, and has neither fetched nor pushed for 40
/// s". REQUIRES: it is.
std::string StalledText(const v1::WorkerStatus& worker);

/// Returns a text such as "; worker 3 has not pushed" about the workers that the run waits for,
/// empty if it waits for none by name.
std::string AwaitedText(const v1::RunStatus& status);

/// Returns everything that needs somebody's attention, the worst first: a failure, servers,
/// workers and aggregators that the run waits for and when it fails, dead workers and the causes,
/// stalled workers, stragglers, stalled rounds, mini-batches that were left out, shards that went
/// on from a checkpoint, lack a new one or have a slow log, push logs that end early, and workers
/// that are slowed for a test.
std::vector<ScreenLine> StatusAlarms(const v1::RunStatus& status);

/// Returns "waiting for server 1 (localhost:7071), silent for 8.02 s, fails in 1m52s". REQUIRES:
/// the status says who is missing.
std::string MissingText(const v1::RunStatus& status);

/// Returns "shard 1 has 2 of 4 gradients, none new for 12.4 s: closes when worker 3 pushes; …".
std::string RoundText(const v1::WaitingRound& round);

/// Returns "workers 1, 2 and 3"; many workers are counted and not named.
std::string WorkersText(const std::vector<uint32_t>& workers);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_ALARMS_H_

#ifndef SLIPSTREAM_SERVER_STATUS_RUN_STATUS_H_
#define SLIPSTREAM_SERVER_STATUS_RUN_STATUS_H_

#include <string>
#include <vector>

#include "common/settings/run_spec.h"
#include "proto/status.pb.h"
#include "server/status/status_facts.h"

namespace slipstream {

v1::RunStatus MergeStatus(const RunSpec& spec, const StatusFacts& facts);

/// Returns whether the outcome of a push of this name is a refusal.
bool IsRefusal(const std::string& outcome);

/// Returns the status of a reader, without its number and its lag in versions.
v1::ReaderStatus DescribeReader(const Readers::Reader& reader, absl::Time now);

/// Adds up the shards' counts of staleness and recomputes mean, percentiles and maximum from the
/// sums. A percentile is the lowest σ that at least this share of the counts does not exceed. The
/// window is the mean over the shards that have counted.
v1::StalenessStatus MergeStaleness(const std::vector<v1::ShardStatus>& shards);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_RUN_STATUS_H_

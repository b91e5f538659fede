#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_

#include <string>

#include "proto/status.pb.h"

namespace slipstream {

/// A running cluster for people: the run, a line per shard (marked if its
/// server is silent) and per worker, whom an open round waits
/// for, and the histogram of staleness.
std::string StatusText(const v1::RunStatus& status);

/// The message as protobuf JSON, with the field names of the .proto file and unset fields printed,
/// so that a script finds every field in every phase.
std::string StatusJson(const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_

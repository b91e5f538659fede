#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_

#include <string>

#include "proto/status.pb.h"

namespace slipstream {

/// A running cluster for people: the run, a line per shard (marked if its server is silent) and per
/// worker (marked if it is a straggler, with the reason below), the open rounds that wait with what
/// will happen to them, and the histogram of staleness.
std::string StatusText(const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_

#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_WATCH_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_WATCH_H_

#include <grpcpp/security/credentials.h>

#include <memory>

#include "common/process/stop_signal.h"
#include "deploy/psctl/command_line.h"

namespace slipstream {

/// Shows the status of a running cluster again and again until the run is over. If the coordinator
/// is not there, at the beginning or later, prints that and waits for it. Returns psctl's exit
/// code, which is that of `stop` if that ends it.
int WatchStatus(const StatusArguments& arguments,
                const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                const StopSignal& stop);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_WATCH_H_

#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_

#include <vector>

#include "deploy/psctl/text_table.h"
#include "proto/status.pb.h"

namespace slipstream {

/// Returns a page about a running cluster. From the top it has alarms, the run's figures, a line
/// per shard and per worker, the open rounds that wait, and the histogram of staleness.
///
/// The page fits into `size`, and shows where it leaves something out: a line that is too long ends
/// with an ellipsis, and a part that is too high ends with the number of lines left out. The least
/// important columns of tables and figures of the progress go first. All parts except the histogram
/// fit into 80 by 24 characters, whatever the size of the run.
std::vector<ScreenLine> StatusPage(const v1::RunStatus& status, const ScreenSize& size);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_

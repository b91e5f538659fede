#ifndef SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_
#define SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_

#include <string>
#include <vector>

#include "deploy/psctl/screen_line.h"
#include "proto/status.pb.h"

namespace slipstream {

/// A running cluster for people, from the top: what needs attention, the run's figures, a line per
/// shard and per worker, the open rounds that wait, and the histogram of staleness.
///
/// What has no room in `size` is left out and says so: a line that is too long ends with an
/// ellipsis, and a part that is too high with how many lines are missing. Columns of the tables and
/// figures of the progress are left out by their importance. In 80 by 24 characters all parts but
/// the histogram have their room, whatever the size of the run.
std::vector<ScreenLine> StatusPage(const v1::RunStatus& status, const ScreenSize& size);

/// The same in full, each line with its end.
std::string StatusText(const v1::RunStatus& status);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_STATUS_VIEW_H_

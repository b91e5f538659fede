#ifndef SLIPSTREAM_SERVER_STATUS_AGGREGATOR_FIGURES_H_
#define SLIPSTREAM_SERVER_STATUS_AGGREGATOR_FIGURES_H_

#include "proto/status.pb.h"

namespace slipstream {

/// Returns the figures that an aggregator itself reports, and nothing else that the message may
/// hold: it is kept for every aggregator as long as the run lasts. Only the first kFanoutMax
/// workers that the aggregator waits for are kept, since no group has more.
v1::AggregatorStatus FiguresOf(const v1::AggregatorStatus& report);

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_STATUS_AGGREGATOR_FIGURES_H_

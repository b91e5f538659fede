#include "server/status/aggregator_figures.h"

#include <algorithm>

#include "common/base/limits.h"

namespace slipstream {

v1::AggregatorStatus FiguresOf(const v1::AggregatorStatus& report) {
  v1::AggregatorStatus figures;
  figures.set_parts(report.parts());
  figures.set_composites(report.composites());
  figures.set_sent_back(report.sent_back());
  const int named = std::min(report.waiting_for_size(), static_cast<int>(kFanoutMax));
  for (int i = 0; i < named; ++i) figures.add_waiting_for(report.waiting_for(i));
  figures.set_waiting_seconds(report.waiting_seconds());
  return figures;
}

}  // namespace slipstream

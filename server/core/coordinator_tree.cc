// The part of Coordinator that knows of aggregators (cluster.tree).

#include <utility>
#include <vector>

#include "server/core/coordinator.h"

namespace slipstream {
namespace {

std::vector<LogField> FieldsOf(const AggregatorReport& report) {
  return {{"group", report.group},
          {"shard", Value(report.shard)},
          {"address", report.address.substr(0, Servers::kAddressBytesMax)}};
}

}  // namespace

absl::StatusOr<Aggregators::Arrival> Coordinator::OnAggregator(const AggregatorReport& report,
                                                               absl::Time now) {
  if (report.orders_seen > orders_.number) {
    absl::Status other_run =
        absl::FailedPreconditionError("the aggregator follows orders of another run");
    NoteRefusal(report, other_run);
    return other_run;
  }
  const absl::StatusOr<Aggregators::Arrival> arrival = aggregators_.Record(report, now);
  if (!arrival.ok()) {
    NoteRefusal(report, arrival.status());
    return arrival.status();
  }
  const bool is_new =
      *arrival == Aggregators::Arrival::kFirst || *arrival == Aggregators::Arrival::kReplaced;
  if (is_new) ++journal_changes_;
  if (*arrival == Aggregators::Arrival::kFirst) AddNote(false, "aggregator came", FieldsOf(report));
  if (*arrival == Aggregators::Arrival::kReplaced) {
    AddNote(true, "aggregator replaced", FieldsOf(report));
  }
  Advance(now);
  return arrival;
}

void Coordinator::NoteRefusal(const AggregatorReport& report, const absl::Status& reason) {
  AddRefusal("aggregator refused", report.instance, FieldsOf(report), reason);
}

std::string Coordinator::UpstreamOf(ShardId shard) const { return servers_.AddressOf(shard); }

}  // namespace slipstream

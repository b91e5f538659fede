#include "server/core/coordinator/aggregators.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/core/coordinator/servers.h"

namespace slipstream {
namespace {

// How many aggregators a message lists.
constexpr size_t kNamedMax = 16;

}  // namespace

Aggregators::Aggregators(const ClusterSpec& cluster)
    : cluster_(cluster), aggregators_(cluster.groups() * cluster.servers.size()) {}

absl::StatusOr<Aggregators::Arrival> Aggregators::Record(const AggregatorReport& report,
                                                         absl::Time now) {
  if (groups() == 0) {
    return absl::InvalidArgumentError("the run has no aggregators: cluster.tree.fanout is 0");
  }
  if (report.group >= groups() || Value(report.shard) >= shards()) {
    return absl::InvalidArgumentError(
        fmt::format("the run has aggregators of groups 0 to {} for shards 0 to {}, and none of "
                    "group {} for shard {}",
                    groups() - 1, shards() - 1, report.group, Value(report.shard)));
  }
  if (report.address.empty() || report.address.size() > Servers::kAddressBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("an aggregator's address has 1 to {} bytes", Servers::kAddressBytesMax));
  }
  std::optional<Aggregator>& known = aggregators_[report.group * shards() + Value(report.shard)];
  Arrival arrival = known.has_value() ? Arrival::kKnown : Arrival::kFirst;
  if (known.has_value() && known->report.instance != report.instance) {
    const bool has_its_port = known->report.address == report.address;
    const absl::Duration silence =
        has_its_port ? std::min(cluster_.lease, Servers::kSilenceAtItsAddress) : cluster_.lease;
    if (now - known->last_heard <= silence) {
      return absl::AlreadyExistsError(
          fmt::format("the aggregator of group {} for shard {} is another process, at {}",
                      report.group, Value(report.shard), known->report.address));
    }
    arrival = Arrival::kReplaced;
  }
  // A call that was given up may arrive after a later one.
  if (arrival == Arrival::kKnown && report.number < known->report.number) {
    known->last_heard = now;
    return Arrival::kLate;
  }
  known = Aggregator{report, now};
  return arrival;
}

void Aggregators::Forgive(absl::Duration gap, absl::Time now) {
  for (std::optional<Aggregator>& aggregator : aggregators_) {
    if (aggregator.has_value())
      aggregator->last_heard = std::min(now, aggregator->last_heard + gap);
  }
}

void Aggregators::OnRestored(absl::Time now) {
  for (std::optional<Aggregator>& aggregator : aggregators_) {
    if (aggregator.has_value()) aggregator->last_heard = now;
  }
}

bool Aggregators::AllReported() const {
  return std::ranges::all_of(aggregators_,
                             [](const auto& aggregator) { return aggregator.has_value(); });
}

std::vector<AggregatorId> Aggregators::Behind(uint64_t orders, absl::Duration silence,
                                              absl::Time now) const {
  std::vector<AggregatorId> behind;
  for (size_t place = 0; place < aggregators_.size(); ++place) {
    const std::optional<Aggregator>& aggregator = aggregators_[place];
    if (!aggregator.has_value() || aggregator->report.orders_seen >= orders) continue;
    if (now - aggregator->last_heard <= silence) behind.push_back(IdAt(place));
  }
  return behind;
}

std::vector<AggregatorId> Aggregators::Missing() const {
  std::vector<AggregatorId> missing;
  for (size_t place = 0; place < aggregators_.size(); ++place) {
    if (!aggregators_[place].has_value()) missing.push_back(IdAt(place));
  }
  return missing;
}

AggregatorId Aggregators::IdAt(size_t place) const {
  return {.group = static_cast<uint32_t>(place / shards()),
          .shard = ShardId{static_cast<uint32_t>(place % shards())}};
}

std::vector<std::string> Aggregators::AddressesFor(WorkerId worker) const {
  std::vector<std::string> addresses;
  if (groups() == 0 || Value(worker) >= cluster_.workers) return addresses;
  const uint32_t group = Value(worker) / cluster_.tree.fanout;
  for (uint32_t shard = 0; shard < shards(); ++shard) {
    addresses.push_back(Of(group, ShardId{shard})->report.address);
  }
  return addresses;
}

std::string ListText(const std::vector<AggregatorId>& aggregators) {
  std::string text;
  size_t named = 0;
  for (const AggregatorId& aggregator : aggregators) {
    if (named++ == kNamedMax) return text + ", ...";
    text += fmt::format("{}aggregator of group {} for shard {}", text.empty() ? "" : ", ",
                        aggregator.group, Value(aggregator.shard));
  }
  return text;
}

}  // namespace slipstream

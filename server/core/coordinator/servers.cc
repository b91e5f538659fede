#include "server/core/coordinator/servers.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/check.h"
#include "common/base/limits.h"

namespace slipstream {
namespace {

absl::Status CheckSaved(const ServerReport& report) {
  if (report.saved.size() > Servers::kSavedMax) {
    return absl::InvalidArgumentError(fmt::format("saved: at most {} checkpoints, not {}",
                                                  Servers::kSavedMax, report.saved.size()));
  }
  Generation highest = report.generation;
  for (const SavedVersion& saved : report.saved) highest = std::max(highest, saved.generation);
  if (highest <= Servers::kGenerationMax) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("generation: at most {}, not {}",
                                                Value(Servers::kGenerationMax), Value(highest)));
}

}  // namespace

absl::StatusOr<Servers::Arrival> Servers::Record(const ServerReport& report, absl::Time now) {
  const uint32_t shard = Value(report.shard);
  if (shard >= servers_.size()) {
    return absl::InvalidArgumentError(
        fmt::format("the run has shards 0 to {}, not {}", servers_.size() - 1, shard));
  }
  if (report.address.empty() || report.address.size() > kAddressBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("a server's address has 1 to {} bytes", kAddressBytesMax));
  }
  if (absl::Status named = CheckSaved(report); !named.ok()) return named;
  std::optional<Server>& server = servers_[shard];
  Arrival arrival = server.has_value() ? Arrival::kKnown : Arrival::kFirst;
  if (server.has_value() && server->report.instance != report.instance) {
    // A message of a process that is gone may come late.
    const auto& former = server->former;
    if (std::ranges::find(former, report.instance) != former.end()) {
      return absl::FailedPreconditionError(
          fmt::format("another process has taken the place of this one for shard {}", shard));
    }
    const bool ended_with_us = shard == 0 && !server->is_heard;
    const bool has_its_port = report.address == server->report.address;
    const absl::Duration silence =
        has_its_port ? std::min(takeover_, kSilenceAtItsAddress) : takeover_;
    if (!ended_with_us && now - server->last_heard <= silence) {
      return absl::AlreadyExistsError(fmt::format("shard {} is served by another process, at {}",
                                                  shard, server->report.address));
    }
    arrival = Arrival::kReplaced;
  }
  // A call that was given up may arrive after a later one.
  const bool is_late = arrival == Arrival::kKnown && report.number < server->report.number;
  std::deque<uint64_t> former = server.has_value() ? server->former : std::deque<uint64_t>();
  if (arrival == Arrival::kReplaced) {
    former.push_back(server->report.instance);
    if (former.size() > kFormerMax) former.pop_front();
  }
  ServerReport newest = is_late ? server->report : report;
  // Until a shard goes on in another process, that does not know of any gradient.
  if (arrival != Arrival::kFirst && !newest.initialized) newest.pushed = server->report.pushed;
  Version told = server.has_value() ? server->newest : Version{};
  if (newest.initialized) told = std::max(told, newest.version);
  has_news_ |= !server.has_value() || told > server->newest;
  may_have_moved_ |= server.has_value() && server->report.address != newest.address;
  server = Server{std::move(newest), now, told, std::move(former)};
  return arrival;
}

std::optional<Version> Servers::NewerThan(const ServerReport& report) const {
  const uint32_t shard = Value(report.shard);
  if (shard >= servers_.size() || !servers_[shard].has_value() || !report.initialized) return {};
  const Server& server = *servers_[shard];
  // A call that was given up, or a message of a process that is gone, may come late.
  const bool is_known = report.instance == server.report.instance;
  const bool is_late = is_known ? report.number < server.report.number
                                : std::ranges::count(server.former, report.instance) > 0;
  if (is_late || report.version >= server.newest) return {};
  return server.newest;
}

void Servers::Forgive(absl::Duration gap, absl::Time now) {
  for (std::optional<Server>& server : servers_) {
    if (server.has_value()) server->last_heard = std::min(now, server->last_heard + gap);
  }
}

void Servers::OnRestored(absl::Time now) {
  may_have_moved_ = AllSynced();  // Which addresses members were told is not written down.
  for (std::optional<Server>& server : servers_) {
    if (!server.has_value()) continue;
    server->last_heard = now;
    server->is_heard = false;
  }
}

std::vector<std::string> Servers::Addresses() const {
  PS_CHECK(AllSynced());
  std::vector<std::string> addresses;
  for (const std::optional<Server>& server : servers_) addresses.push_back(server->report.address);
  return addresses;
}

std::string Servers::AddressOf(ShardId shard) const {
  const bool is_known = Value(shard) < servers_.size() && servers_[Value(shard)].has_value();
  return is_known ? servers_[Value(shard)]->report.address : std::string();
}

bool Servers::AllSynced() const {
  return std::ranges::all_of(servers_, [](const auto& server) { return server.has_value(); });
}

bool Servers::TakeNews(absl::Time now) {
  if (!has_news_ || now - told_ < kTellInterval) return false;
  has_news_ = false;
  told_ = now;
  return true;
}

bool Servers::AnyUnheard() const {
  return std::ranges::any_of(
      servers_, [](const auto& server) { return server.has_value() && !server->is_heard; });
}

bool Servers::AllHeard() const {
  return std::ranges::all_of(
      servers_, [](const auto& server) { return server.has_value() && server->is_heard; });
}

std::optional<SavedVersion> Servers::NewestSavedByAll() const {
  std::optional<SavedVersion> newest;
  if (!AllSynced()) return newest;
  for (const SavedVersion& saved : servers_[0]->report.saved) {
    const auto has_it = [&saved](const auto& server) {
      return std::ranges::find(server->report.saved, saved) != server->report.saved.end();
    };
    if (newest < saved && std::ranges::all_of(servers_, has_it)) newest = saved;
  }
  return newest;
}

bool Servers::AllSeen(uint64_t orders) const {
  return std::ranges::all_of(servers_, [orders](const auto& server) {
    return server.has_value() && server->report.orders_seen >= orders;
  });
}

bool Servers::AllInitialized(uint64_t orders) const {
  return AllSeen(orders) && std::ranges::all_of(servers_, [](const auto& server) {
           return server->report.initialized;
         });
}

bool Servers::AllDrained(uint64_t orders) const {
  return AllSeen(orders) &&
         std::ranges::all_of(servers_, [](const auto& server) { return server->report.drained; });
}

bool Servers::AllSeenOrSilent(uint64_t orders, absl::Duration silence, absl::Time now) const {
  return std::ranges::all_of(servers_, [&](const auto& server) {
    return !server.has_value() || server->report.orders_seen >= orders ||
           now - server->last_heard > silence;
  });
}

uint64_t Servers::PushedEnd(WorkerId worker, Incarnation incarnation) const {
  std::pair<WorkerClock, uint64_t> newest;
  for (const std::optional<Server>& server : servers_) {
    if (!server.has_value()) continue;
    for (const ServerReport::Pushed& pushed : server->report.pushed) {
      if (pushed.worker == worker && pushed.incarnation == incarnation) {
        newest = std::max(newest, std::pair(pushed.clock, pushed.batch_end));
      }
    }
  }
  return newest.second;
}

absl::Status Servers::CheckMeasured(std::span<const Version> versions, bool has_ended) const {
  if (versions.size() != servers_.size()) {
    return absl::InvalidArgumentError(fmt::format("versions: one for each of {} shards, not {}",
                                                  servers_.size(), versions.size()));
  }
  for (size_t shard = 0; shard < servers_.size(); ++shard) {
    const std::optional<Server>& server = servers_[shard];
    // A restored version may be older than the shard's own.
    if (!server.has_value() || !server->is_heard) continue;
    const uint64_t newest = Value(std::max(server->newest, server->report.version));
    // A worker that comes to measure a run that has ended may close the round that was open when
    // the last one left.
    const uint64_t unheard = has_ended ? 1 : kVersionsUnheardMax;
    if (Value(versions[shard]) <= newest || Value(versions[shard]) - newest <= unheard) continue;
    return absl::InvalidArgumentError(
        fmt::format("versions: {} of shard {}, whose newest known version is {}",
                    Value(versions[shard]), shard, newest));
  }
  return absl::OkStatus();
}

uint32_t Servers::MembersMax() const {
  uint32_t most = kWorkersMax;
  for (const std::optional<Server>& server : servers_) {
    if (!server.has_value() || server->report.members_max == 0) continue;
    most = std::min(most, server->report.members_max);
  }
  return most;
}

std::string Servers::Missing(std::span<const std::string> addresses) const {
  std::string missing;
  for (size_t shard = 0; shard < servers_.size(); ++shard) {
    if (servers_[shard].has_value() && servers_[shard]->is_heard) continue;
    missing += fmt::format("{}shard {} ({})", missing.empty() ? "" : ", ", shard, addresses[shard]);
  }
  return missing;
}

std::optional<ShardId> Servers::FindSilent(absl::Duration silence, absl::Time now) const {
  for (size_t shard = 0; shard < servers_.size(); ++shard) {
    if (servers_[shard].has_value() && now - servers_[shard]->last_heard > silence) {
      return ShardId{static_cast<uint32_t>(shard)};
    }
  }
  return std::nullopt;
}

}  // namespace slipstream

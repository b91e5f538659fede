#include "deploy/psctl/certs/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/strings/str_split.h"
#include "common/base/limits.h"
#include "common/config/server_address.h"
#include "common/security/certified_identity.h"

namespace slipstream {
namespace {

constexpr const char* kThisMachine[] = {"localhost", "127.0.0.1", "::1"};

/// Returns `host` without the brackets of an IPv6 address, as a certificate has it.
std::string WithoutBrackets(const std::string& host) {
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

/// `text`: the hosts, joined by '+'; `flag` named them.
absl::StatusOr<std::vector<std::string>> HostsOfServer(const std::string& text, const char* flag) {
  std::vector<std::string> hosts;
  for (const std::string& host : std::vector<std::string>(absl::StrSplit(text, '+'))) {
    const bool is_bare_ipv6 = std::ranges::count(host, ':') > 1 && !host.starts_with('[');
    const auto address = ParseServerAddress((is_bare_ipv6 ? "[" + host + "]" : host) + ":1");
    if (!address.has_value() || address->IsWildcard()) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}' in {} is no host: give, for each server, the names and addresses by which others "
          "reach it, as ps-0+10.0.0.5,ps-1",
          host, flag));
    }
    hosts.push_back(WithoutBrackets(address->host));
  }
  for (const char* const host : kThisMachine) {
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.emplace_back(host);
  }
  return hosts;
}

/// Returns the hosts of each shard's server, as --hosts names them.
std::vector<std::string> HostTexts(const CertsInitArguments& arguments, const RunSpec* spec) {
  if (!arguments.hosts.empty() || spec == nullptr) return arguments.hosts;
  std::vector<std::string> texts;
  for (const std::string& server : spec->cluster.servers) {
    texts.push_back(ParseServerAddress(server)->host);  // LoadConfig made sure that it is one.
  }
  return texts;
}

/// Adds the certificates of the aggregators for servers with these hosts. Each group's have the
/// same hosts.
absl::Status PlanAggregators(const CertsInitArguments& arguments, const RunSpec* spec,
                             const std::vector<std::string>& servers, CertsPlan& plan) {
  std::vector<std::string> groups = arguments.aggregator_hosts;
  if (spec != nullptr && groups.empty()) groups.resize(spec->cluster.groups(), kThisMachine[0]);
  const bool fits = spec == nullptr || groups.size() == spec->cluster.groups();
  if (!fits || groups.size() > kWorkersMax / 2) {
    return absl::InvalidArgumentError(fmt::format(
        "--aggregator-hosts names the hosts of {} groups, and the run has {}", groups.size(),
        spec == nullptr ? "too few workers for them" : fmt::format("{}", spec->cluster.groups())));
  }
  ClusterSpec cluster;
  cluster.servers = servers;
  for (uint32_t group = 0; group < groups.size(); ++group) {
    const auto hosts = HostsOfServer(groups[group], "--aggregator-hosts");
    if (!hosts.ok()) return hosts.status();
    for (uint32_t shard = 0; shard < servers.size(); ++shard) {
      plan.certificates.push_back(
          {.identity = {plan.run, CertifiedRole::kServer, cluster.AggregatorNumber(group, shard)},
           .hosts = *hosts});
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string PlannedCertificate::FileStem() const {
  return MemberName(identity.role, identity.number);
}

absl::StatusOr<CertsPlan> PlanCerts(const CertsInitArguments& arguments, const RunSpec* spec) {
  CertsPlan plan = {.run = arguments.run.value_or(spec == nullptr ? "" : spec->name)};
  const CertifiedIdentity viewer = {.run = plan.run, .role = CertifiedRole::kViewer};
  if (!ParseIdentity(viewer.ToUri()).has_value()) {
    return absl::InvalidArgumentError(
        "--run has to be the run's name, as in run.yaml: 1 to 64 letters, digits, '.', '_', '-'");
  }
  const std::vector<std::string> texts = HostTexts(arguments, spec);
  const uint32_t workers = arguments.workers.value_or(spec == nullptr ? 0 : spec->cluster.workers);
  if (texts.empty()) {
    return absl::InvalidArgumentError(
        "give the servers' names by --hosts, as ps-0,ps-1, or a run.yaml by --config");
  }
  if (texts.size() > kServersMax || workers > kWorkersMax) {
    return absl::InvalidArgumentError(
        fmt::format("a run has at most {} servers and {} workers", kServersMax, kWorkersMax));
  }
  for (uint32_t shard = 0; shard < texts.size(); ++shard) {
    absl::StatusOr<std::vector<std::string>> hosts = HostsOfServer(texts[shard], "--hosts");
    if (!hosts.ok()) return hosts.status();
    plan.certificates.push_back(
        {.identity = {plan.run, CertifiedRole::kServer, shard}, .hosts = *std::move(hosts)});
  }
  if (absl::Status planned = PlanAggregators(arguments, spec, texts, plan); !planned.ok()) {
    return planned;
  }
  for (uint32_t worker = 0; worker < workers; ++worker) {
    plan.certificates.push_back(
        {.identity = {plan.run, CertifiedRole::kWorker, worker}, .hosts = {}});
  }
  if (arguments.any_worker) {
    plan.certificates.push_back(
        {.identity = {plan.run, CertifiedRole::kWorker, std::nullopt}, .hosts = {}});
  }
  for (const CertifiedRole role :
       {CertifiedRole::kOperator, CertifiedRole::kViewer, CertifiedRole::kReader}) {
    plan.certificates.push_back({.identity = {plan.run, role, std::nullopt}, .hosts = {}});
  }
  return plan;
}

}  // namespace slipstream

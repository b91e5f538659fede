#include "deploy/psctl/certs_plan.h"

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

absl::StatusOr<std::vector<std::string>> HostsOfServer(const std::string& text) {
  std::vector<std::string> hosts;
  for (const std::string& host : std::vector<std::string>(absl::StrSplit(text, '+'))) {
    const bool is_bare_ipv6 = std::ranges::count(host, ':') > 1 && !host.starts_with('[');
    const auto address = ParseServerAddress((is_bare_ipv6 ? "[" + host + "]" : host) + ":1");
    if (!address.has_value() || address->IsWildcard()) {
      return absl::InvalidArgumentError(fmt::format(
          "'{}' in --hosts is no host: give, for each server, the names and addresses by which "
          "others reach it, as ps-0+10.0.0.5,ps-1",
          host));
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
    absl::StatusOr<std::vector<std::string>> hosts = HostsOfServer(texts[shard]);
    if (!hosts.ok()) return hosts.status();
    plan.certificates.push_back(
        {.identity = {plan.run, CertifiedRole::kServer, shard}, .hosts = *std::move(hosts)});
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

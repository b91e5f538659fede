#include "deploy/psctl/operate/doctor.h"

#include <fmt/format.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "common/base/printable.h"
#include "common/config/server_address.h"
#include "common/json/json_text.h"
#include "common/process/exit_code.h"
#include "common/process/steady_time.h"
#include "common/process/version.h"
#include "common/rpc/secure_credentials.h"
#include "common/security/credential_files.h"
#include "deploy/psctl/operate/server_probe.h"
#include "deploy/psctl/operator_client.h"
#include "deploy/psctl/status/progress_view.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

constexpr absl::Duration kStepTime = absl::Seconds(5);

// Certificates are valid from an hour before they were made.
constexpr absl::Duration kClockDifferenceMax = absl::Minutes(1);

/// The result of one step.
struct Finding {
  absl::Status status;
  std::string text;    // The finding, or the fault.
  std::string remedy;  // Empty unless there is a fault.
};

Finding Found(std::string text) {
  return {.status = absl::OkStatus(), .text = std::move(text), .remedy = ""};
}

Finding Wrong(absl::StatusCode code, std::string text, std::string remedy) {
  absl::Status status(code, text);
  return {.status = std::move(status), .text = std::move(text), .remedy = std::move(remedy)};
}

absl::Time StepDeadline() { return SteadyNow() + kStepTime; }

std::string DatesOf(const CertificateFacts& facts) {
  return fmt::format("valid from {} to {}", absl::FormatTime(facts.begins, absl::UTCTimeZone()),
                     absl::FormatTime(facts.ends, absl::UTCTimeZone()));
}

/// One examination of one run.
class Doctor {
 public:
  explicit Doctor(const DoctorArguments& arguments)
      : arguments_(arguments),
        server_(*ParseServerAddress(arguments.coordinator)),  // The command line made sure.
        files_(FilesFor(arguments.security, kHolder)) {}

  int Run() {
    using Step = Finding (Doctor::*)();
    const std::pair<const char*, Step> steps[] = {{"files", &Doctor::LookAtFiles},
                                                  {"name", &Doctor::LookUpName},
                                                  {"tcp", &Doctor::Connect},
                                                  {"encryption", &Doctor::Greet},
                                                  {"server certificate", &Doctor::LookAtServer},
                                                  {"server host", &Doctor::LookAtHost},
                                                  {"server role", &Doctor::LookAtRole},
                                                  {"own certificate", &Doctor::LookAtOwn},
                                                  {"call", &Doctor::Ask},
                                                  {"version", &Doctor::CompareVersions},
                                                  {"clock", &Doctor::CompareClocks},
                                                  {"shards", &Doctor::ConnectToShards},
                                                  {"run", &Doctor::LookAtRun}};
    for (const auto& [name, step] : steps) {
      if (!files_.is_encrypted() && IsAboutTls(step)) continue;
      const Finding finding = (this->*step)();
      findings_.emplace_back(name, finding);
      if (!finding.status.ok()) break;
    }
    Print();
    return static_cast<int>(ExitCodeFor(findings_.back().second.status));
  }

 private:
  static constexpr CredentialHolder kHolder = {.role = CertifiedRole::kOperator,
                                               .number = std::nullopt};

  static bool IsAboutTls(Finding (Doctor::*step)()) {
    return step == &Doctor::LookAtServer || step == &Doctor::LookAtHost ||
           step == &Doctor::LookAtRole || step == &Doctor::LookAtOwn;
  }

  Finding LookAtFiles() {
    if (!files_.is_encrypted()) return Found("none are given: nothing is encrypted");
    const absl::StatusOr<OwnCredentials> own = CheckCredentials(files_, kHolder, absl::Now());
    if (!own.ok()) {
      return Wrong(own.status().code(), std::string(own.status().message()),
                   "psctl certs show DIR shows what certificates are for; psctl certs init and "
                   "renew make them");
    }
    identity_ = own->identity;
    if (!identity_.has_value()) return Found("no certificate; the token in " + files_.token);
    return Found(fmt::format("{} is for {} until {}", files_.certificate, identity_->ToUri(),
                             absl::FormatTime(own->ends, absl::UTCTimeZone())));
  }

  Finding LookUpName() {
    const absl::StatusOr<std::vector<std::string>> addresses = ResolveHost(server_.host);
    if (addresses.ok()) {
      return Found(fmt::format("{} is {}", server_.host, fmt::join(*addresses, ", ")));
    }
    return Wrong(
        absl::StatusCode::kUnavailable,
        fmt::format("{} is not known: {}", server_.host, std::string(addresses.status().message())),
        "check the spelling, /etc/hosts and this machine's name servers");
  }

  Finding Connect() {
    absl::StatusOr<FileDescriptor> connection = ConnectTo(server_, StepDeadline());
    if (connection.ok()) {
      connection_ = *std::move(connection);
      return Found("connected to " + server_.ToString());
    }
    return Wrong(absl::StatusCode::kUnavailable,
                 fmt::format("cannot connect to {}: {}", server_.ToString(),
                             std::string(connection.status().message())),
                 "start the server of shard 0, and compare this port with what it says that it "
                 "listens on; if nothing answers at all, a firewall may drop what is sent");
  }

  Finding Greet() { return files_.is_encrypted() ? GreetOverTls() : GreetInTheClear(); }

  Finding GreetInTheClear() {
    switch (GreetInPlaintext(connection_, StepDeadline())) {
      case FirstWords::kHttp2:
        return Found("the server speaks HTTP/2 without encryption");
      case FirstWords::kOther:
        return Wrong(absl::StatusCode::kInvalidArgument, "what listens there does not speak HTTP/2",
                     "another program has this port: check the address");
      case FirstWords::kTlsAlert:
      case FirstWords::kClosed:
        return Wrong(absl::StatusCode::kInvalidArgument,
                     "the server ends connections that are not encrypted",
                     "give --ca with the run's authority (PS_SECURITY_MTLS_CA): the server has "
                     "security.mtls");
      case FirstWords::kNothing:
        break;
    }
    return Wrong(absl::StatusCode::kUnavailable, "the server accepted, and says nothing",
                 "it may have no place for more connections, or be stopped (kill -CONT)");
  }

  Finding GreetOverTls() {
    absl::StatusOr<TlsHandshake> shown =
        ShakeHands(connection_, server_.host, files_, StepDeadline());
    if (shown.ok()) {
      handshake_ = *std::move(shown);
      return Found("the server speaks " + handshake_.protocol);
    }
    const std::string reason(shown.status().message());
    const bool is_plaintext = reason.find("wrong version number") != std::string::npos ||
                              reason.find("packet length") != std::string::npos;
    return Wrong(absl::StatusCode::kInvalidArgument, "there was no TLS handshake: " + reason,
                 is_plaintext
                     ? "the server does not encrypt: set security.mtls in its run.yaml, or "
                       "leave --ca (PS_SECURITY_MTLS_CA) away"
                     : "check that a Slipstream server has this port, and what its log "
                       "says");
  }

  Finding LookAtServer() {
    const absl::StatusOr<CertificateFacts> facts = ParseCertificate(handshake_.certificate);
    const absl::StatusOr<std::string> ca = ReadSmallFile(files_.ca);
    if (!facts.ok() || !ca.ok()) {
      return Wrong(absl::StatusCode::kInvalidArgument, "the server shows no certificate",
                   "check that a Slipstream server has this port");
    }
    server_facts_ = *facts;
    const absl::Status valid =
        VerifyCertificate(*ca, handshake_.certificate, TlsEnd::kServer, absl::Now());
    const std::string dates = DatesOf(*facts);
    if (valid.ok()) return Found(fmt::format("{}, {}", facts->subject, dates));
    return Wrong(
        absl::StatusCode::kInvalidArgument,
        fmt::format("the server's certificate ({}, {}) is not valid: {}", facts->subject, dates,
                    std::string(valid.message())),
        fmt::format("it has to be a server's, signed by the authority in {}, and of now ({} "
                    "by this machine's clock); psctl certs renew makes it last longer",
                    files_.ca, absl::FormatTime(absl::Now(), absl::UTCTimeZone())));
  }

  Finding LookAtHost() {
    const std::string hosts = fmt::format("{}", fmt::join(server_facts_.hosts, ", "));
    if (CheckHost(handshake_.certificate, server_.host).ok()) return Found("it is for " + hosts);
    return Wrong(
        absl::StatusCode::kInvalidArgument,
        fmt::format("the server's certificate is for {}, and not for {}", hosts, server_.host),
        "call it by one of those names, or make one with psctl certs init --hosts, where "
        "+ joins the names of one server");
  }

  Finding LookAtRole() {
    const absl::StatusOr<CertifiedIdentity> server = IdentityAmong(server_facts_.uris);
    if (!server.ok() || server->role != CertifiedRole::kServer) {
      return Wrong(absl::StatusCode::kInvalidArgument,
                   "the server's certificate is not for a server: " +
                       (server.ok() ? server->ToUri() : std::string(server.status().message())),
                   "psctl certs init makes certificates of all roles");
    }
    if (identity_.has_value() && identity_->run != server->run) {
      return Wrong(
          absl::StatusCode::kInvalidArgument,
          fmt::format("the server is {}, and this is {}", server->ToUri(), identity_->ToUri()),
          "take the certificates of that run, or the address of this one's server");
    }
    if (server->number != 0) {
      return Wrong(
          absl::StatusCode::kInvalidArgument,
          fmt::format("it is {}, and the coordinator is in the server of shard 0", server->ToUri()),
          "give the address of server 0");
    }
    return Found(server->ToUri());
  }

  Finding LookAtOwn() {
    switch (handshake_.then) {
      case FirstWords::kHttp2:
        return Found(identity_.has_value() ? "the server takes it" : "the server needs none");
      case FirstWords::kTlsAlert:
      case FirstWords::kClosed:
        return Wrong(
            absl::StatusCode::kInvalidArgument,
            "the server refuses it: " +
                (handshake_.alert.empty() ? "it closed the connection" : handshake_.alert),
            identity_.has_value()
                ? "the server trusts another authority: compare its security.mtls.ca; or "
                  "its clock is wrong"
                : "the server takes no tokens: set security.token in its run.yaml, or give "
                  "--certificate");
      case FirstWords::kOther:
      case FirstWords::kNothing:
        break;
    }
    return Wrong(absl::StatusCode::kUnavailable, "the server shook hands, and then says nothing",
                 "it may have no place for more connections, or be stopped (kill -CONT)");
  }

  Finding Ask() {
    const OperatorClient client(server_.ToString(), MakeChannelCredentials(files_));
    absl::StatusOr<v1::RunStatus> status = client.GetStatus(kStepTime, IfRefused::kWait);
    if (status.ok()) {
      status_ = *std::move(status);
      return Found(fmt::format("the run {} answers", Printable(status_.name())));
    }
    const absl::Status& failure = status.status();
    std::string remedy = "see the server's log";
    if (absl::IsInvalidArgument(failure)) remedy = "give the address of server 0";
    if (absl::IsUnauthenticated(failure)) {
      remedy = "give the run's token by --token, or a certificate of the run by --certificate";
    }
    if (absl::IsPermissionDenied(failure)) remedy = "take a certificate of this run";
    const bool may_not = absl::IsUnauthenticated(failure) || absl::IsPermissionDenied(failure);
    return Wrong(may_not ? absl::StatusCode::kInvalidArgument : failure.code(),
                 std::string(failure.message()), remedy);
  }

  Finding CompareVersions() {
    const uint32_t theirs = status_.protocol();  // 0 if the server does not say.
    std::string text =
        fmt::format("the server is of version {} (protocol {}), and this psctl of {} (protocol {})",
                    Printable(status_.server_version()), theirs, kVersion, kProtocol);
    const bool is_newer = theirs != 0 && kProtocol > theirs;
    if (!is_newer && kProtocol >= status_.oldest_protocol()) return Found(std::move(text));
    return Wrong(absl::StatusCode::kFailedPrecondition, std::move(text),
                 is_newer ? "upgrade the servers first, that of shard 0 before the others"
                          : "upgrade psctl");
  }

  Finding CompareClocks() {
    const absl::Duration ahead = absl::FromUnixMillis(status_.clock_ms()) - absl::Now();
    const std::string text = fmt::format("the server's clock is {:.1f} s {} this one",
                                         absl::ToDoubleSeconds(absl::AbsDuration(ahead)),
                                         ahead < absl::ZeroDuration() ? "behind" : "ahead of");
    if (absl::AbsDuration(ahead) <= kClockDifferenceMax) return Found(text);
    return Wrong(absl::StatusCode::kFailedPrecondition, text,
                 "set both by NTP: certificates hold from and until a time of day");
  }

  Finding LookAtRun() {
    const absl::Status failure = FailureOf(status_);
    if (failure.ok()) return Found(std::string(PhaseText(status_.phase())));
    return {.status = failure,
            .text = Printable(status_.failure()),
            .remedy = "a run that has failed does not go on; the servers' logs tell more"};
  }

  Finding ConnectToShards() {
    std::string reached;
    for (const v1::ShardStatus& shard : status_.shards()) {
      const std::string name = Printable(shard.address());
      if (const absl::Status status = ConnectToShard(shard); !status.ok()) {
        return Wrong(status.code(),
                     fmt::format("the server of shard {} at {}: {}", shard.shard(), name,
                                 std::string(status.message())),
                     "workers have to reach every server: check its name, its port, firewalls and "
                     "its certificate from this machine");
      }
      reached += (reached.empty() ? "" : ", ") + name;
    }
    if (status_.phase() != v1::WAITING_FOR_SERVERS) return Found("connected to " + reached);
    return Wrong(absl::StatusCode::kUnavailable,
                 fmt::format("the run waits for servers; there are {}",
                             reached.empty() ? "none yet" : reached),
                 "start those that are missing; the logs of those that run say why they cannot "
                 "reach the first");
  }

  absl::Status ConnectToShard(const v1::ShardStatus& shard) const {
    const auto address = ParseServerAddress(shard.address());
    if (!address.has_value()) return absl::InvalidArgumentError("it is no host:port");
    const absl::StatusOr<FileDescriptor> connection = ConnectTo(*address, StepDeadline());
    if (!connection.ok() || !files_.is_encrypted()) return connection.status();
    const absl::StatusOr<TlsHandshake> shown =
        ShakeHands(*connection, address->host, files_, StepDeadline());
    if (!shown.ok()) return shown.status();
    const absl::StatusOr<std::string> ca = ReadSmallFile(files_.ca);
    if (!ca.ok()) return ca.status();
    absl::Status right = VerifyCertificate(*ca, shown->certificate, TlsEnd::kServer, absl::Now());
    right.Update(CheckHost(shown->certificate, address->host));
    if (!right.ok()) return right;
    const absl::StatusOr<CertificateFacts> facts = ParseCertificate(shown->certificate);
    const absl::StatusOr<CertifiedIdentity> identity = IdentityAmong(facts->uris);
    if (!identity.ok()) return identity.status();
    const CertifiedIdentity expected = {status_.name(), CertifiedRole::kServer, shard.shard()};
    if (*identity == expected) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("its certificate is for {}, and not for {}",
                                                  identity->ToUri(), expected.ToUri()));
  }

  void Print() const {
    if (arguments_.format == OutputFormat::kJson) return PrintJson();
    std::vector<std::pair<std::string, std::string>> lines;
    for (const auto& [name, finding] : findings_) {
      lines.emplace_back((finding.status.ok() ? "ok    " : "WRONG ") + name, finding.text);
      if (!finding.status.ok()) lines.emplace_back("      what to do", finding.remedy);
    }
    fmt::print("{}", FormatFacts(lines));
  }

  void PrintJson() const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const auto& [name, finding] : findings_) {
      list.push_back({{"step", name},
                      {"ok", finding.status.ok()},
                      {"found", finding.text},
                      {"remedy", finding.remedy}});
    }
    fmt::print("{}", JsonText(list));
  }

  const DoctorArguments& arguments_;
  const ServerAddress server_;
  const CredentialFiles files_;

  std::vector<std::pair<std::string, Finding>> findings_;
  std::optional<CertifiedIdentity> identity_;
  FileDescriptor connection_;
  TlsHandshake handshake_;
  CertificateFacts server_facts_;
  v1::RunStatus status_;
};

}  // namespace

int DoctorCommand(const DoctorArguments& arguments) {
  // OpenSSL writes without MSG_NOSIGNAL, and a server that closes a connection must not end psctl.
  std::signal(SIGPIPE, SIG_IGN);
  return Doctor(arguments).Run();
}

}  // namespace slipstream

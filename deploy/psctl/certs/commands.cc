#include "deploy/psctl/certs/commands.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/clock.h"
#include "common/files/whole_file.h"
#include "common/json/json_text.h"
#include "common/process/output_text.h"
#include "common/security/authority.h"
#include "common/security/certificate.h"
#include "common/security/credential_files.h"
#include "deploy/psctl/certs/plan.h"
#include "deploy/psctl/complaint.h"
#include "deploy/psctl/config/loading.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

// How far the clocks of two machines may be apart.
constexpr absl::Duration kClockDifference = absl::Hours(1);

constexpr uint32_t kAuthorityDays = 3650;

Validity For(uint32_t days) {
  const absl::Time now = absl::Now();
  return {.begins = now - kClockDifference, .ends = now + absl::Hours(24) * days};
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// A directory of certificates and keys.
class CertsDirectory {
 public:
  explicit CertsDirectory(std::string path) : path_(std::move(path)) {}

  std::string Path(const std::string& stem, const char* ending) const {
    return path_ + "/" + stem + ending;
  }

  /// A key goes first: a certificate without its key would be of no use, nor be made again.
  absl::Status Write(const std::string& stem, const KeyedCertificate& made) const {
    absl::Status written = WriteWholeFile(Path(stem, ".key"), made.key);
    if (!written.ok()) return written;
    return WriteWholeFile(Path(stem, ".crt"), made.certificate);
  }

  absl::StatusOr<KeyedCertificate> ReadAuthority() const {
    absl::StatusOr<std::string> key = ReadSmallFile(Path("ca", ".key"));
    if (!key.ok()) return key.status();
    absl::StatusOr<std::string> certificate = ReadSmallFile(Path("ca", ".crt"));
    if (!certificate.ok()) return certificate.status();
    return KeyedCertificate{.key = *std::move(key), .certificate = *std::move(certificate)};
  }

  /// Returns the names of the certificates without their ending, the authority's first.
  absl::StatusOr<std::vector<std::string>> Stems() const {
    std::error_code error;
    std::set<std::pair<bool, std::string>> stems;
    for (fs::directory_iterator entry(path_, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path& file = entry->path();
      if (file.extension() == ".crt") stems.emplace(file.stem() != "ca", file.stem().string());
    }
    if (error) return absl::NotFoundError("cannot read " + path_ + ": " + error.message());
    if (stems.empty()) {
      return absl::NotFoundError(path_ + " has no certificates; psctl certs init makes them");
    }
    std::vector<std::string> names;
    for (const auto& [is_member, stem] : stems) names.push_back(stem);
    return names;
  }

 private:
  const std::string path_;
};

/// A line about a certificate.
struct CertificateLine {
  std::string file;
  std::string identity;
  std::string hosts;
  absl::Time ends;
  std::string state = "ok";
};

CertificateLine LineOf(const CertsDirectory& directory, const std::string& stem,
                       const absl::StatusOr<std::string>& ca) {
  CertificateLine line = {.file = stem + ".crt"};
  const absl::StatusOr<std::string> text = ReadSmallFile(directory.Path(stem, ".crt"));
  const absl::StatusOr<CertificateFacts> facts =
      text.ok() ? ParseCertificate(*text) : absl::StatusOr<CertificateFacts>(text.status());
  if (!facts.ok()) {
    line.state = std::string(facts.status().message());
    return line;
  }
  line.ends = facts->ends;
  line.hosts = fmt::format("{}", fmt::join(facts->hosts, " "));
  const absl::Time now = absl::Now();
  absl::Status state =
      now > facts->ends ? absl::InvalidArgumentError("it has expired") : absl::OkStatus();
  const absl::StatusOr<std::string> key = ReadSmallFile(directory.Path(stem, ".key"));
  if (key.ok()) state.Update(CheckKey(*text, *key));
  if (facts->is_authority) {
    line.identity = "authority";
  } else {
    const absl::StatusOr<CertifiedIdentity> identity = IdentityAmong(facts->uris);
    if (identity.ok()) line.identity = identity->ToUri();
    state.Update(identity.status());
    if (ca.ok()) state.Update(VerifyCertificate(*ca, *text, TlsEnd::kClient, now));
  }
  if (!state.ok()) {
    line.state = std::string(state.message());
  } else if (EndsSoon(facts->begins, facts->ends, now)) {
    line.state = "ends soon";
  }
  return line;
}

std::string DayOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

/// Returns the authority of a directory, and makes it if neither of its files is there.
/// INVALID_ARGUMENT if it is another run's. Fails, too, if one of its files is missing: a new
/// authority would make the certificates that the old one has signed worthless.
absl::StatusOr<KeyedCertificate> AuthorityOf(const CertsDirectory& directory,
                                             const std::string& run) {
  const std::string certificate = directory.Path("ca", ".crt");
  if (!Exists(certificate) && !Exists(directory.Path("ca", ".key"))) {
    absl::Status written = directory.Write("ca", MakeAuthority(run, For(kAuthorityDays)));
    if (!written.ok()) return written;
    WriteToStderr(fmt::format("psctl: made {}: keep its key where no other machine can read it\n",
                              certificate));
  }
  absl::StatusOr<KeyedCertificate> authority = directory.ReadAuthority();
  if (!authority.ok()) return authority.status();
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(authority->certificate);
  if (!facts.ok()) return facts.status();
  const bool is_of_another = facts->subject.starts_with("CN=authority,OU=") &&
                             facts->subject != "CN=authority,OU=" + run + ",O=Slipstream";
  if (!is_of_another) return authority;
  return absl::InvalidArgumentError(
      fmt::format("{} is another run's authority ({}): take a directory of its own for the run {}",
                  certificate, facts->subject, run));
}

/// Returns OK if the existing certificate agrees with the planned one.
absl::Status CheckPlanned(const std::string& path, const PlannedCertificate& planned) {
  const absl::StatusOr<std::string> text = ReadSmallFile(path);
  if (!text.ok()) return text.status();
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(*text);
  if (!facts.ok()) {
    return absl::InvalidArgumentError(path + ": " + std::string(facts.status().message()));
  }
  const std::vector<std::string> uris = {planned.identity.ToUri()};
  if (facts->uris == uris && facts->hosts == planned.hosts) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "{} is for {} {}, and should be for {} {}: remove it and its key, and run this again", path,
      fmt::join(facts->uris, " "), fmt::join(facts->hosts, " "), uris.front(),
      fmt::join(planned.hosts, " ")));
}

/// Makes the files that are missing, and prints one line about each. Makes nothing if an existing
/// file contradicts the plan.
absl::Status MakeCertificates(const CertsDirectory& directory, const CertsPlan& plan,
                              uint32_t days) {
  for (const PlannedCertificate& planned : plan.certificates) {
    const std::string path = directory.Path(planned.FileStem(), ".crt");
    if (!Exists(path)) continue;
    if (absl::Status is_planned = CheckPlanned(path, planned); !is_planned.ok()) return is_planned;
  }
  const absl::StatusOr<KeyedCertificate> authority = AuthorityOf(directory, plan.run);
  if (!authority.ok()) return authority.status();
  for (const PlannedCertificate& planned : plan.certificates) {
    const std::string stem = planned.FileStem();
    const std::string path = directory.Path(stem, ".crt");
    if (Exists(path)) {
      WriteToStderr(fmt::format("psctl: {} is there already, and stays\n", path));
      continue;
    }
    const absl::StatusOr<KeyedCertificate> made =
        Certify(*authority, planned.identity, planned.hosts, For(days));
    if (!made.ok()) return made.status();
    if (absl::Status written = directory.Write(stem, *made); !written.ok()) return written;
    WriteToStderr(fmt::format("psctl: made {} for {}\n", path, planned.identity.ToUri()));
  }
  return absl::OkStatus();
}

/// Renews one member's certificate. INVALID_ARGUMENT if the file is not named after its member.
absl::Status RenewOne(const CertsDirectory& directory, const std::string& stem,
                      const KeyedCertificate& authority, uint32_t days) {
  const std::string path = directory.Path(stem, ".crt");
  const absl::StatusOr<std::string> old = ReadSmallFile(path);
  if (!old.ok()) return old.status();
  const absl::StatusOr<std::string> renewed = Renew(authority, *old, For(days));
  if (!renewed.ok()) return renewed.status();
  const absl::StatusOr<CertificateFacts> facts = ParseCertificate(*renewed);
  const absl::StatusOr<CertifiedIdentity> identity = IdentityAmong(facts->uris);
  if (MemberName(identity->role, identity->number) != stem) {
    return absl::InvalidArgumentError("it is for " + identity->ToUri() +
                                      ", and is not named after it");
  }
  if (absl::Status written = WriteWholeFile(path, *renewed); !written.ok()) return written;
  WriteToStderr(fmt::format("psctl: renewed {} until {}\n", path, DayOf(facts->ends)));
  return absl::OkStatus();
}

/// Lets only the owner read the files, from the moment at which they are created.
void KeepFilesPrivate() { umask(077); }

}  // namespace

int CertsInitCommand(const CertsInitArguments& arguments) {
  std::optional<RunSpec> spec;
  if (!arguments.config.empty()) {
    // The file may name certificates that are only made now, and servers off this machine need
    // them.
    const std::string ca = CertsDirectory(arguments.directory).Path("ca", ".crt");
    auto loaded =
        LoadConfigOrComplain({.path = arguments.config, .overrides = {"security.mtls.ca=" + ca}});
    if (const auto* code = std::get_if<ExitCode>(&loaded)) return static_cast<int>(*code);
    spec = std::get<RunSpec>(std::move(loaded));
  }
  const absl::StatusOr<CertsPlan> plan = PlanCerts(arguments, spec ? &*spec : nullptr);
  if (!plan.ok()) {
    return static_cast<int>(Complain(ExitCode::kUsage, std::string(plan.status().message())));
  }
  KeepFilesPrivate();
  std::error_code error;
  fs::create_directories(arguments.directory, error);
  if (error) {
    return EndWith(
        absl::NotFoundError("cannot create " + arguments.directory + ": " + error.message()));
  }
  const CertsDirectory directory(arguments.directory);
  const absl::Status made = MakeCertificates(directory, *plan, arguments.days);
  if (!made.ok()) return EndWith(made);
  fmt::print("security:\n  mtls:\n    ca: {}\n", directory.Path("ca", ".crt"));
  return static_cast<int>(ExitCode::kOk);
}

int CertsShowCommand(const CertsShowArguments& arguments) {
  const CertsDirectory directory(arguments.directory);
  const absl::StatusOr<std::vector<std::string>> stems = directory.Stems();
  if (!stems.ok()) return EndWith(stems.status());
  const absl::StatusOr<std::string> ca = ReadSmallFile(directory.Path("ca", ".crt"));
  std::vector<TableRow> rows;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  bool is_all_well = true;
  for (const std::string& stem : *stems) {
    const CertificateLine line = LineOf(directory, stem, ca);
    is_all_well = is_all_well && (line.state == "ok" || line.state == "ends soon");
    rows.push_back({line.file, line.identity, DayOf(line.ends), line.state, line.hosts});
    list.push_back({{"file", line.file},
                    {"identity", line.identity},
                    {"ends", absl::FormatTime(line.ends, absl::UTCTimeZone())},
                    {"state", line.state},
                    {"hosts", line.hosts}});
  }
  if (arguments.format == OutputFormat::kJson) {
    fmt::print("{}", JsonText(list));
  } else {
    fmt::print("{}", FormatTable({"file", "for", "ends", "state", "hosts"}, rows));
  }
  return static_cast<int>(is_all_well ? ExitCode::kOk : ExitCode::kConfiguration);
}

int CertsRenewCommand(const CertsRenewArguments& arguments) {
  KeepFilesPrivate();
  const CertsDirectory directory(arguments.directory);
  const absl::StatusOr<std::vector<std::string>> stems = directory.Stems();
  if (!stems.ok()) return EndWith(stems.status());
  const absl::StatusOr<KeyedCertificate> authority = directory.ReadAuthority();
  if (!authority.ok()) return EndWith(authority.status());
  bool is_all_renewed = true;
  for (const std::string& stem : *stems) {
    if (stem == "ca") continue;
    const absl::Status renewed = RenewOne(directory, stem, *authority, arguments.days);
    if (renewed.ok()) continue;
    is_all_renewed = false;
    WriteToStderr(fmt::format("psctl: warning: left {} as it is: {}\n",
                              directory.Path(stem, ".crt"), std::string(renewed.message())));
  }
  return static_cast<int>(is_all_renewed ? ExitCode::kOk : ExitCode::kConfiguration);
}

}  // namespace slipstream

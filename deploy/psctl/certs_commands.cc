#include "deploy/psctl/certs_commands.h"

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
#include "deploy/psctl/certs_plan.h"
#include "deploy/psctl/config_loading.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

// The clocks of two machines may differ by so much.
constexpr absl::Duration kClockDifference = absl::Hours(1);

constexpr uint32_t kAuthorityDays = 3650;

Validity For(uint32_t days) {
  const absl::Time now = absl::Now();
  return {.begins = now - kClockDifference, .ends = now + absl::Hours(24) * days};
}

int Fail(const absl::Status& status) {
  return static_cast<int>(Complain(ExitCodeFor(status), std::string(status.message())));
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The directory and what stands in it.
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

  /// The names of the certificates without their ending, the authority's first.
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

/// What a line about a certificate says.
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
  } else if (facts->ends - now < absl::Hours(24 * kRenewalDays)) {
    line.state = "ends soon";
  }
  return line;
}

std::string DayOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

/// Makes what is not there; says in one line for each file what became of it.
absl::Status MakeCertificates(const CertsDirectory& directory, const CertsPlan& plan,
                              uint32_t days) {
  if (!Exists(directory.Path("ca", ".crt"))) {
    absl::Status written = directory.Write("ca", MakeAuthority(plan.run, For(kAuthorityDays)));
    if (!written.ok()) return written;
    WriteToStderr(fmt::format("psctl: made {}: keep its key where no other machine can read it\n",
                              directory.Path("ca", ".crt")));
  }
  const absl::StatusOr<KeyedCertificate> authority = directory.ReadAuthority();
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

/// Files are for their owner alone from the beginning.
void KeepFilesPrivate() { umask(077); }

}  // namespace

int CertsInitCommand(const CertsInitArguments& arguments) {
  std::optional<RunSpec> spec;
  if (!arguments.config.empty()) {
    auto loaded = LoadConfigOrComplain({.path = arguments.config, .overrides = {}});
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
    return Fail(
        absl::NotFoundError("cannot create " + arguments.directory + ": " + error.message()));
  }
  const CertsDirectory directory(arguments.directory);
  const absl::Status made = MakeCertificates(directory, *plan, arguments.days);
  if (!made.ok()) return Fail(made);
  fmt::print("security:\n  mtls:\n    ca: {}\n", directory.Path("ca", ".crt"));
  return static_cast<int>(ExitCode::kOk);
}

int CertsShowCommand(const CertsShowArguments& arguments) {
  const CertsDirectory directory(arguments.directory);
  const absl::StatusOr<std::vector<std::string>> stems = directory.Stems();
  if (!stems.ok()) return Fail(stems.status());
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
  if (!stems.ok()) return Fail(stems.status());
  const absl::StatusOr<KeyedCertificate> authority = directory.ReadAuthority();
  if (!authority.ok()) return Fail(authority.status());
  for (const std::string& stem : *stems) {
    if (stem == "ca") continue;
    const std::string path = directory.Path(stem, ".crt");
    const absl::StatusOr<std::string> old = ReadSmallFile(path);
    if (!old.ok()) return Fail(old.status());
    const absl::StatusOr<std::string> renewed = Renew(*authority, *old, For(arguments.days));
    absl::Status done = renewed.status();
    if (done.ok()) done = WriteWholeFile(path, *renewed);
    if (!done.ok()) {
      return Fail({done.code(), fmt::format("{}: {}", path, std::string(done.message()))});
    }
    WriteToStderr(
        fmt::format("psctl: renewed {} until {}\n", path, DayOf(ParseCertificate(*renewed)->ends)));
  }
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace slipstream

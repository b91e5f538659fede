// make_certificate DIR STEM URI FROM_HOURS TO_HOURS [HOST]...: makes STEM.crt and STEM.key in DIR
// for the member that URI names, signed by DIR/ca.crt. The certificate is valid between the two
// times, in hours from now. The authority is made if DIR/ca.crt does not exist. Tests use it for
// certificates that `psctl certs` does not make.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/files/whole_file.h"
#include "common/security/authority.h"
#include "common/security/certificate.h"

namespace slipstream {
namespace {

Validity Hours(const char* from, const char* to) {
  const absl::Time now = absl::Now();
  return {.begins = now + absl::Hours(std::atof(from)), .ends = now + absl::Hours(std::atof(to))};
}

absl::Status Write(const std::string& path, const KeyedCertificate& made) {
  absl::Status written = WriteWholeFile(path + ".key", made.key);
  written.Update(WriteWholeFile(path + ".crt", made.certificate));
  return written;
}

absl::Status Make(char** arguments, int count) {
  const std::string ca = std::string(arguments[0]) + "/ca";
  const std::optional<CertifiedIdentity> identity = ParseIdentity(arguments[2]);
  if (!identity.has_value()) return absl::InvalidArgumentError("the URI names no member");
  if (!std::filesystem::exists(ca + ".crt")) {
    absl::Status written = Write(ca, MakeAuthority(identity->run, Hours("-48", "48")));
    if (!written.ok()) return written;
  }
  const KeyedCertificate authority = {.key = *ReadSmallFile(ca + ".key"),
                                      .certificate = *ReadSmallFile(ca + ".crt")};
  const absl::StatusOr<KeyedCertificate> made =
      Certify(authority, *identity, std::vector<std::string>(arguments + 5, arguments + count),
              Hours(arguments[3], arguments[4]));
  if (!made.ok()) return made.status();
  return Write(std::string(arguments[0]) + "/" + arguments[1], *made);
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: make_certificate DIR STEM URI FROM_HOURS TO_HOURS [HOST]...\n");
    return 2;
  }
  const absl::Status made = slipstream::Make(argv + 1, argc - 1);
  if (!made.ok()) std::fprintf(stderr, "%s\n", made.ToString().c_str());
  return made.ok() ? 0 : 1;
}

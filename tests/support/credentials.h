#ifndef SLIPSTREAM_TESTS_SUPPORT_CREDENTIALS_H_
#define SLIPSTREAM_TESTS_SUPPORT_CREDENTIALS_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/security/authority.h"
#include "common/security/credential_files.h"

namespace slipstream {

/// An authority, and the files of the members that it certifies, in a directory of the test's own.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "certs")
      : folder_(std::filesystem::path(testing::TempDir()) /
                (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + "-" +
                 name)),
        authority_(MakeAuthority("mnist", Around(absl::Hours(48)))) {
    std::filesystem::create_directories(folder_);
    Write("ca.crt", authority_.certificate);
  }

  /// Returns a validity that began an hour ago and is `length` long.
  static Validity Around(absl::Duration length) {
    return {.begins = absl::Now() - absl::Hours(1), .ends = absl::Now() - absl::Hours(1) + length};
  }

  /// Certifies the member that `uri` names, on localhost, and returns its files.
  CredentialFiles FilesOf(const std::string& uri,
                          const Validity& validity = Around(absl::Hours(24))) const {
    const absl::StatusOr<KeyedCertificate> made =
        Certify(authority_, *ParseIdentity(uri), {"localhost", "127.0.0.1"}, validity);
    EXPECT_TRUE(made.ok()) << made.status();
    std::string stem = uri.substr(uri.find("run/") + 4);
    for (char& c : stem) c = c == '/' || c == '*' ? '-' : c;
    return {.ca = Path("ca.crt"),
            .certificate = Write(stem + ".crt", made->certificate),
            .key = Write(stem + ".key", made->key),
            .token = ""};
  }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }

  std::string Path(const std::string& name) const { return folder_ / name; }
  const KeyedCertificate& authority() const { return authority_; }

 private:
  const std::filesystem::path folder_;
  const KeyedCertificate authority_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_CREDENTIALS_H_

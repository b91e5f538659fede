#include "common/security/credential_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/time/clock.h"
#include "tests/support/credentials.h"

namespace slipstream {
namespace {

using testing::HasSubstr;

constexpr CredentialHolder kServer0 = {CertifiedRole::kServer, 0};
constexpr CredentialHolder kWorker3 = {CertifiedRole::kWorker, 3};
constexpr CredentialHolder kAnyWorker = {CertifiedRole::kWorker, std::nullopt};
constexpr CredentialHolder kPsctl = {CertifiedRole::kOperator, std::nullopt};

SecuritySpec Security(const std::string& ca) {
  SecuritySpec security;
  security.mtls.ca = ca;
  return security;
}

TEST(CredentialFilesTest, LieBesideTheAuthoritysUnderTheMembersName) {
  const SecuritySpec security = Security("certs/ca.crt");
  EXPECT_EQ(FilesFor(security, kServer0).certificate, "certs/server-0.crt");
  EXPECT_EQ(FilesFor(security, kWorker3).key, "certs/worker-3.key");
  EXPECT_EQ(FilesFor(security, kAnyWorker).certificate, "certs/worker.crt");
  EXPECT_EQ(FilesFor(security, kPsctl).certificate, "certs/operator.crt");
  EXPECT_EQ(FilesFor(Security("ca.crt"), kPsctl).certificate, "operator.crt");
  EXPECT_FALSE(FilesFor(SecuritySpec(), kServer0).is_encrypted());
}

TEST(CredentialFilesTest, PathsMayNameTheMember) {
  SecuritySpec security = Security("/etc/{member}/ca.crt");
  security.mtls.certificate = "/etc/{member}/tls.crt";
  security.mtls.key = "/etc/keys/{member}-{member}";
  const CredentialFiles files = FilesFor(security, kWorker3);
  EXPECT_EQ(files.ca, "/etc/worker-3/ca.crt");
  EXPECT_EQ(files.certificate, "/etc/worker-3/tls.crt");
  EXPECT_EQ(files.key, "/etc/keys/worker-3-worker-3");
}

TEST(CredentialFilesTest, AClientWithATokenNeedsNoCertificate) {
  SecuritySpec security = Security("certs/ca.crt");
  security.token = "certs/token";
  EXPECT_EQ(FilesFor(security, kWorker3).certificate, "");
  EXPECT_EQ(FilesFor(security, kWorker3).token, "certs/token");
  EXPECT_EQ(FilesFor(security, kServer0).certificate, "certs/server-0.crt");
  security.mtls.certificate = "certs/{member}.crt";
  EXPECT_EQ(FilesFor(security, kWorker3).certificate, "certs/worker-3.crt");
}

class CheckCredentialsTest : public testing::Test {
 protected:
  static std::string Complaint(const CredentialFiles& files, const CredentialHolder& holder,
                               absl::Time now = absl::Now()) {
    return std::string(CheckCredentials(files, holder, now).status().message());
  }

  const TestAuthority authority_;
};

TEST_F(CheckCredentialsTest, TakesWhatFits) {
  const CredentialFiles files = authority_.FilesOf("slipstream://run/mnist/worker/3");
  const absl::StatusOr<OwnCredentials> own = CheckCredentials(files, kWorker3, absl::Now());
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->identity->ToUri(), "slipstream://run/mnist/worker/3");
  EXPECT_TRUE(CheckCredentials(files, kAnyWorker, absl::Now()).ok());
  EXPECT_TRUE(CheckCredentials(files, kPsctl, absl::Now()).ok()) << "any member may look";
  const CredentialFiles any = authority_.FilesOf("slipstream://run/mnist/worker/*");
  EXPECT_TRUE(CheckCredentials(any, kWorker3, absl::Now()).ok());
  EXPECT_TRUE(CheckCredentials(CredentialFiles(), kWorker3, absl::Now()).ok());
}

TEST_F(CheckCredentialsTest, NamesTheFileAndWhatIsWrong) {
  const CredentialFiles good = authority_.FilesOf("slipstream://run/mnist/worker/3");
  CredentialFiles files = good;
  files.ca = "/nowhere/ca.crt";
  EXPECT_THAT(Complaint(files, kWorker3), HasSubstr("cannot read /nowhere/ca.crt"));
  files = good;
  files.ca = files.key;
  EXPECT_THAT(Complaint(files, kWorker3), HasSubstr(files.key + ": there is no certificate"));
  files = good;
  files.certificate = "/nowhere/worker-3.crt";
  EXPECT_THAT(Complaint(files, kWorker3),
              testing::AllOf(HasSubstr("/nowhere/worker-3.crt"), HasSubstr("psctl certs init")));
  files = good;
  files.key = authority_.FilesOf("slipstream://run/mnist/worker/4").key;
  EXPECT_THAT(Complaint(files, kWorker3), HasSubstr(files.key + ": the key is another"));
  EXPECT_THAT(Complaint(good, {CertifiedRole::kWorker, 4}),
              HasSubstr("is for slipstream://run/mnist/worker/3, and this is worker-4"));
  EXPECT_THAT(Complaint(good, kServer0), HasSubstr("purpose"));
  EXPECT_THAT(Complaint(good, kWorker3, absl::Now() + absl::Hours(24 * 30)), HasSubstr("expired"));
  const TestAuthority other("other");
  files = good;
  files.ca = other.Path("ca.crt");
  EXPECT_THAT(Complaint(files, kWorker3),
              HasSubstr("must be signed by the authority in " + files.ca));
}

TEST_F(CheckCredentialsTest, FindsSecretsThatOthersCanRead) {
  const CredentialFiles files = authority_.FilesOf("slipstream://run/mnist/worker/3");
  std::filesystem::permissions(files.key, std::filesystem::perms::owner_read);
  EXPECT_TRUE(CheckCredentials(files, kWorker3, absl::Now())->open_files.empty());
  std::filesystem::permissions(files.key, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  EXPECT_THAT(CheckCredentials(files, kWorker3, absl::Now())->open_files,
              testing::ElementsAre(files.key));
}

TEST(EndsSoonTest, IsTheLastThirdOfItsTimeAndAtMostTwoWeeks) {
  const absl::Time begins = absl::UnixEpoch();
  const absl::Duration day = absl::Hours(24);
  EXPECT_FALSE(EndsSoon(begins, begins + 365 * day, begins + 350 * day));
  EXPECT_TRUE(EndsSoon(begins, begins + 365 * day, begins + 352 * day));
  EXPECT_FALSE(EndsSoon(begins, begins + 6 * day, begins + 3 * day));
  EXPECT_TRUE(EndsSoon(begins, begins + 6 * day, begins + 5 * day));
}

TEST_F(CheckCredentialsTest, ReadsTheToken) {
  CredentialFiles files = {.ca = authority_.Path("ca.crt"),
                           .certificate = "",
                           .key = "",
                           .token = authority_.Write("token", "0123456789abcdef\n")};
  const absl::StatusOr<OwnCredentials> own = CheckCredentials(files, kWorker3, absl::Now());
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_FALSE(own->identity.has_value());
  files.token = authority_.Write("short", "secret\n");
  EXPECT_THAT(Complaint(files, kWorker3),
              testing::AllOf(HasSubstr("short:1: a token has 16 to 256"),
                             testing::Not(HasSubstr("secret"))));
}

}  // namespace
}  // namespace slipstream

#include "common/security/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "common/security/certificate.h"

namespace slipstream {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const CertifiedIdentity kServer = {"mnist", CertifiedRole::kServer, 1};
const CertifiedIdentity kWorker = {"mnist", CertifiedRole::kWorker, 3};

Validity Days(int days) {
  const absl::Time now = absl::Now();
  return {.begins = now - absl::Hours(1), .ends = now + days * absl::Hours(24)};
}

absl::Status Verify(const KeyedCertificate& authority, const KeyedCertificate& member, TlsEnd end,
                    absl::Time now = absl::Now()) {
  return VerifyCertificate(authority.certificate, member.certificate, end, now);
}

TEST(AuthorityTest, CertifiesWhomItIsToldTo) {
  const KeyedCertificate authority = MakeAuthority("mnist", Days(3650));
  const KeyedCertificate server =
      *Certify(authority, kServer, {"ps-1", "10.0.0.5", "::1"}, Days(365));

  const CertificateFacts facts = *ParseCertificate(server.certificate);
  EXPECT_THAT(facts.uris, ElementsAre("slipstream://run/mnist/server/1"));
  EXPECT_THAT(facts.hosts, ElementsAre("ps-1", "10.0.0.5", "::1"));
  EXPECT_EQ(facts.subject, "CN=server-1,OU=mnist,O=Slipstream");
  EXPECT_FALSE(facts.is_authority);
  EXPECT_LT(absl::AbsDuration(facts.ends - Days(365).ends), absl::Minutes(1));
  EXPECT_TRUE(ParseCertificate(authority.certificate)->is_authority);
  EXPECT_TRUE(CheckKey(server.certificate, server.key).ok());
  for (const char* host : {"ps-1", "10.0.0.5", "::1", "[::1]"}) {
    EXPECT_TRUE(CheckHost(server.certificate, host).ok()) << host;
  }
  for (const char* host : {"ps-11", "10.0.0.6", "", "1.ps-1"}) {
    EXPECT_FALSE(CheckHost(server.certificate, host).ok()) << host;
  }
}

TEST(AuthorityTest, OnlyServersMayBeServers) {
  const KeyedCertificate authority = MakeAuthority("mnist", Days(3650));
  const KeyedCertificate server = *Certify(authority, kServer, {"ps-1"}, Days(365));
  const KeyedCertificate worker = *Certify(authority, kWorker, {}, Days(365));

  EXPECT_TRUE(Verify(authority, server, TlsEnd::kServer).ok());
  EXPECT_TRUE(Verify(authority, server, TlsEnd::kClient).ok());
  EXPECT_TRUE(Verify(authority, worker, TlsEnd::kClient).ok());
  EXPECT_THAT(Verify(authority, worker, TlsEnd::kServer).message(), HasSubstr("purpose"));
}

TEST(AuthorityTest, CertificatesHoldForTheirTimeAndTheirAuthority) {
  const KeyedCertificate authority = MakeAuthority("mnist", Days(30));
  const KeyedCertificate other = MakeAuthority("mnist", Days(30));
  const KeyedCertificate worker = *Certify(authority, kWorker, {}, Days(10));

  EXPECT_FALSE(Verify(other, worker, TlsEnd::kClient).ok());
  EXPECT_THAT(
      Verify(authority, worker, TlsEnd::kClient, absl::Now() + 11 * absl::Hours(24)).message(),
      HasSubstr("expired"));
  EXPECT_THAT(Verify(authority, worker, TlsEnd::kClient, absl::Now() - absl::Hours(2)).message(),
              HasSubstr("not yet valid"));
  // A certificate does not outlive its authority.
  const KeyedCertificate longer = *Certify(authority, kWorker, {}, Days(365));
  EXPECT_EQ(ParseCertificate(longer.certificate)->ends,
            ParseCertificate(authority.certificate)->ends);
  // A member is not an authority.
  const auto forged = Certify(worker, kServer, {"ps-1"}, Days(10));
  EXPECT_THAT(forged.status().message(), HasSubstr("no authority"));
}

TEST(AuthorityTest, RenewsForTheSameKey) {
  const KeyedCertificate authority = MakeAuthority("mnist", Days(3650));
  const KeyedCertificate server = *Certify(authority, kServer, {"ps-1", "10.0.0.5"}, Days(1));

  const std::string renewed = *Renew(authority, server.certificate, Days(365));

  EXPECT_TRUE(CheckKey(renewed, server.key).ok());
  const CertificateFacts before = *ParseCertificate(server.certificate);
  const CertificateFacts after = *ParseCertificate(renewed);
  EXPECT_EQ(after.uris, before.uris);
  EXPECT_EQ(after.hosts, before.hosts);
  EXPECT_EQ(after.subject, before.subject);
  EXPECT_NE(renewed, server.certificate);
  EXPECT_GT(after.ends, before.ends + absl::Hours(24 * 300));
  EXPECT_TRUE(VerifyCertificate(authority.certificate, renewed, TlsEnd::kServer, absl::Now()).ok());
}

TEST(AuthorityTest, RenewsOnlyWhatItHasSigned) {
  const KeyedCertificate authority = MakeAuthority("mnist", Days(3650));
  const KeyedCertificate other = MakeAuthority("mnist", Days(3650));
  const KeyedCertificate forged = *Certify(other, kServer, {"ps-1"}, Days(365));
  EXPECT_THAT(Renew(authority, forged.certificate, Days(365)).status().message(),
              HasSubstr("another authority has signed it"));
}

TEST(AuthorityTest, SaysWhatCannotBeRead) {
  const KeyedCertificate authority = MakeAuthority("mnist", Days(3650));
  EXPECT_THAT(ParseCertificate("").status().message(), HasSubstr("no certificate"));
  EXPECT_THAT(ParseCertificate(authority.key).status().message(), HasSubstr("no certificate"));
  EXPECT_THAT(CheckKey(authority.certificate, "x").message(), HasSubstr("no private key"));
  EXPECT_THAT(CheckKey(authority.certificate, MakeAuthority("mnist", Days(1)).key).message(),
              HasSubstr("another certificate's"));
  EXPECT_FALSE(Certify({.key = "x", .certificate = "y"}, kWorker, {}, Days(1)).ok());
  EXPECT_FALSE(Renew(authority, authority.certificate, Days(1)).ok());
  EXPECT_THAT(ReadSmallFile("/nowhere/at/all").status().message(),
              HasSubstr("/nowhere/at/all: No such file"));
  EXPECT_THAT(ReadSmallFile("/").status().message(), HasSubstr("directory"));
}

}  // namespace
}  // namespace slipstream

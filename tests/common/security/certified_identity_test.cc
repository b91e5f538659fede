#include "common/security/certified_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slipstream {
namespace {

using testing::HasSubstr;

TEST(CertifiedIdentityTest, ReadsWhatItWrites) {
  for (const char* uri : {"slipstream://run/mnist/server/0", "slipstream://run/mnist/worker/3",
                          "slipstream://run/mnist/worker/*", "slipstream://run/a.b_c-D9/operator",
                          "slipstream://run/mnist/viewer"}) {
    const std::optional<CertifiedIdentity> identity = ParseIdentity(uri);
    ASSERT_TRUE(identity.has_value()) << uri;
    EXPECT_EQ(identity->ToUri(), uri);
  }
}

TEST(CertifiedIdentityTest, TakesTheUriToTheLetter) {
  for (const char* uri : {"",
                          "slipstream:",
                          "slipstream://run/",
                          "slipstream://run/mnist",
                          "slipstream://run/mnist/",
                          "slipstream://run/mnist/server",
                          "slipstream://run/mnist/server/",
                          "slipstream://run/mnist/server/*",
                          "slipstream://run/mnist/server/-1",
                          "slipstream://run/mnist/server/01",
                          "slipstream://run/mnist/server/0/",
                          "slipstream://run/mnist/worker",
                          "slipstream://run/mnist/worker/",
                          "slipstream://run/mnist/worker/3x",
                          "slipstream://run/mnist/worker/ 3",
                          "slipstream://run/mnist/worker/4294967299",
                          "slipstream://run/mnist/worker/**",
                          "slipstream://run/mnist/operator/1",
                          "slipstream://run/mnist/operator/",
                          "slipstream://run/mnist/admin",
                          "slipstream://run//worker/3",
                          "slipstream://run/a b/viewer",
                          "slipstream://run/mnist/Worker/3",
                          "Slipstream://run/mnist/worker/3",
                          "slipstream://other/mnist/worker/3",
                          "https://run/mnist/worker/3"}) {
    EXPECT_FALSE(ParseIdentity(uri).has_value()) << uri;
  }
  EXPECT_FALSE(ParseIdentity("slipstream://run/" + std::string(65, 'a') + "/viewer").has_value());
}

TEST(CertifiedIdentityTest, FindsTheOneIdentityAmongUris) {
  const auto found =
      IdentityAmong({"https://example.com/", "slipstream://run/mnist/worker/3", "spiffe://x/y"});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->ToUri(), "slipstream://run/mnist/worker/3");

  EXPECT_THAT(IdentityAmong({"https://example.com/"}).status().message(),
              HasSubstr("names no role"));
  EXPECT_THAT(IdentityAmong({"slipstream://run/mnist/worker/3", "slipstream://run/mnist/operator"})
                  .status()
                  .message(),
              HasSubstr("names two roles"));
  EXPECT_THAT(IdentityAmong({"slipstream://run/mnist/worker/3", "slipstream://run/mnist/king"})
                  .status()
                  .message(),
              HasSubstr("slipstream://run/mnist/king names no role"));
}

}  // namespace
}  // namespace slipstream

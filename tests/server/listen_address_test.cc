#include "server/listen_address.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(ListenAddressTest, LoopbackNeedsNoConsent) {
  for (const char* text : {"localhost:7070", "127.0.0.1:7070", "[::1]:7070"}) {
    SCOPED_TRACE(text);
    const auto address = ParseListenAddress(text, text, false);

    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
    EXPECT_EQ(address->PublicAddress(7070), text);
  }
}

TEST(ListenAddressTest, AnyOtherAddressNeedsTheRiskAccepted) {
  for (const char* text : {"0.0.0.0:7070", "[::]:7070", "10.0.0.1:7070", "server-0:7070"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(ParseListenAddress(text, text, false).ok());
    EXPECT_TRUE(ParseListenAddress(text, text, true).ok());
  }
}

TEST(ListenAddressTest, PortZeroLetsTheSystemChoose) {
  const auto address = ParseListenAddress("localhost:0", "localhost:7070", false);

  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->ToString(), "localhost:0");
  EXPECT_EQ(address->PublicAddress(40123), "localhost:40123");
}

TEST(ListenAddressTest, AServerThatListensEverywhereIsReachedByItsConfiguredName) {
  const auto address = ParseListenAddress("0.0.0.0:0", "server-1.example:7070", true);

  ASSERT_TRUE(address.ok()) << address.status();
  EXPECT_EQ(address->PublicAddress(40123), "server-1.example:40123");
}

TEST(ListenAddressTest, RefusesWhatIsNoAddress) {
  for (const char* text : {"", ":0", "localhost", "localhost:", "localhost:x", "localhost:70707"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(ParseListenAddress(text, "localhost:7070", true).ok());
  }
}

}  // namespace
}  // namespace slipstream

#include "server/listen/peer_name.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(PeerNameTest, ReadsWhatGrpcNamesAPeerBy) {
  EXPECT_EQ(TextOf(PeerNameOf("ipv4:192.0.2.1:7070")), "192.0.2.1:7070");
  EXPECT_EQ(TextOf(PeerNameOf("ipv6:%5B2001:db8::1%5D:7070")), "[2001:db8::1]:7070");
  EXPECT_EQ(TextOf(PeerNameOf("ipv6:[fe80::1%25eth0]:1")), "[fe80::1]:1");
  EXPECT_EQ(PeerNameOf("ipv6:[::ffff:192.0.2.1]:7070"), PeerNameOf("ipv4:192.0.2.1:7070"));
}

TEST(PeerNameTest, IsEmptyForWhatIsNoConnectionOverTcp) {
  for (const char* peer : {"", "unix:/tmp/socket", "fd:7", "ipv4:", "ipv4:192.0.2.1", "ipv4:x:1",
                           "ipv6:", "ipv6:::1:1", "ipv6:[::1:1", "ipv6:[]:1", "ipv4:1.2.3.4:x",
                           "ipv4:1.2.3.4:80%3", "ipv6:%5B::1%5D"}) {
    EXPECT_EQ(PeerNameOf(peer).first, "") << peer;
  }
}

}  // namespace
}  // namespace slipstream

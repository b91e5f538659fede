#include "common/config/server_address.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

bool IsLoopback(std::string_view text) { return ParseServerAddress(text)->IsLoopback(); }

TEST(ServerAddressTest, OnlyTheMachineItselfIsLoopback) {
  EXPECT_TRUE(IsLoopback("localhost:1"));
  EXPECT_TRUE(IsLoopback("LocalHost:1"));
  EXPECT_TRUE(IsLoopback("127.0.0.1:1"));
  EXPECT_TRUE(IsLoopback("127.255.255.254:1"));
  EXPECT_TRUE(IsLoopback("[::1]:1"));

  EXPECT_FALSE(IsLoopback("0.0.0.0:1"));
  EXPECT_FALSE(IsLoopback("128.0.0.1:1"));
  EXPECT_FALSE(IsLoopback("127.0.0.256:1"));
  EXPECT_FALSE(IsLoopback("127.0.0.example:1"));
  EXPECT_FALSE(IsLoopback("127.0.0.1.example.org:1"));
  EXPECT_FALSE(IsLoopback("localhost.example.org:1"));
  EXPECT_FALSE(IsLoopback("[::]:1"));
}

TEST(ServerAddressTest, ReadsHostAndPort) {
  const auto address = ParseServerAddress("Node-1.Example.org:65535");

  ASSERT_TRUE(address);
  EXPECT_EQ(address->host, "node-1.example.org");
  EXPECT_EQ(address->port, 65535);
}

TEST(ServerAddressTest, RefusesWhatIsNotHostAndPort) {
  for (const char* text :
       {"",        ":",       "host",    "host:", ":1",    "host:0", "host:65536",
        "host:-1", "host:1x", "host:01", "::1:1", "[::1]", "[]:1",   "[:1",
        "[::1:1",  "a b:1",   "a..b:1",  ".a:1",  "a/b:1", "a@b:1"}) {
    EXPECT_FALSE(ParseServerAddress(text)) << text;
  }
}

}  // namespace
}  // namespace slipstream

#include "deploy/psctl/run/cluster.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(ClusterTest, ReadsAPortWithOrWithoutItsHost) {
  EXPECT_EQ(ParsePortFile("41234\n"), "127.0.0.1:41234");
  EXPECT_EQ(ParsePortFile("127.0.0.1:41234"), "127.0.0.1:41234");
  EXPECT_EQ(ParsePortFile("[::1]:80\n"), "[::1]:80");
  EXPECT_EQ(ParsePortFile("node1:80\n"), "node1:80");
}

TEST(ClusterTest, WaitsWhileThereIsNoPort) {
  for (const char* contents : {"", "\n", "0\n", "70000\n", "port\n", "12 \n", "127.0.0.1:"}) {
    EXPECT_FALSE(ParsePortFile(contents).has_value()) << "contents '" << contents << "'";
  }
}

}  // namespace
}  // namespace slipstream

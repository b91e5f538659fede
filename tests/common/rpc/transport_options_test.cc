#include "common/rpc/transport_options.h"

#include <grpc/grpc.h>
#include <grpcpp/support/channel_arguments.h>
#include <gtest/gtest.h>

#include <string>

namespace slipstream {
namespace {

// gRPC's own value is 30 s. A server that keeps its name and gets another address would be found
// when the calls to it are given up.
TEST(TransportOptionsTest, NamesAreLookedUpAgainAfterASecond) {
  const grpc::ChannelArguments arguments = ClientArguments();
  const grpc_channel_args all = arguments.c_channel_args();
  int milliseconds = 0;
  for (size_t i = 0; i < all.num_args; ++i) {
    const bool is_it = std::string(all.args[i].key) == GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS;
    if (is_it) milliseconds = all.args[i].value.integer;
  }

  EXPECT_EQ(milliseconds, 1000);
}

}  // namespace
}  // namespace slipstream

#include "deploy/psctl/operator_client.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "common/process/exit_code.h"
#include "proto/shard.grpc.pb.h"

namespace slipstream {
namespace {

// The patience is generous: only a broken client takes that long.
constexpr absl::Duration kPatience = absl::Seconds(30);

TEST(OperatorClientTest, SaysWhatToDoWhereAServerIsNoCoordinator) {
  v1::Shard::Service shard;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&shard);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const std::string address = "127.0.0.1:" + std::to_string(port);

  const auto status = OperatorClient(address, grpc::InsecureChannelCredentials())
                          .GetStatus(kPatience, IfRefused::kWait);

  EXPECT_EQ(ExitCodeFor(status.status()), ExitCode::kConfiguration);
  EXPECT_EQ(std::string(status.status().message()),
            "no coordinator at " + address +
                ": it is with the first of cluster.servers, which --coordinator names");
}

TEST(OperatorClientTest, LetsNoPeerWriteToTheTerminal) {
  const OperatorClient client("n:1", grpc::InsecureChannelCredentials());

  EXPECT_EQ(std::string(client.Explain(absl::InternalError("\x1b[2J\nok")).message()),
            "the coordinator at n:1 answered: \uFFFD[2J ok");
}

}  // namespace
}  // namespace slipstream

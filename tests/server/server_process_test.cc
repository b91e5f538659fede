#include "server/server_process.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>

#include "common/process/stop_signal.h"
#include "proto/coordinator.grpc.pb.h"
#include "proto/operation.grpc.pb.h"

namespace slipstream {
namespace {

ServerProcess::Options OnFreePort() {
  ServerProcess::Options options;
  options.run.cluster.servers = {"localhost:7070"};
  options.listen = *ParseListenAddress("127.0.0.1:0", "localhost:7070", false);
  return options;
}

std::shared_ptr<grpc::Channel> ChannelTo(const ServerProcess& process) {
  return grpc::CreateChannel(process.address(), grpc::InsecureChannelCredentials());
}

grpc::ByteBuffer Bytes(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

std::string Text(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(bytes.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) text.append(slice.begin(), slice.end());
  return text;
}

TEST(ServerProcessTest, ShardZeroServesTheCoordinator) {
  ServerProcess process(OnFreePort());
  ASSERT_TRUE(process.Listen().ok());
  const auto stub = v1::Coordinator::NewStub(ChannelTo(process));
  grpc::ClientContext context;
  v1::RunStatus status;

  ASSERT_TRUE(stub->GetStatus(&context, {}, &status).ok());

  EXPECT_EQ(status.phase(), v1::WAITING_FOR_SERVERS);
  EXPECT_NE(status.run(), 0u);
}

TEST(ServerProcessTest, AnAggregatorHasNeitherCoordinatorNorPushLog) {
  ServerProcess::Options options = OnFreePort();
  options.run.cluster.workers = 2;
  options.run.cluster.tree.fanout = 2;
  options.run.log.push_log = testing::TempDir() + "/no-logs";
  options.group = 0;
  EXPECT_EQ(options.number(), 1u);
  ServerProcess process(options);
  ASSERT_TRUE(process.Listen().ok());
  grpc::ClientContext context;
  v1::RunStatus status;

  const grpc::Status asked =
      v1::Coordinator::NewStub(ChannelTo(process))->GetStatus(&context, {}, &status);

  EXPECT_EQ(asked.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_FALSE(std::filesystem::exists(options.run.log.push_log));
  EXPECT_TRUE(process.Finish().ok());
}

TEST(ServerProcessTest, DrainsAndEndsWhenAnOperatorAsks) {
  ServerProcess process(OnFreePort());
  ASSERT_TRUE(process.Listen().ok());
  const StopSignal stop;
  const std::string address = process.address();
  std::thread operating([address] {
    grpc::ClientContext context;
    v1::DrainReply reply;
    const auto stub =
        v1::Operation::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
    EXPECT_TRUE(stub->Drain(&context, {}, &reply).ok());
    EXPECT_FALSE(reply.has_checkpoint());
  });

  EXPECT_TRUE(process.Serve(stop).ok());
  EXPECT_TRUE(process.Finish().ok());

  operating.join();
}

TEST(ServerProcessTest, AnswersHealthChecks) {
  ServerProcess process(OnFreePort());
  ASSERT_TRUE(process.Listen().ok());
  grpc::GenericStub stub(ChannelTo(process));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const auto call =
      stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check", Bytes(""), &queue);
  grpc::ByteBuffer reply;
  grpc::Status status;

  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));

  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Text(reply), "\x08\x01") << "not SERVING";
}

TEST(ServerProcessTest, NamesItsServicesToReflection) {
  ServerProcess process(OnFreePort());
  ASSERT_TRUE(process.Listen().ok());
  grpc::GenericStub stub(ChannelTo(process));
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  void* tag = nullptr;
  bool ok = false;
  call->StartCall(nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);

  // A list_services request (field 7) with an arbitrary value.
  call->Write(Bytes(std::string("\x3a\x01*")), nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok) && ok);

  for (const char* service :
       {"slipstream.v1.Coordinator", "slipstream.v1.Operation", "slipstream.v1.Shard"}) {
    EXPECT_NE(Text(reply).find(service), std::string::npos) << service;
  }
  context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  ASSERT_TRUE(queue.Next(&tag, &ok));
}

TEST(ServerProcessTest, SaysThatItsAddressIsInUse) {
  ServerProcess first(OnFreePort());
  ASSERT_TRUE(first.Listen().ok());
  ServerProcess::Options options = OnFreePort();
  options.listen = *ParseListenAddress(first.address(), "localhost:7070", false);
  ServerProcess second(options);

  const absl::Status refused = second.Listen();

  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  const std::string message(refused.message());
  EXPECT_NE(message.find("Address already in use; cluster.servers[0] is "), std::string::npos)
      << message;
  EXPECT_NE(message.find("listen elsewhere with --listen HOST:PORT"), std::string::npos) << message;
}

TEST(ServerProcessTest, ASecondServerLeavesTheFirstOnesPushLogAlone) {
  ServerProcess::Options options = OnFreePort();
  options.run.log.push_log = testing::TempDir() + "/logs";
  ServerProcess first(options);
  ASSERT_TRUE(first.Listen().ok());
  ServerProcess second(options);

  const absl::Status refused = second.Listen();

  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("push-log-0.csv is written by another process"),
            std::string::npos)
      << refused;
}

}  // namespace
}  // namespace slipstream

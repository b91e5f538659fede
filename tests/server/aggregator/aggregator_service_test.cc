#include "server/aggregator/aggregator_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "common/layout/tensor_layout.h"
#include "proto/coordinator.pb.h"
#include "proto/shard.grpc.pb.h"
#include "server/aggregator/shard_uplinks.h"
#include "tests/server/aggregator/aggregator_fixture.h"
#include "tests/support/fake_shard.h"
#include "tests/support/loopback.h"

namespace slipstream {
namespace {

std::string Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(ShardUplinksTest, TryAsLongAsAWorkerOnlyWhereTheBitsDependOnIt) {
  RunSpec run;
  run.cluster.lease = absl::Seconds(5);
  run.consistency.policy = PolicyKind::kHardsync;
  EXPECT_EQ(ShardUplinks::PatienceIn(run), ShardUplinks::kGiveUpAfter);
  run.durability.level = DurabilitySpec::Level::kSynced;
  EXPECT_EQ(ShardUplinks::PatienceIn(run), absl::Seconds(30));
  run.consistency.policy = PolicyKind::kSoftsync;
  EXPECT_EQ(ShardUplinks::PatienceIn(run), ShardUplinks::kGiveUpAfter);
}

TEST(ShardUplinksTest, GoToTheShardWhereItIsNow) {
  constexpr size_t kCount = 100;
  TensorLayout layout;
  ASSERT_TRUE(layout.Append("all", {kCount}).ok());
  const ShardMap map = ShardMap::Cut(layout, 1).value();
  FakeShard before(kCount, map.fingerprint());
  FakeShard after(kCount, map.fingerprint());
  after.SetVersion(5);
  ShardUplinks uplinks({.run = TreeRun()});
  uplinks.Follow(before.address());
  const std::unique_ptr<Uplink> uplink = uplinks.Make(before.address(), kRun, map);
  std::vector<float> weights(kCount);
  const auto pull = [&] { return uplink->Pull({.run = kRun}, Version{}, Generation{}, weights); };
  ASSERT_EQ(pull()->version, Version{0});

  before.Stop();
  uplinks.Follow(after.address());

  const absl::StatusOr<WeightsHeader> pulled = pull();
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(pulled->version, Version{5});
}

/// An aggregator for two workers, served over gRPC.
class AggregatorServiceTest : public testing::Test {
 protected:
  AggregatorServiceTest() {
    service_.OnOrders(orders_);
    service_.OnUpstream("shard:1");
    grpc::ServerBuilder builder;
    loopback_ = ServeOnLoopback(service_.data_plane(), builder);
    stub_ = v1::Shard::NewStub(loopback_.NewChannel());
    // A lost answer fails the test instead of hanging it.
    for (grpc::ClientContext& context : contexts_) {
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    }
  }
  ~AggregatorServiceTest() override {
    loopback_.server->Shutdown(std::chrono::system_clock::now());
  }

  void SetIdentity(v1::Identity& identity, uint32_t worker) const {
    identity.set_run(kRun);
    identity.set_worker(worker);
    identity.set_incarnation(worker + 1);
  }

  v1::PushChunk Gradient(uint32_t worker, float value) const {
    v1::PushChunk chunk;
    v1::PushHeader& header = *chunk.mutable_header();
    SetIdentity(*header.mutable_identity(), worker);
    header.set_sequence(1);
    header.set_shard_map(orders_.model->shard_map.fingerprint());
    header.set_count(kValues);
    header.set_examples(1);
    header.set_pull(true);
    chunk.set_values(Bytes(std::vector<float>(kValues, value)));
    return chunk;
  }

  const ServerOrders orders_ = TreeOrders(2);
  grpc::ClientContext contexts_[2];
  ScriptedShard shard_;
  AggregatorService service_{{.run = TreeRun()}, std::make_unique<FakeUplinks>(shard_), "a socket"};
  Loopback loopback_;
  std::unique_ptr<v1::Shard::Stub> stub_;
};

TEST_F(AggregatorServiceTest, CombinesThePushesOfItsWorkers) {
  shard_.ReplyBy([](const PushHeader& composite) { return Applied(composite, 7); });
  const auto first = stub_->Exchange(&contexts_[0]);
  const auto second = stub_->Exchange(&contexts_[1]);

  ASSERT_TRUE(first->Write(Gradient(0, 2)) && second->Write(Gradient(1, 4)));

  for (auto* const stream : {first.get(), second.get()}) {
    v1::ExchangeReply reply;
    ASSERT_TRUE(stream->Read(&reply));
    EXPECT_EQ(reply.push().outcome(), v1::APPLIED);
    EXPECT_EQ(reply.header().version(), 7u);
    EXPECT_EQ(reply.values(), Bytes(std::vector<float>(kValues, 7)));
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  }
  EXPECT_EQ(shard_.Await(1)[0].values, std::vector<float>(kValues, 3));
  v1::SyncServerRequest report;
  service_.Describe(report);
  EXPECT_EQ(report.aggregator().parts(), 2u);
}

TEST_F(AggregatorServiceTest, NamesItsLocalSocket) {
  v1::GetTransportsRequest request;
  SetIdentity(*request.mutable_identity(), 0);
  v1::GetTransportsReply reply;

  EXPECT_TRUE(stub_->GetTransports(&contexts_[0], request, &reply).ok());

  EXPECT_EQ(reply.local_socket(), "a socket");
}

TEST_F(AggregatorServiceTest, AWorkerThatFollowsTheShardIsSentItsVersions) {
  v1::PullRequest request;
  SetIdentity(*request.mutable_identity(), 0);
  request.set_shard_map(orders_.model->shard_map.fingerprint());
  request.set_min_version(3);
  shard_.AnswerPull(WeightsHeader{.version = Version{7}, .count = kValues});

  const auto pull = stub_->Pull(&contexts_[0], request);

  v1::WeightsChunk chunk;
  ASSERT_TRUE(pull->Read(&chunk));
  EXPECT_EQ(chunk.header().version(), 7u);
  EXPECT_EQ(chunk.values(), Bytes(std::vector<float>(kValues, 7)));
  EXPECT_FALSE(pull->Read(&chunk));
  EXPECT_TRUE(pull->Finish().ok());
}

TEST_F(AggregatorServiceTest, OtherPullsAndMethodsAreForTheShard) {
  v1::WeightsChunk chunk;
  const auto pull = stub_->Pull(&contexts_[0], v1::PullRequest());
  EXPECT_FALSE(pull->Read(&chunk));
  EXPECT_EQ(pull->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);

  v1::PushReply reply;
  const auto push = stub_->Push(&contexts_[1], &reply);
  const grpc::Status refused = push->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(refused.error_message(), "an aggregator has no method Push");
}

}  // namespace
}  // namespace slipstream

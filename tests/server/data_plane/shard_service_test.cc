#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/process/version.h"
#include "tests/server/data_plane/shard_service_fixture.h"

// Tests of pushes and pulls through the real service.

namespace slipstream {
namespace {

TEST_F(ShardServiceTest, AppliesAPushAndServesTheNewVersion) {
  Start(kAsync, 1);

  const v1::PushReply reply = Push(Header(0, 1, 0), std::vector<float>(kValues, 2.0f));

  EXPECT_EQ(reply.outcome(), v1::APPLIED);
  EXPECT_EQ(reply.version(), 1u);
  const Pulled pulled = Pull();
  EXPECT_TRUE(pulled.status.ok()) << pulled.status.error_message();
  EXPECT_EQ(pulled.version, 1u);
  EXPECT_EQ(pulled.values, std::vector<float>(kValues, -2.0f));
}

TEST_F(ShardServiceTest, MeasuresStepsAndTheAgeOfTheRound) {
  Start({ConsistencySpec::Policy::kSoftsync}, 2);
  const std::vector<float> gradient(kValues, 2.0f);
  ASSERT_TRUE(Pull(0, 0).status.ok());
  ASSERT_TRUE(Pull(0, 1).status.ok());
  milliseconds_ = 300;
  ASSERT_EQ(Push(Header(0, 1, 0), gradient).outcome(), v1::BUFFERED);
  milliseconds_ = 1000;

  v1::ShardStatus status = service_->ShardReport();

  EXPECT_DOUBLE_EQ(status.round_open_seconds(), 1.0);
  EXPECT_DOUBLE_EQ(status.round_unchanged_seconds(), 0.7);
  ASSERT_EQ(status.workers_size(), 2);
  EXPECT_EQ(status.workers(0).steps(), 1u);
  EXPECT_DOUBLE_EQ(status.workers(0).step_seconds(), 0.3);
  EXPECT_DOUBLE_EQ(status.workers(0).holding_seconds(), 0);
  EXPECT_EQ(status.workers(1).worker(), 1u) << "it has not pushed yet";
  EXPECT_EQ(status.workers(1).steps(), 0u);
  EXPECT_DOUBLE_EQ(status.workers(1).holding_seconds(), 1.0);

  ASSERT_EQ(Push(Header(1, 1, 0), gradient).outcome(), v1::APPLIED);
  milliseconds_ = 1500;
  status = service_->ShardReport();
  EXPECT_DOUBLE_EQ(status.round_open_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(status.workers(1).step_seconds(), 1.0);
}

TEST_F(ShardServiceTest, AnswersARepeatedPushAsTheFirstTimeWithoutASecondEffect) {
  Start(kAsync, 1);
  const std::vector<float> gradient(kValues, 2.0f);
  const v1::PushReply first = Push(Header(0, 1, 0), gradient);

  const v1::PushReply second = Push(Header(0, 1, 0), gradient, /*descending=*/true);

  EXPECT_EQ(second.outcome(), v1::DUPLICATE);
  EXPECT_EQ(second.version(), first.version());
  EXPECT_EQ(Pull().values, std::vector<float>(kValues, -2.0f));
}

TEST_F(ShardServiceTest, AppliesChunksToTheirPlacesInWhateverOrderTheyCome) {
  Start(kAsync, 1);
  std::vector<float> gradient(kValues);
  for (size_t i = 0; i < kValues; ++i) gradient[i] = static_cast<float>(i);

  EXPECT_EQ(Push(Header(0, 1, 0), gradient, /*descending=*/true).outcome(), v1::APPLIED);

  for (float& value : gradient) value = 0 - value;
  EXPECT_EQ(Pull().values, gradient);
}

TEST_F(ShardServiceTest, RefusesEveryBadPushByNameAndChangesNothing) {
  Start(kAsync, 1);
  const std::vector<float> good(kValues, 1.0f);
  ASSERT_EQ(Push(Header(0, 1, 0), good).outcome(), v1::APPLIED);
  const Pulled before = Pull();
  std::vector<float> nan_at_the_end = good;
  nan_at_the_end.back() = std::numeric_limits<float>::quiet_NaN();
  const auto changed = [this](auto change) {
    v1::PushHeader header = Header(0, 2, 1);
    change(header);
    return header;
  };

  EXPECT_EQ(Push(Header(0, 2, 1), nan_at_the_end).outcome(), v1::NONFINITE);
  EXPECT_EQ(Push(Header(0, 4, 1), good).outcome(), v1::OUT_OF_SEQUENCE);
  EXPECT_EQ(Push(Header(0, 1, 0), std::vector<float>(kValues, 5.0f)).outcome(), v1::SEQ_REUSED);
  EXPECT_EQ(Push(Header(0, 2, 9), good).outcome(), v1::FUTURE_VERSION);
  EXPECT_EQ(Push(changed([](auto& h) { h.mutable_identity()->set_run(1); }), good).outcome(),
            v1::WRONG_RUN);
  EXPECT_EQ(Push(changed([](auto& h) { h.set_shard_map(1); }), good).outcome(),
            v1::WRONG_SHARD_MAP);
  EXPECT_EQ(Push(changed([](auto& h) { h.set_count(kValues - 1); }), good).outcome(),
            v1::SHAPE_MISMATCH);
  EXPECT_EQ(
      Push(changed([](auto& h) { h.mutable_identity()->set_incarnation(0); }), good).outcome(),
      v1::FENCED);

  const Pulled after = Pull();
  EXPECT_EQ(after.version, before.version);
  EXPECT_EQ(after.values, before.values);
  EXPECT_EQ(Push(Header(0, 2, 1), good).outcome(), v1::APPLIED) << "a refusal used up its sequence";
}

TEST_F(ShardServiceTest, ForgetsAPushThatWasCutInTheMiddle) {
  Start(kAsync, 1);
  {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PushReply reply;
    auto writer = stub_->Push(&context, &reply);
    v1::PushChunk chunk;
    *chunk.mutable_header() = Header(0, 1, 0);
    chunk.set_values(Bytes(std::vector<float>(kValues / 2, 1.0f)));
    writer->Write(chunk);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_NE(status.error_message().find("values 500 to 999"), std::string::npos)
        << status.error_message();
  }

  EXPECT_EQ(Pull().values, std::vector<float>(kValues, 0.0f));
  EXPECT_EQ(service_->ShardReport().bytes_queued(), 0u);
  EXPECT_EQ(Push(Header(0, 1, 0), std::vector<float>(kValues, 1.0f)).outcome(), v1::APPLIED);
}

TEST_F(ShardServiceTest, RefusesChunksBeyondTheAnnouncedCount) {
  Start(kAsync, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PushReply reply;
  auto writer = stub_->Push(&context, &reply);
  v1::PushChunk chunk;
  *chunk.mutable_header() = Header(0, 1, 0);
  chunk.set_offset(4);
  chunk.set_values(Bytes(std::vector<float>(kValues, 1.0f)));
  writer->Write(chunk);
  writer->WritesDone();

  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(reply.outcome(), v1::LENGTH_MISMATCH);
  EXPECT_EQ(Pull().version, 0u);
}

TEST_F(ShardServiceTest, ABrokenStreamIsToldTheVersionOfTheShard) {
  Start(kAsync, 1);
  ASSERT_EQ(Push(Header(0, 1, 0), std::vector<float>(kValues, 1.0f)).outcome(), v1::APPLIED);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PushReply reply;
  auto writer = stub_->Push(&context, &reply);
  v1::PushChunk chunk;
  *chunk.mutable_header() = Header(0, 2, 1);
  chunk.set_offset(4);
  chunk.set_values(Bytes(std::vector<float>(kValues, 1.0f)));
  writer->Write(chunk);
  writer->WritesDone();

  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(reply.outcome(), v1::LENGTH_MISMATCH);
  EXPECT_EQ(reply.version(), 1u);
}

/// Every push adds the same constant to all weights, so a pull that mixes versions contains two
/// different values.
TEST_F(ShardServiceTest, NeverServesATornModel) {
  constexpr uint32_t kWorkers = 3;
  Start(kAsync, kWorkers);
  std::atomic<bool> done = false;
  std::vector<std::thread> workers;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([this, worker] {
      for (uint64_t sequence = 1; sequence <= 60; ++sequence) {
        EXPECT_EQ(Push(Header(worker, sequence, 0), std::vector<float>(kValues, 1.0f)).outcome(),
                  v1::APPLIED);
      }
    });
  }
  std::thread reader([this, &done] {
    while (!done) {
      const Pulled pulled = Pull();
      ASSERT_TRUE(pulled.status.ok());
      const float expected = -static_cast<float>(pulled.version);
      EXPECT_EQ(pulled.values, std::vector<float>(kValues, expected));
    }
  });
  for (std::thread& worker : workers) worker.join();
  done = true;
  reader.join();

  EXPECT_EQ(Pull().version, 60u * kWorkers);
}

TEST_F(ShardServiceTest, RefusesPushesInTooManySmallPieces) {
  Start(kAsync, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PushReply reply;
  auto writer = stub_->Push(&context, &reply);
  for (size_t i = 0; i < kValues; ++i) {
    v1::PushChunk chunk;
    if (i == 0) *chunk.mutable_header() = Header(0, 1, 0);
    chunk.set_offset(i);
    chunk.set_values(Bytes({1.0f}));
    if (!writer->Write(chunk)) break;
  }
  writer->WritesDone();

  ASSERT_TRUE(writer->Finish().ok());
  EXPECT_EQ(reply.outcome(), v1::LENGTH_MISMATCH);
  EXPECT_EQ(service_->ShardReport().bytes_queued(), 0u);
}

/// A server that was started again would take its own workers for strangers, and close their
/// connections for the values that they send.
TEST_F(ShardServiceTest, AServerThatKnowsNoRunYetAsksMembersToIntroduceThemselvesAgain) {
  ShardService::Options options;
  options.run = SettingsOf(kAsync);
  service_ = std::make_unique<ShardService>(options, std::nullopt, local_name_);
  loopback_ = ServeOnLoopback(service_->data_plane());
  ASSERT_NE(loopback_.server, nullptr);
  stub_ = v1::Shard::NewStub(loopback_.NewChannel());
  const auto introduce = [this](bool is_member, uint32_t protocol = kProtocol) {
    v1::GetTransportsRequest request;
    request.set_protocol(protocol);
    if (is_member) SetIdentity(*request.mutable_identity(), 0);
    grpc::ClientContext context;
    SetDeadline(context);
    v1::GetTransportsReply reply;
    return stub_->GetTransports(&context, request, &reply).error_code();
  };

  EXPECT_EQ(introduce(true), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(introduce(false), grpc::StatusCode::OK) << "a reader is no member";
  service_->OnOrders(FirstOrders(kRun, values_, /*members=*/1, kGrant));
  EXPECT_EQ(introduce(true), grpc::StatusCode::OK);
  EXPECT_EQ(introduce(true, 0), grpc::StatusCode::OK) << "it has not said what it speaks";
  EXPECT_EQ(introduce(true, kProtocol + 1), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ShardServiceTest, LetsGoOfAPullWhoseReaderHasLeft) {
  Start(kAsync, 1);
  grpc::ClientContext context;
  SetDeadline(context);
  v1::PullRequest request;
  request.set_shard_map(map());
  request.set_min_version(1000);
  auto reader = stub_->Pull(&context, request);
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (service_->ShardReport().parked_pulls() == 0 && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  ASSERT_EQ(service_->ShardReport().parked_pulls(), 1u);

  context.TryCancel();

  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  while (service_->ShardReport().parked_pulls() > 0 && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(service_->ShardReport().parked_pulls(), 0u);
}

TEST_F(ShardServiceTest, TakesInitialWeightsOnlyFromTheGrantedClient) {
  Start(kAsync, 1);

  EXPECT_EQ(SendInitialWeights(std::vector<float>(kValues, 9.0f)).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION)
      << "the run has begun";
  EXPECT_EQ(Pull().values, std::vector<float>(kValues, 0.0f));
}

}  // namespace
}  // namespace slipstream

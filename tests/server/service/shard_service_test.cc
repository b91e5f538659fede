#include "server/service/shard_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "proto/shard.grpc.pb.h"
#include "tests/support/loopback.h"

// The client side of these tests speaks through protobuf's own messages, so they also hold the
// service's codec against protobuf's.

namespace slipstream {
namespace {

constexpr uint64_t kRun = 77;
constexpr size_t kValues = 1000;
constexpr uint64_t kGrant = 3;

std::string Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// A deadline for every call, so that a lost answer fails the test instead of hanging it.
void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

/// One shard on a port of the system's choice, given its orders by the test.
class ShardServiceTest : public testing::Test {
 protected:
  void Start(ConsistencySpec consistency, uint32_t members) {
    RunSpec run;
    run.consistency = consistency;
    run.optimizer.learning_rate = 1.0;
    run.wire.chunk_bytes = 512;
    ShardService::Options options;
    options.run = run;
    options.now = [this] { return absl::UnixEpoch() + absl::Milliseconds(milliseconds_.load()); };
    service_ = std::make_unique<ShardService>(options);
    loopback_ = ServeOnLoopback(*service_);
    ASSERT_NE(loopback_.server, nullptr);
    stub_ = v1::Shard::NewStub(loopback_.NewChannel());
    GiveOrders(members);
    ASSERT_TRUE(SendInitialWeights(std::vector<float>(kValues, 0.0f)).ok());
    SetPhase(Phase::kTraining);
    ASSERT_TRUE(Pull().status.ok());  // Waits until the weights are in place.
  }

  void TearDown() override {
    if (loopback_.server == nullptr) return;
    loopback_.server->Shutdown(std::chrono::system_clock::now());
  }

  void GiveOrders(uint32_t members) {
    TensorLayout layout;
    ASSERT_TRUE(layout.Append("weight", {kValues}).ok());
    orders_.number = 1;
    orders_.run = kRun;
    orders_.phase = Phase::kInitializing;
    orders_.model = ModelOrders{.layout = layout,
                                .shard_map = *ShardMap::Cut(layout, 1),
                                .batches_total = 1'000'000,
                                .batches_per_epoch = 1'000'000,
                                .examples_per_epoch = 32'000'000};
    orders_.view.number = ViewNumber{1};
    for (uint32_t id = 0; id < members; ++id) {
      orders_.view.members.push_back({WorkerId{id}, Incarnation{id + 1}, true});
    }
    orders_.grant = kGrant;
    orders_.initializer = {kRun, WorkerId{0}, Incarnation{1}};
    service_->OnOrders(orders_);
  }

  void SetPhase(Phase phase) {
    ++orders_.number;
    orders_.phase = phase;
    service_->OnOrders(orders_);
  }

  uint64_t map() const { return orders_.model->shard_map.fingerprint(); }

  void SetIdentity(v1::Identity& identity, uint32_t worker) const {
    identity.set_run(kRun);
    identity.set_worker(worker);
    identity.set_incarnation(worker + 1);
  }

  grpc::Status SendInitialWeights(const std::vector<float>& values) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::InitializeReply reply;
    auto writer = stub_->Initialize(&context, &reply);
    v1::InitializeRequest request;
    SetIdentity(*request.mutable_header()->mutable_identity(), 0);
    request.mutable_header()->set_grant(kGrant);
    request.mutable_header()->set_shard_map(map());
    request.mutable_header()->set_count(values.size());
    request.set_values(Bytes(values));
    writer->Write(request);
    writer->WritesDone();
    return writer->Finish();
  }

  v1::PushHeader Header(uint32_t worker, uint64_t sequence, uint64_t base) const {
    v1::PushHeader header;
    SetIdentity(*header.mutable_identity(), worker);
    header.set_sequence(sequence);
    header.set_shard_map(map());
    header.set_base_version(base);
    header.set_count(kValues);
    header.set_examples(32);
    return header;
  }

  /// Pushes in four messages of equal size, the last values first if `descending`, and returns the
  /// answer.
  v1::PushReply Push(const v1::PushHeader& header, const std::vector<float>& values,
                     bool descending = false) {
    constexpr size_t kPieces = 4;
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PushReply reply;
    auto writer = stub_->Push(&context, &reply);
    const size_t piece = values.size() / kPieces;
    for (size_t sent = 0; sent < kPieces; ++sent) {
      const size_t i = descending ? kPieces - 1 - sent : sent;
      v1::PushChunk chunk;
      if (sent == 0) *chunk.mutable_header() = header;
      chunk.set_offset(i * piece);
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(i * piece);
      chunk.set_values(Bytes({begin, begin + static_cast<std::ptrdiff_t>(piece)}));
      if (!writer->Write(chunk)) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  struct Pulled {
    grpc::Status status;
    uint64_t version = 0;
    std::vector<float> values;
  };

  Pulled Pull(uint64_t min_version = 0, std::optional<uint32_t> trainer = std::nullopt) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PullRequest request;
    if (trainer.has_value()) {
      SetIdentity(*request.mutable_identity(), *trainer);
      request.set_trains(true);
      request.set_sequence(1);
    }
    request.set_shard_map(map());
    request.set_min_version(min_version);
    auto reader = stub_->Pull(&context, request);
    Pulled pulled;
    std::string bytes;
    for (v1::WeightsChunk chunk; reader->Read(&chunk);) {
      if (chunk.has_header()) pulled.version = chunk.header().version();
      EXPECT_EQ(chunk.offset() * sizeof(float), bytes.size());
      bytes += chunk.values();
    }
    pulled.status = reader->Finish();
    pulled.values = Floats(bytes);
    return pulled;
  }

  std::atomic<int64_t> milliseconds_ = 0;  // Of the service's clock, which only the test moves.
  ServerOrders orders_;
  std::unique_ptr<ShardService> service_;
  Loopback loopback_;
  std::unique_ptr<v1::Shard::Stub> stub_;
};

constexpr ConsistencySpec kAsync = {ConsistencySpec::Policy::kAsync};
constexpr ConsistencySpec kHardsync = {ConsistencySpec::Policy::kHardsync};

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
  Start({ConsistencySpec::Policy::kSoftsync, 1}, 2);
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

/// Every push adds the same constant to all weights, so a pull that mixes versions shows as two
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

TEST_F(ShardServiceTest, HardsyncExchangeWaitsForTheRoundAndCarriesTheNextWork) {
  Start(kHardsync, 2);
  const auto exchange = [this](uint32_t worker) {
    grpc::ClientContext context;
    SetDeadline(context);
    auto stream = stub_->Exchange(&context);
    v1::PushChunk chunk;
    *chunk.mutable_header() = Header(worker, 1, 0);
    chunk.mutable_header()->set_pull(true);
    chunk.set_values(Bytes(std::vector<float>(kValues, worker == 0 ? 1.0f : 3.0f)));
    EXPECT_TRUE(stream->Write(chunk));
    v1::ExchangeReply first;
    std::string bytes;
    for (v1::ExchangeReply reply; bytes.size() < kValues * sizeof(float) && stream->Read(&reply);) {
      if (reply.has_push()) first = reply;
      bytes += reply.values();
    }
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(first.push().outcome(), v1::APPLIED);
    EXPECT_EQ(first.header().version(), 1u);
    EXPECT_EQ(first.header().work().kind(), v1::RoundWork::COMPUTE);
    EXPECT_EQ(Floats(bytes), std::vector<float>(kValues, -2.0f));
  };

  std::thread other([&exchange] { exchange(1); });
  exchange(0);
  other.join();
}

TEST_F(ShardServiceTest, DoesNotSendAVersionThatTheWorkerHolds) {
  Start({ConsistencySpec::Policy::kSoftsync, 1}, 2);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Exchange(&context);
  const auto exchange = [&](uint64_t sequence, bool holds_base) {
    v1::PushChunk chunk;
    *chunk.mutable_header() = Header(0, sequence, 0);
    chunk.mutable_header()->set_pull(true);
    chunk.mutable_header()->set_holds_base(holds_base);
    chunk.mutable_header()->set_chunk_bytes(4096);
    chunk.set_values(Bytes(std::vector<float>(kValues, 1.0f)));
    v1::ExchangeReply reply;
    EXPECT_TRUE(stream->Write(chunk) && stream->Read(&reply));
    return reply;
  };

  // The first gradient of a round makes no version.
  const v1::ExchangeReply buffered = exchange(1, true);
  EXPECT_EQ(buffered.push().outcome(), v1::BUFFERED);
  EXPECT_TRUE(buffered.header().unchanged());
  EXPECT_EQ(buffered.header().version(), 0u);
  EXPECT_EQ(buffered.header().count(), kValues);
  EXPECT_EQ(buffered.values(), "");

  const v1::ExchangeReply applied = exchange(2, true);
  EXPECT_EQ(applied.push().outcome(), v1::APPLIED);
  EXPECT_FALSE(applied.header().unchanged());
  EXPECT_EQ(applied.header().version(), 1u);
  EXPECT_EQ(applied.values().size(), kValues * sizeof(float));

  // It does not hold what it does not say.
  const v1::ExchangeReply older = exchange(3, true);
  EXPECT_FALSE(older.header().unchanged()) << "version 0 is held, 1 is answered";
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ShardServiceTest, AnAnsweredExchangeHoldsNoVersion) {
  Start(kAsync, 2);
  grpc::ClientContext context;
  SetDeadline(context);
  auto stream = stub_->Exchange(&context);
  v1::PushChunk chunk;
  *chunk.mutable_header() = Header(0, 1, 0);
  chunk.mutable_header()->set_pull(true);
  chunk.set_values(Bytes(std::vector<float>(kValues, 1.0f)));
  ASSERT_TRUE(stream->Write(chunk));
  size_t received = 0;
  for (v1::ExchangeReply reply; received < kValues * sizeof(float) && stream->Read(&reply);) {
    received += reply.values().size();
  }

  for (uint64_t sequence = 1; sequence <= 2; ++sequence) {
    EXPECT_EQ(Push(Header(1, sequence, 0), std::vector<float>(kValues, 1.0f)).outcome(),
              v1::APPLIED);
  }

  // The stream is still open; only the newest version lives, once gRPC has let go of what it sent.
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (service_->ShardReport().live_versions() > 1 && absl::Now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_EQ(service_->ShardReport().live_versions(), 1u);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
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

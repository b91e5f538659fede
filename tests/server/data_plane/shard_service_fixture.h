#ifndef SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_SERVICE_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_SERVICE_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/local/local_socket.h"
#include "proto/shard.grpc.pb.h"
#include "server/data_plane/shard_service.h"
#include "tests/server/data_plane/first_orders.h"
#include "tests/support/loopback.h"

// The clients of these tests use protobuf's own messages, so the tests also compare the service's
// codec with protobuf's.

namespace slipstream {

inline constexpr uint64_t kRun = 77;
inline constexpr size_t kValues = 1000;
inline constexpr uint64_t kGrant = 3;

inline std::string Bytes(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::vector<float> Floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// Sets a deadline, so that a lost answer fails the test instead of hanging it.
inline void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

/// One shard on a port of the system's choice. The test gives it its orders.
class ShardServiceTest : public testing::Test {
 protected:
  void Start(ConsistencySpec consistency, uint32_t members) {
    Serve(consistency, members);
    ASSERT_TRUE(SendInitialWeights(std::vector<float>(values_, 0.0f)).ok());
    SetPhase(Phase::kTraining);
    ASSERT_TRUE(Pull().status.ok());  // Waits until the weights are in place.
  }

  /// Starts a shard that knows the model and expects the initial weights from worker 0.
  void Serve(ConsistencySpec consistency, uint32_t members) {
    ShardService::Options options;
    options.run = SettingsOf(consistency);
    options.open_store = open_store_;
    options.read_start = read_start_;
    options.now = [this] { return absl::UnixEpoch() + absl::Milliseconds(milliseconds_.load()); };
    service_ = std::make_unique<ShardService>(options, std::nullopt, local_name_);
    loopback_ = ServeOnLoopback(service_->data_plane());
    ASSERT_NE(loopback_.server, nullptr);
    stub_ = v1::Shard::NewStub(loopback_.NewChannel());
    orders_ = FirstOrders(kRun, values_, members, kGrant);
    service_->OnOrders(orders_);
  }

  /// Returns the settings of the shard.
  RunSpec SettingsOf(ConsistencySpec consistency) const {
    RunSpec run;
    run.consistency = consistency;
    run.optimizer = optimizer_;
    run.wire.chunk_bytes = 512;
    run.durability = durability_;
    run.training.start_from = start_from_;
    return run;
  }

  void TearDown() override {
    if (loopback_.server != nullptr) EndProcess();
  }

  /// Ends the shard and all calls to it, as the end of its process would.
  void EndProcess() {
    loopback_.server->Shutdown(std::chrono::system_clock::now());
    service_.reset();
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

  /// Returns a message with the first part of the initial weights.
  v1::InitializeRequest InitialWeights(const std::vector<float>& values) const {
    v1::InitializeRequest request;
    SetIdentity(*request.mutable_header()->mutable_identity(), 0);
    request.mutable_header()->set_grant(kGrant);
    request.mutable_header()->set_shard_map(map());
    request.mutable_header()->set_count(values_);
    request.set_values(Bytes(values));
    return request;
  }

  grpc::Status SendInitialWeights(const std::vector<float>& values) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::InitializeReply reply;
    auto writer = stub_->Initialize(&context, &reply);
    writer->Write(InitialWeights(values));
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

  /// Pushes in four messages of equal size and returns the answer. Sends the last values first if
  /// `descending`.
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

  /// Returns a message with the first `values` values of a push that asks for weights. If `values`
  /// is kValues, the push is complete.
  v1::PushChunk Begin(uint32_t worker, uint64_t sequence, size_t values) const {
    v1::PushChunk chunk;
    *chunk.mutable_header() = Header(worker, sequence, 0);
    chunk.mutable_header()->set_pull(true);
    chunk.set_values(Bytes(std::vector<float>(values, 1.0f)));
    return chunk;
  }

  /// Returns a client whose flow control admits at most two messages before it reads.
  std::unique_ptr<v1::Shard::Stub> StubThatTakesLittle() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 600);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return v1::Shard::NewStub(grpc::CreateCustomChannel(
        loopback_.address(), grpc::InsecureChannelCredentials(), arguments));
  }

  /// Waits until the report satisfies `condition`. The service's clock stands still.
  void AwaitReport(const std::function<bool(const v1::ShardStatus&)>& condition,
                   const std::string& what) {
    const absl::Time deadline = absl::Now() + absl::Seconds(20);
    while (!condition(service_->ShardReport())) {
      ASSERT_LT(absl::Now(), deadline) << "in vain: " << what;
      std::this_thread::yield();
    }
  }

  void AwaitQueued() {
    AwaitReport([](const v1::ShardStatus& status) { return status.bytes_queued() > 0; },
                "a push to be admitted");
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

  size_t values_ = kValues;  // The size of the model.

  // Set by tests of checkpoints before they start the service.
  DurabilitySpec durability_;
  decltype(ShardService::Options::open_store) open_store_;

  // Set by tests of starts from a checkpoint.
  OptimizerSpec optimizer_ = {.learning_rate = 1.0};
  StartSpec start_from_;
  ReadRunStart read_start_;

  const std::string local_name_ = NewLocalName();  // The local socket that clients are told,
                                                   // whether or not anything listens there.
  std::atomic<int64_t> milliseconds_ = 0;  // The service's clock, which only the test moves.
  ServerOrders orders_;
  std::unique_ptr<ShardService> service_;
  Loopback loopback_;
  std::unique_ptr<v1::Shard::Stub> stub_;
};

inline constexpr ConsistencySpec kAsync = {ConsistencySpec::Policy::kAsync};
inline constexpr ConsistencySpec kHardsync = {ConsistencySpec::Policy::kHardsync};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_SERVICE_FIXTURE_H_

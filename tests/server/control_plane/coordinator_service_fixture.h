#ifndef SLIPSTREAM_TESTS_SERVER_CONTROL_PLANE_COORDINATOR_SERVICE_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_CONTROL_PLANE_COORDINATOR_SERVICE_FIXTURE_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "common/wire/control_wire.h"
#include "server/control_plane/coordinator_service.h"
#include "tests/support/captured_log.h"
#include "tests/support/loopback.h"

namespace slipstream {

/// A clock that only the test moves, and that the service's threads read.
class ManualClock {
 public:
  absl::Time now() const { return absl::UnixEpoch() + absl::Milliseconds(milliseconds_.load()); }
  void Advance(absl::Duration duration) { milliseconds_ += absl::ToInt64Milliseconds(duration); }

 private:
  std::atomic<int64_t> milliseconds_ = 0;
};

inline RunSpec Spec() {
  RunSpec spec;
  spec.cluster.servers = {"localhost:1"};
  spec.cluster.workers = 2;
  spec.training.batch_size = 25;  // 4 mini-batches an epoch.
  spec.training.epochs = 1;
  return spec;
}

/// A coordinator on its own port, and scripted clients.
class CoordinatorServiceTest : public testing::Test {
 protected:
  void Start(const RunSpec& spec = Spec()) {
    CoordinatorService::Options options = options_;
    options.spec = spec;
    options.run = 7;
    options.settings = "settings";
    options.settings_difference = [](const std::string& theirs) { return "key is " + theirs; };
    options.now = [this] { return clock_.now(); };
    options.tick = absl::Milliseconds(5);
    service_ = std::make_unique<CoordinatorService>(options);
    loopback_ = ServeOnLoopback(*service_);
    ASSERT_NE(loopback_.server, nullptr);
    stub_ = v1::Coordinator::NewStub(loopback_.NewChannel());
  }

  ~CoordinatorServiceTest() override {
    if (service_ != nullptr) service_->Stop();
    if (loopback_.server != nullptr) loopback_.server->Shutdown();
  }

  template <typename Reply, typename Method, typename Request>
  grpc::Status Call(Method method, const Request& request, Reply& reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    return (stub_.get()->*method)(&context, request, &reply);
  }

  /// AskOnce sends one message on a stream of its own and reads the answer.
  template <typename Request, typename Reply>
  using Opening = std::unique_ptr<grpc::ClientReaderWriter<Request, Reply>> (
      v1::Coordinator::Stub::*)(grpc::ClientContext*);
  template <typename Request, typename Reply>
  grpc::Status AskOnce(Opening<Request, Reply> open, const Request& request, Reply& reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    const auto stream = (stub_.get()->*open)(&context);
    stream->Write(request);
    const bool is_answered = stream->Read(&reply);
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.ok(), is_answered);
    return status;
  }

  grpc::Status Sync(v1::SyncServerRequest request, v1::SyncServerReply& reply) {
    if (request.address().empty()) request.set_address("localhost:1");
    if (request.settings().empty()) request.set_settings("settings");
    if (request.instance() == 0) request.set_instance(1);
    return Call(&Stub::SyncServer, request, reply);
  }

  /// The server reports these values with the newest orders it has seen. Returns the number of the
  /// orders in the answer.
  uint64_t Sync(bool initialized = false, bool drained = false) {
    v1::SyncServerRequest request;
    request.set_orders_seen(seen_);
    request.set_initialized(initialized);
    request.set_drained(drained);
    v1::SyncServerReply reply;
    const grpc::Status status = Sync(request, reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    seen_ = reply.orders();
    return seen_;
  }

  v1::Identity Register() {
    v1::RegisterReply reply;
    const grpc::Status status = Call(&Stub::Register, v1::RegisterRequest(), reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.identity();
  }

  v1::PrepareModelRequest Model(const v1::Identity& identity, uint64_t rows = 8) {
    TensorLayout layout;
    EXPECT_TRUE(layout.Append("weights", {rows, 16}).ok());
    v1::PrepareModelRequest request;
    *request.mutable_identity() = identity;
    *request.mutable_layout() = ToWire(layout);
    request.set_examples(100);
    request.set_data_fingerprint(3);
    return request;
  }

  v1::PrepareModelReply Prepare(const v1::PrepareModelRequest& request) {
    v1::PrepareModelReply reply;
    const grpc::Status status = Call(&Stub::PrepareModel, request, reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  grpc::Status Finish(const v1::Identity& identity, uint64_t grant) {
    v1::FinishInitializationRequest request;
    *request.mutable_identity() = identity;
    request.set_grant(grant);
    v1::FinishInitializationReply reply;
    return Call(&Stub::FinishInitialization, request, reply);
  }

  v1::HeartbeatReply Beat(const v1::Identity& identity) {
    v1::HeartbeatRequest request;
    *request.mutable_identity() = identity;
    v1::HeartbeatReply reply;
    const grpc::Status status = AskOnce(&Stub::Heartbeat, request, reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  v1::GetWorkReply GetWork(const v1::Identity& identity, uint32_t wait_ms = 0,
                           v1::WorkProgress progress = {}) {
    v1::GetWorkRequest request;
    *request.mutable_identity() = identity;
    request.set_wait_ms(wait_ms);
    if (progress.unit() != 0) *request.add_progress() = progress;
    v1::GetWorkReply reply;
    const grpc::Status status = AskOnce(&Stub::GetWork, request, reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  grpc::Status Leave(const v1::Identity& identity, v1::WorkProgress progress = {}) {
    v1::LeaveRequest request;
    *request.mutable_identity() = identity;
    if (progress.unit() != 0) *request.add_progress() = progress;
    v1::LeaveReply reply;
    return Call(&Stub::Leave, request, reply);
  }

  v1::RunStatus Status() {
    v1::RunStatus status;
    EXPECT_TRUE(Call(&Stub::GetStatus, v1::GetStatusRequest(), status).ok());
    return status;
  }

  void Train(const RunSpec& spec = Spec()) {
    Start(spec);
    Sync();
    ada_ = Register();
    bob_ = Register();
    const v1::PrepareModelReply grant = Prepare(Model(ada_));
    ASSERT_EQ(grant.state(), v1::PrepareModelReply::GRANTED);
    ASSERT_TRUE(Finish(ada_, grant.grant()).ok());
    Sync();
    Sync(/*initialized=*/true);
    ASSERT_EQ(Status().phase(), v1::TRAINING);
  }

  using Stub = v1::Coordinator::Stub;

  // Tests may set some of these before Start, which sets the rest.
  CoordinatorService::Options options_{.status_age_max = absl::ZeroDuration()};

  // Declared first, as the others log.
  CapturedLog log_;
  ManualClock clock_;
  std::unique_ptr<CoordinatorService> service_;
  Loopback loopback_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  uint64_t seen_ = 0;
  v1::Identity ada_;
  v1::Identity bob_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_CONTROL_PLANE_COORDINATOR_SERVICE_FIXTURE_H_

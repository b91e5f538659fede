#ifndef SLIPSTREAM_TESTS_SUPPORT_FAKE_COORDINATOR_H_
#define SLIPSTREAM_TESTS_SUPPORT_FAKE_COORDINATOR_H_

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "common/process/version.h"
#include "proto/coordinator.grpc.pb.h"

namespace slipstream {

/// A coordinator in this process, on a port of the system's choice, that answers heartbeats and
/// registrations as a test tells it.
///
/// Thread-safe: guarded by its own mutex.
class FakeCoordinator final : public v1::Coordinator::Service {
 public:
  FakeCoordinator() {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~FakeCoordinator() override { server_->Shutdown(std::chrono::system_clock::now()); }

  /// host:port
  const std::string& address() const { return address_; }

  /// Lets the next `calls` calls (or messages on streams) fail with `status`.
  void FailNext(int calls, const grpc::Status& status) {
    MutexLock lock(mutex_);
    failures_ = calls;
    failure_ = status;
  }

  /// Sets the answer to heartbeats from now on.
  void SetHeartbeatReply(v1::HeartbeatReply reply) {
    MutexLock lock(mutex_);
    heartbeat_reply_ = std::move(reply);
  }

  /// Sets the lease in the answer to registrations from now on. The default is one second.
  void SetLease(uint32_t milliseconds) {
    MutexLock lock(mutex_);
    lease_ms_ = milliseconds;
  }

  /// Sets the answer to requests for the status of the run.
  void SetStatus(v1::RunStatus status) {
    MutexLock lock(mutex_);
    status_ = std::move(status);
  }

  /// If `is_silent`, heartbeats are received and not answered.
  void SetSilent(bool is_silent) {
    MutexLock lock(mutex_);
    is_silent_ = is_silent;
  }

  /// Returns the newest heartbeat.
  v1::HeartbeatRequest last_heartbeat() const {
    MutexLock lock(mutex_);
    return last_heartbeat_;
  }

  int calls() const {
    MutexLock lock(mutex_);
    return calls_;
  }

  /// Returns the number of heartbeat streams that were opened.
  int streams() const {
    MutexLock lock(mutex_);
    return streams_;
  }

  grpc::Status Register(grpc::ServerContext*, const v1::RegisterRequest* request,
                        v1::RegisterReply* reply) override {
    EXPECT_EQ(request->protocol(), kProtocol);
    MutexLock lock(mutex_);
    reply->mutable_identity()->set_worker(request->worker());
    reply->add_servers(address_);
    reply->set_lease_ms(lease_ms_);
    return Next();
  }

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::RunStatus* reply) override {
    MutexLock lock(mutex_);
    *reply = status_;
    return Next();
  }

  grpc::Status FinishInitialization(grpc::ServerContext*, const v1::FinishInitializationRequest*,
                                    v1::FinishInitializationReply*) override {
    MutexLock lock(mutex_);
    return Next();
  }

  /// There is no work but what a test gives a client itself.
  grpc::Status GetWork(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::GetWorkReply, v1::GetWorkRequest>* stream) override {
    v1::GetWorkRequest request;
    v1::GetWorkReply finished;
    finished.set_state(v1::GetWorkReply::FINISHED);
    while (stream->Read(&request)) {
      if (!stream->Write(finished)) break;
    }
    return grpc::Status::OK;
  }

  grpc::Status Heartbeat(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::HeartbeatReply, v1::HeartbeatRequest>* stream) override {
    {
      MutexLock lock(mutex_);
      ++streams_;
    }
    v1::HeartbeatRequest request;
    std::string said_last;
    while (stream->Read(&request)) {
      v1::HeartbeatReply reply;
      {
        MutexLock lock(mutex_);
        last_heartbeat_ = request;
        reply = heartbeat_reply_;
        const grpc::Status status = Next();
        if (!status.ok()) return status;
        if (is_silent_) continue;
      }
      if (!request.wants_answer() && reply.SerializeAsString() == said_last) continue;
      said_last = reply.SerializeAsString();
      if (!stream->Write(reply)) break;
    }
    return grpc::Status::OK;
  }

 private:
  grpc::Status Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++calls_;
    if (failures_ == 0) return grpc::Status::OK;
    --failures_;
    return failure_;
  }

  std::string address_;

  mutable Mutex mutex_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t lease_ms_ ABSL_GUARDED_BY(mutex_) = 1000;
  bool is_silent_ ABSL_GUARDED_BY(mutex_) = false;
  int failures_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::Status failure_ ABSL_GUARDED_BY(mutex_);
  v1::RunStatus status_ ABSL_GUARDED_BY(mutex_);
  v1::HeartbeatReply heartbeat_reply_ ABSL_GUARDED_BY(mutex_);
  v1::HeartbeatRequest last_heartbeat_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<grpc::Server> server_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_FAKE_COORDINATOR_H_

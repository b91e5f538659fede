#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "common/process/stop_signal.h"
#include "proto/coordinator.grpc.pb.h"
#include "tests/deploy/psctl/example_status.h"

namespace slipstream {
namespace {

/// A coordinator whose run trains until the file `finished_file` appears, and is then finished.
/// While the file `finished_file`.away exists, the coordinator refuses to be watched. While
/// `finished_file`.waiting exists, its run waits for workers; while `finished_file`.stalled exists,
/// worker 1 does nothing. While `finished_file`.events exists, it tells of events; of one more once
/// it is finished. When it is asked to end training, it finishes if `finished_file`.saves exists;
/// if `finished_file`.hangs exists, it agrees to end but does not finish. When it is asked to save
/// a checkpoint, it makes the file `finished_file`.checkpoint.
class FakeCoordinator final : public v1::Coordinator::Service {
 public:
  explicit FakeCoordinator(std::string finished_file) : finished_file_(std::move(finished_file)) {}

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::RunStatus* reply) override {
    *reply = ExampleStatus();
    if (std::filesystem::exists(finished_file_ + ".waiting")) {
      reply->set_phase(v1::WAITING_FOR_WORKERS);
    }
    if (std::filesystem::exists(finished_file_ + ".stalled")) {
      reply->mutable_workers(1)->set_is_stalled(true);
      reply->mutable_workers(1)->set_idle_seconds(40);
    }
    if (std::filesystem::exists(finished_file_)) {
      reply->set_phase(v1::FINISHED);
      reply->set_weights_sha256("ab12");
      reply->set_ended_by(std::filesystem::exists(finished_file_ + ".saves") ? "interrupted"
                                                                             : "epochs");
      *reply->add_evaluations() = ExampleEvaluation(4, 0.9, true);
    }
    if (std::filesystem::exists(finished_file_ + ".events")) {
      *reply->add_events() = ExampleEvent(3, "worker", "worker died worker=1");
      reply->mutable_events(0)->set_is_warning(true);
      if (reply->phase() == v1::FINISHED) {
        *reply->add_events() = ExampleEvent(5, "phase", "the run's phase changes phase=finished");
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status EndTraining(grpc::ServerContext*, const v1::EndTrainingRequest*,
                           v1::EndTrainingReply*) override {
    if (std::filesystem::exists(finished_file_ + ".saves")) {
      std::ofstream(finished_file_) << "";
      return grpc::Status::OK;
    }
    if (std::filesystem::exists(finished_file_ + ".hangs")) return grpc::Status::OK;
    return {grpc::StatusCode::UNAVAILABLE, "it is away"};
  }

  grpc::Status SaveCheckpoint(grpc::ServerContext*, const v1::SaveCheckpointRequest*,
                              v1::SaveCheckpointReply* reply) override {
    std::ofstream(finished_file_ + ".checkpoint") << "";
    reply->set_is_complete(true);
    return grpc::Status::OK;
  }

  grpc::Status WatchStatus(grpc::ServerContext* context, const v1::WatchStatusRequest* request,
                           grpc::ServerWriter<v1::RunStatus>* writer) override {
    v1::RunStatus status;
    while (!context->IsCancelled() && status.phase() != v1::FINISHED) {
      if (std::filesystem::exists(finished_file_ + ".away")) {
        return {grpc::StatusCode::UNAVAILABLE, "it is away"};
      }
      GetStatus(context, nullptr, &status);
      if (!writer->Write(status)) break;
      poll(nullptr, 0, static_cast<int>(request->interval_ms()));
    }
    return grpc::Status::OK;
  }

 private:
  const std::string finished_file_;
};

}  // namespace
}  // namespace slipstream

/// Usage: fake_coordinator PORT_FILE FINISHED_FILE [ADDRESS]. Serves until it is told to stop.
int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const std::string address = argc == 4 ? argv[3] : "127.0.0.1:0";
  const slipstream::StopSignal stop;
  slipstream::FakeCoordinator service(argv[2]);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  const std::string fresh = std::string(argv[1]) + ".new";
  std::ofstream(fresh) << "127.0.0.1:" << port << "\n";
  std::filesystem::rename(fresh, argv[1]);
  stop.WaitFor(absl::InfiniteDuration());
  server->Shutdown();
  return stop.ExitStatus();
}

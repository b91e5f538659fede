// Measures what the coordinator costs with many workers. The real service runs in its own process,
// over gRPC on loopback; scripted workers and a scripted server run in this one. Every worker has a
// connection and sends the messages that ControlLoad describes. The server of shard 0 reports with
// a line for each worker, and a client watches the status.
//
//   coordinator_benchmark [workers=1000] [seconds=10]
//
// The contender is a service that answers the workers' messages with nothing; it shows the cost of
// gRPC itself. Prints for both the messages sent per second and the seconds of CPU time that the
// process took per second.

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "common/layout/tensor_layout.h"
#include "common/rpc/library_settings.h"
#include "common/rpc/transport_options.h"
#include "common/wire/control_wire.h"
#include "server/control_plane/coordinator_service.h"
#include "server/control_plane/open_streams.h"
#include "server/control_plane/question_stream.h"
#include "tests/benchmarks/child_process.h"
#include "tests/benchmarks/control_load.h"
#include "tests/support/loopback.h"

namespace slipstream::benchmarks {
namespace {

using Stub = v1::Coordinator::Stub;

constexpr absl::Duration kWarmUp = absl::Seconds(3);

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Serves until the process ends. Sends its port, and its CPU time whenever asked.
void Serve(grpc::Service& service, Pipe pipe) {
  grpc::ServerBuilder builder;
  ApplyTransportOptions(builder);
  const Loopback loopback = ServeOnLoopback(service, builder);
  Require(loopback.server != nullptr, "no port to listen on");
  pipe.Send(loopback.port);
  while (true) {
    pipe.Receive();
    pipe.Send(CpuSeconds());
  }
}

void ServeCoordinator(uint32_t workers, Pipe pipe) {
  spdlog::set_level(spdlog::level::err);  // Avoids a line for each worker.
  CoordinatorService::Options options;
  options.spec.cluster.servers = {"localhost:1"};
  options.spec.cluster.workers = workers;
  options.spec.cluster.lease = absl::Hours(1);
  options.spec.training.batch_size = 1;
  options.run = 7;
  options.settings = "settings";
  options.settings_difference = [](const std::string&) { return ""; };
  options.now = [] { return absl::Now(); };
  CoordinatorService service(options);
  Serve(service, pipe);
}

/// Answers the workers' regular requests with empty messages.
class EmptyService final : public v1::Coordinator::CallbackService {
 public:
  grpc::ServerBidiReactor<v1::HeartbeatRequest, v1::HeartbeatReply>* Heartbeat(
      grpc::CallbackServerContext* context) override {
    return Answer<v1::HeartbeatRequest, v1::HeartbeatReply>(
        context, [](const auto& request) { return request.wants_answer(); });
  }
  grpc::ServerBidiReactor<v1::GetWorkRequest, v1::GetWorkReply>* GetWork(
      grpc::CallbackServerContext* context) override {
    return Answer<v1::GetWorkRequest, v1::GetWorkReply>(context, [](const auto&) { return true; });
  }

 private:
  template <typename Request, typename Reply, typename Wants>
  QuestionStream<Request, Reply>* Answer(grpc::CallbackServerContext* context, Wants wants) {
    using Stream = QuestionStream<Request, Reply>;
    const auto ask = [wants](Stream& stream) {
      if (!wants(stream.request())) stream.OmitRepetition();
      stream.OnAnswer(absl::OkStatus());
    };
    return Stream::Start(context, {streams_, /*connections=*/nullptr, latest_}, ask,
                         [](Stream&) {});
  }

  OpenStreams streams_{CoordinatorService::kStreamsMax};
  LatestCalls latest_;
};

void ServeNothing(Pipe pipe) {
  EmptyService service;
  Serve(service, pipe);
}

template <typename Reply, typename Request>
Reply Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
           const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  Reply reply;
  const grpc::Status status = (stub.*method)(&context, request, &reply);
  Require(status.ok(), status.error_message());
  return reply;
}

/// A scripted server of shard 0.
class FakeServer {
 public:
  FakeServer(int port, uint32_t workers) : stub_(ConnectAlone(port)) {
    request_.set_address("localhost:1");
    request_.set_settings("settings");
    request_.set_instance(1);
    for (uint32_t id = 0; id < workers; ++id) {
      v1::ShardWorkerStatus& line = *request_.mutable_status()->add_workers();
      line.set_worker(id);
      line.set_pushes(1000 + id);
      line.set_mean_staleness(1);
    }
  }

  void Sync(uint32_t wait_ms) {
    request_.set_wait_ms(wait_ms);
    const auto reply = Call(*stub_, &Stub::SyncServer, request_);
    request_.set_orders_seen(reply.orders());
    request_.set_initialized(reply.phase() >= v1::INITIALIZING);
  }

 private:
  const std::unique_ptr<Stub> stub_;
  v1::SyncServerRequest request_;
};

std::vector<v1::Identity> StartTraining(int port, uint32_t workers, FakeServer& server) {
  const std::unique_ptr<Stub> stub = ConnectAlone(port);
  server.Sync(0);
  std::vector<v1::Identity> all(workers);
  for (v1::Identity& identity : all) {
    identity = Call(*stub, &Stub::Register, v1::RegisterRequest()).identity();
  }
  TensorLayout layout;
  Require(layout.Append("weights", {1000}).ok(), "layout");
  v1::PrepareModelRequest model;
  *model.mutable_identity() = all[0];
  *model.mutable_layout() = ToWire(layout);
  model.set_examples(10'000'000);
  model.set_wait_ms(1000);
  const v1::PrepareModelReply granted = Call(*stub, &Stub::PrepareModel, model);
  Require(granted.state() == v1::PrepareModelReply::GRANTED, "no grant");
  v1::FinishInitializationRequest finish;
  *finish.mutable_identity() = all[0];
  finish.set_grant(granted.grant());
  Call(*stub, &Stub::FinishInitialization, finish);
  for (int i = 0; i < 3; ++i) server.Sync(0);
  return all;
}

/// Sends the workers' messages for `seconds`, while `others` run on their own threads until the
/// time they are given. Prints the CPU time of the process behind `pipe`.
void Measure(const char* what, int port, const std::vector<v1::Identity>& all, int seconds,
             Pipe pipe, const std::vector<std::function<void(absl::Time end)>>& others) {
  ControlLoad load(port, all);
  load.SendUntil(absl::Now() + kWarmUp);
  const auto cpu_seconds = [&pipe] {
    pipe.Send(0);
    return pipe.Receive();
  };
  const double cpu_before = cpu_seconds();
  const absl::Time begin = absl::Now();
  const absl::Time end = begin + absl::Seconds(seconds);
  std::vector<std::thread> threads;
  for (const auto& other : others) threads.emplace_back(other, end);
  const uint64_t sent = load.SendUntil(end);
  absl::SleepFor(end - absl::Now());
  const double elapsed = absl::ToDoubleSeconds(absl::Now() - begin);
  const double cpu = cpu_seconds() - cpu_before;
  for (std::thread& thread : threads) thread.join();
  std::printf("%-17s workers %zu, messages/s %.0f, CPU seconds per second %.3f\n", what, all.size(),
              static_cast<double>(sent) / elapsed, cpu / elapsed);
}

void MeasureCoordinator(uint32_t workers, int seconds, Pipe pipe) {
  const int port = static_cast<int>(pipe.Receive());
  FakeServer server(port, workers);
  const std::vector<v1::Identity> all = StartTraining(port, workers, server);
  const auto report = [&server](absl::Time end) {
    while (absl::Now() < end) server.Sync(250);
  };
  const auto watch = [port, workers](absl::Time end) {
    const std::unique_ptr<Stub> stub = ConnectAlone(port);
    while (absl::Now() < end) {
      Require(Call(*stub, &Stub::GetStatus, v1::GetStatusRequest()).workers_size() ==
                  static_cast<int>(workers),
              "not all workers in the status");
      absl::SleepFor(absl::Seconds(1));
    }
  };
  Measure("coordinator", port, all, seconds, pipe, {report, watch});
}

void MeasureNothing(uint32_t workers, int seconds, Pipe pipe) {
  const int port = static_cast<int>(pipe.Receive());
  std::vector<v1::Identity> all(workers);
  for (uint32_t id = 0; id < workers; ++id) all[id].set_worker(id);
  Measure("an empty service", port, all, seconds, pipe, {});
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) {
  slipstream::TuneForTransfers();  // The programs do the same.
  using slipstream::benchmarks::Pipe;
  const int workers = argc > 1 ? std::atoi(argv[1]) : 1000;
  const int seconds = argc > 2 ? std::atoi(argv[2]) : 10;
  slipstream::benchmarks::Require(workers > 0 && workers <= 4096 && seconds > 0,
                                  "usage: coordinator_benchmark [workers] [seconds]");
  const slipstream::benchmarks::ChildProcess coordinator([workers](Pipe pipe) {
    slipstream::benchmarks::ServeCoordinator(static_cast<uint32_t>(workers), pipe);
  });
  const slipstream::benchmarks::ChildProcess nothing(slipstream::benchmarks::ServeNothing);
  const auto count = static_cast<uint32_t>(workers);
  slipstream::benchmarks::MeasureCoordinator(count, seconds, coordinator.pipe());
  slipstream::benchmarks::MeasureNothing(count, seconds, nothing.pipe());
  return 0;
}

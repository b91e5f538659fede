// What the coordinator costs with many workers: the real service in a process of its own, over gRPC
// on loopback, and scripted workers and a server in this one. Every worker sends a heartbeat each
// second, with progress, and asks for work every few; the server of shard 0 reports with a line for
// each worker, and somebody watches the status.
//
//   coordinator_benchmark [workers=1000] [seconds=10]
//
// The contender is a service that answers the workers' calls with nothing: what gRPC takes by
// itself. Prints for both the calls answered per second and the seconds of CPU time that the
// process took per second.

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <atomic>
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
#include "common/wire/control_wire.h"
#include "server/service/coordinator_service.h"
#include "tests/benchmarks/child_process.h"
#include "tests/support/loopback.h"

namespace slipstream::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;
using Stub = v1::Coordinator::Stub;

constexpr int kSenders = 4;
constexpr uint32_t kHeartbeatsPerRequestForWork = 5;

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Serves until the process ends: tells its port, and its CPU time whenever it is asked.
void Serve(grpc::Service& service, Pipe pipe) {
  const Loopback loopback = ServeOnLoopback(service);
  Require(loopback.server != nullptr, "no port to listen on");
  pipe.Send(loopback.port);
  while (true) {
    pipe.Receive();
    pipe.Send(CpuSeconds());
  }
}

void ServeCoordinator(uint32_t workers, Pipe pipe) {
  spdlog::set_level(spdlog::level::warn);  // Not a line for each worker.
  CoordinatorService::Options options;
  options.spec.cluster.servers = {"localhost:1"};
  options.spec.cluster.workers = workers;
  options.spec.cluster.lease = absl::Seconds(30);
  options.spec.training.batch_size = 1;
  options.run = 7;
  options.settings = "settings";
  options.settings_difference = [](const std::string&) { return ""; };
  options.now = [] { return absl::Now(); };
  CoordinatorService service(options);
  Serve(service, pipe);
}

/// Answers what workers call all the time with nothing.
class EmptyService final : public v1::Coordinator::CallbackService {
 public:
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest*, v1::HeartbeatReply*) override {
    return Answer(context);
  }
  grpc::ServerUnaryReactor* GetWork(grpc::CallbackServerContext* context, const v1::GetWorkRequest*,
                                    v1::GetWorkReply*) override {
    return Answer(context);
  }

 private:
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

void ServeNothing(Pipe pipe) {
  EmptyService service;
  Serve(service, pipe);
}

std::unique_ptr<Stub> Connect(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Coordinator::NewStub(grpc::CreateCustomChannel(
      "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
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

/// The scripted server of shard 0.
class FakeServer {
 public:
  FakeServer(int port, uint32_t workers) : stub_(Connect(port)) {
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

/// What one worker has been given and done.
struct Worker {
  v1::Identity identity;
  uint64_t unit = 0;
  uint64_t batches = 0;
  uint64_t done = 0;
};

std::vector<Worker> StartTraining(int port, uint32_t workers, FakeServer& server) {
  const std::unique_ptr<Stub> stub = Connect(port);
  server.Sync(0);
  std::vector<Worker> all(workers);
  for (Worker& worker : all) {
    worker.identity = Call(*stub, &Stub::Register, v1::RegisterRequest()).identity();
  }
  TensorLayout layout;
  Require(layout.Append("weights", {1000}).ok(), "layout");
  v1::PrepareModelRequest model;
  *model.mutable_identity() = all[0].identity;
  *model.mutable_layout() = ToWire(layout);
  model.set_examples(10'000'000);
  model.set_wait_ms(1000);
  const v1::PrepareModelReply granted = Call(*stub, &Stub::PrepareModel, model);
  Require(granted.state() == v1::PrepareModelReply::GRANTED, "no grant");
  v1::FinishInitializationRequest finish;
  *finish.mutable_identity() = all[0].identity;
  finish.set_grant(granted.grant());
  Call(*stub, &Stub::FinishInitialization, finish);
  for (int i = 0; i < 3; ++i) server.Sync(0);
  return all;
}

void TakeWork(Stub& stub, Worker& worker) {
  v1::GetWorkRequest request;
  *request.mutable_identity() = worker.identity;
  request.set_newest_unit(worker.unit);
  const v1::GetWorkReply reply = Call(stub, &Stub::GetWork, request);
  if (reply.state() != v1::GetWorkReply::UNIT) return;
  worker.unit = reply.unit();
  worker.batches = reply.batches();
  worker.done = 0;
}

void Beat(Stub& stub, Worker& worker) {
  if (worker.done < worker.batches) ++worker.done;
  v1::HeartbeatRequest request;
  *request.mutable_identity() = worker.identity;
  v1::WorkProgress& progress = *request.add_progress();
  progress.set_unit(worker.unit);
  progress.set_batches_done(worker.done);
  request.set_examples(worker.done);
  Call(stub, &Stub::Heartbeat, request);
}

/// Every kSenders-th worker from `first` on, one heartbeat a second each, evenly spread.
void Send(int port, std::vector<Worker>& workers, size_t first, Clock::time_point end,
          std::atomic<uint64_t>& calls) {
  const std::unique_ptr<Stub> stub = Connect(port);
  const size_t mine = (workers.size() + kSenders - 1 - first) / kSenders;
  const auto pause = std::chrono::nanoseconds(std::chrono::seconds(1)) / std::max<size_t>(1, mine);
  auto next = Clock::now();
  for (uint32_t second = 0; Clock::now() < end; ++second) {
    for (size_t i = first; i < workers.size() && Clock::now() < end; i += kSenders) {
      Beat(*stub, workers[i]);
      ++calls;
      if ((second + i) % kHeartbeatsPerRequestForWork == 0) {
        TakeWork(*stub, workers[i]);
        ++calls;
      }
      next += pause;
      std::this_thread::sleep_until(next);
    }
  }
}

/// The workers' calls for so long, with `others` running beside them until the time they are told.
/// Prints the CPU time of the process behind `pipe`.
void Measure(const char* what, int port, std::vector<Worker> all, int seconds, Pipe pipe,
             const std::vector<std::function<void(Clock::time_point end)>>& others) {
  const auto cpu_seconds = [&pipe] {
    pipe.Send(0);
    return pipe.Receive();
  };
  const double cpu_before = cpu_seconds();
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end = begin + std::chrono::seconds(seconds);
  std::atomic<uint64_t> calls = 0;
  std::vector<std::thread> threads;
  for (size_t sender = 0; sender < kSenders; ++sender) {
    threads.emplace_back([&, sender] { Send(port, all, sender, end, calls); });
  }
  for (const auto& other : others) threads.emplace_back(other, end);
  for (std::thread& thread : threads) thread.join();
  const double elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
  const double cpu = cpu_seconds() - cpu_before;
  std::printf("%-17s workers %zu, calls/s %.0f, CPU seconds per second %.3f\n", what, all.size(),
              static_cast<double>(calls) / elapsed, cpu / elapsed);
}

void MeasureCoordinator(uint32_t workers, int seconds, Pipe pipe) {
  const int port = static_cast<int>(pipe.Receive());
  FakeServer server(port, workers);
  const std::vector<Worker> all = StartTraining(port, workers, server);
  const auto report = [&server](Clock::time_point end) {
    while (Clock::now() < end) server.Sync(250);
  };
  const auto watch = [port, workers](Clock::time_point end) {
    const std::unique_ptr<Stub> stub = Connect(port);
    while (Clock::now() < end) {
      Require(Call(*stub, &Stub::GetStatus, v1::GetStatusRequest()).workers_size() ==
                  static_cast<int>(workers),
              "not all workers in the status");
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  };
  Measure("coordinator", port, all, seconds, pipe, {report, watch});
}

void MeasureNothing(uint32_t workers, int seconds, Pipe pipe) {
  const int port = static_cast<int>(pipe.Receive());
  Measure("an empty service", port, std::vector<Worker>(workers), seconds, pipe, {});
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) {
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

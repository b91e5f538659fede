// One worker exchanges a model with one shard over loopback TCP. The real service and client, whose
// payloads are borrowed slices, are compared with a service that uses a `bytes` field. Both apply
// SGD. Every server and every worker is a process of its own. The contenders take turns, round by
// round, and the ratio is that of the medians.
//
//   wire_benchmark [megabytes=64] [rounds=15]

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/rpc/library_settings.h"
#include "common/rpc/transport_options.h"
#include "common/wire/chunk_bytes.h"
#include "server/data_plane/shard_service.h"
#include "tests/benchmarks/child_process.h"
#include "tests/benchmarks/naive_exchange.h"
#include "tests/support/loopback.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/shard_client.h"
#include "worker/client/shard_exchange.h"

namespace slipstream::benchmarks {
namespace {

constexpr Identity kWorker = {1, WorkerId{0}, Incarnation{1}};

/// One worker's side of a contender.
class Worker {
 public:
  virtual ~Worker() = default;
  virtual void Step(std::span<const float> gradient, std::span<float> weights) = 0;
};

/// Sends the port, and serves until the process is killed.
void Serve(grpc::ServerBuilder& builder, grpc::Service& service, Pipe pipe) {
  const Loopback loopback = ServeOnLoopback(service, builder);
  Require(loopback.server != nullptr, "no port to listen on");
  pipe.Send(loopback.port);
  loopback.server->Wait();
}

std::string Address(int port) { return "127.0.0.1:" + std::to_string(port); }

/// Takes one step for each number received, and answers with the step's seconds.
void Work(Worker& worker, size_t values, Pipe pipe) {
  const std::vector<float> gradient(values, 1.0f);
  std::vector<float> weights(values, 0.0f);
  for (;;) {
    pipe.Receive();
    const auto begin = std::chrono::steady_clock::now();
    worker.Step(gradient, weights);
    pipe.Send(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
}

// The contender with a `bytes` field.

void ServeNaive(size_t values, Pipe pipe) {
  NaiveService service(values);
  grpc::ServerBuilder builder;
  AllowAnySize(builder);
  Serve(builder, service, pipe);
}

class NaiveWorker final : public Worker {
 public:
  explicit NaiveWorker(int port) : client_(Address(port)) {}

  void Step(std::span<const float> gradient, std::span<float> weights) override {
    const absl::Status status = client_.Exchange(gradient, weights);
    Require(status.ok(), "naive exchange: " + std::string(status.message()));
  }

 private:
  NaiveClient client_;
};

// The contender with the real service and client.

RunSpec Run() {
  RunSpec run;
  run.consistency.policy = ConsistencySpec::Policy::kAsync;
  run.optimizer.learning_rate = 1e-9;
  return run;
}

ServerOrders Orders(size_t values) {
  TensorLayout layout;
  Require(layout.Append("weight", {values}).ok(), "layout");
  ServerOrders orders;
  orders.number = 1;
  orders.run = kWorker.run;
  orders.phase = Phase::kInitializing;
  orders.model = ModelOrders{.layout = layout,
                             .shard_map = *ShardMap::Cut(layout, 1),
                             .batches_total = 1'000'000'000,
                             .batches_per_epoch = 1'000'000'000,
                             .examples_per_epoch = 1'000'000'000};
  orders.view = {ViewNumber{1}, {{kWorker.worker, kWorker.incarnation, true}}};
  orders.grant = 1;
  orders.initializer = kWorker;
  return orders;
}

/// Plays the coordinator: tells the shard that the initial weights may come, and then that training
/// has begun.
void ServeSlipstream(size_t values, Pipe pipe) {
  spdlog::set_level(spdlog::level::warn);
  TuneForTransfers();
  ShardService service({.run = Run()});
  ServerOrders orders = Orders(values);
  service.OnOrders(orders);
  std::thread trains([&service, orders]() mutable {
    while (!service.Initialized()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    orders.number = 2;
    orders.phase = Phase::kTraining;
    service.OnOrders(orders);
  });
  grpc::ServerBuilder builder;
  ApplyTransportOptions(builder);
  Serve(builder, service.data_plane(), pipe);
  trains.join();
}

class SlipstreamWorker final : public Worker {
 public:
  SlipstreamWorker(int port, size_t values)
      : client_(
            {.address = Address(port), .range = {0, values}},
            {.chunk_bytes = ChunkBytes(Run().wire.chunk_bytes, Orders(values).model->shard_map),
             .channel = {.transport = WireSpec::Transport::kTcp}},
            [](absl::Duration) { return true; }, cancel_),
        map_(Orders(values).model->shard_map.fingerprint()) {
    std::vector<float> weights(values, 0.0f);
    Require(client_.Initialize({kWorker, 1, map_, values}, weights).ok(), "initialise");
    const auto pulled = client_.Pull(
        {.identity = kWorker, .shard_map = map_, .trains = true, .sequence = sequence_},
        WeightsArrival(weights));
    Require(pulled.ok(), "pull: " + std::string(pulled.status().message()));
    base_ = pulled->header.version;
  }

  void Step(std::span<const float> gradient, std::span<float> weights) override {
    const ShardPush push = {.header = {.identity = kWorker,
                                       .sequence = sequence_,
                                       .shard_map = map_,
                                       .base = base_,
                                       .examples = 32,
                                       .pull = true},
                            .values = gradient};
    ShardExchange exchange(client_, push, WeightsArrival(weights));
    const auto answer = exchange.Next();
    const bool is_applied =
        answer.ok() && answer->has_value() && (*answer)->push.outcome == PushOutcome::kApplied;
    Require(is_applied && (*answer)->weights.has_value(), "exchange");
    base_ = (*answer)->weights->version;
    const auto end = exchange.Next();
    Require(end.ok() && !end->has_value(), "the weights did not come");
    sequence_ = Next(sequence_);
  }

 private:
  CancelSwitch cancel_;
  ShardClient client_;
  const uint64_t map_;
  Version base_{};
  Sequence sequence_{1};
};

double Median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

int Main(size_t megabytes, int rounds) {
  const size_t values = megabytes << 18;
  ChildProcess naive_server([&](Pipe pipe) { ServeNaive(values, pipe); });
  ChildProcess slipstream_server([&](Pipe pipe) { ServeSlipstream(values, pipe); });
  const int naive_port = static_cast<int>(naive_server.pipe().Receive());
  const int slipstream_port = static_cast<int>(slipstream_server.pipe().Receive());
  ChildProcess naive([&](Pipe pipe) {
    NaiveWorker worker(naive_port);
    Work(worker, values, pipe);
  });
  ChildProcess slipstream([&](Pipe pipe) {
    TuneForTransfers();
    SlipstreamWorker worker(slipstream_port, values);
    Work(worker, values, pipe);
  });

  const auto step = [](const ChildProcess& worker) {
    worker.pipe().Send(0);
    return worker.pipe().Receive();
  };
  std::vector<double> slipstream_seconds;
  std::vector<double> naive_seconds;
  for (int round = -2; round < rounds; ++round) {  // The first two rounds warm up.
    const double ours = step(slipstream);
    const double theirs = step(naive);
    if (round < 0) continue;
    slipstream_seconds.push_back(ours);
    naive_seconds.push_back(theirs);
  }
  const double gigabytes = 2.0 * static_cast<double>(values) * sizeof(float) / 1e9;
  const double ours = gigabytes / Median(slipstream_seconds);
  const double theirs = gigabytes / Median(naive_seconds);
  std::printf("%zu MB, %d rounds: slipstream %.2f GB/s, bytes field %.2f GB/s, ratio %.2f\n",
              megabytes, rounds, ours, theirs, ours / theirs);
  return 0;
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) {
  const size_t megabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  if (megabytes == 0 || rounds <= 0) {
    std::fprintf(stderr, "usage: wire_benchmark [megabytes] [rounds]\n");
    return 2;
  }
  return slipstream::benchmarks::Main(megabytes, rounds);
}

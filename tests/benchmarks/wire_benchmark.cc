// One worker exchanges a model with one shard over loopback TCP: the real service and client, whose
// payloads are borrowed slices, against a service with a `bytes` field. Both apply SGD. The
// contenders take turns, round by round; the ratio is that of the medians.
//
//   wire_benchmark [megabytes=64] [rounds=15]

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/layout/shard_map.h"
#include "common/layout/tensor_layout.h"
#include "common/rpc/transfer_allocator.h"
#include "common/rpc/transport_options.h"
#include "server/service/shard_service.h"
#include "tests/benchmarks/naive.grpc.pb.h"
#include "worker/client/cancel_switch.h"
#include "worker/client/shard_client.h"

namespace slipstream {
namespace {

constexpr Identity kWorker = {1, WorkerId{0}, Incarnation{1}};

void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "wire_benchmark: %s\n", what.c_str());
  std::exit(1);
}

/// The service of a first attempt.
class NaiveService final : public benchmarks::Naive::Service {
 public:
  explicit NaiveService(size_t values) : weights_(values) {}

  grpc::Status Exchange(grpc::ServerContext*, const benchmarks::NaiveValues* request,
                        benchmarks::NaiveValues* reply) override {
    const auto* gradient = reinterpret_cast<const float*>(request->values().data());
    for (size_t i = 0; i < weights_.size(); ++i) weights_[i] -= 1e-9f * gradient[i];
    reply->set_values(weights_.data(), weights_.size() * sizeof(float));
    return grpc::Status::OK;
  }

 private:
  std::vector<float> weights_;
};

std::unique_ptr<grpc::Server> Serve(grpc::Service& service, int& port) {
  grpc::ServerBuilder builder;
  ApplyTransportOptions(builder);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  return builder.BuildAndStart();
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

/// One step of a contender, in seconds.
double Time(const std::function<void()>& step) {
  const auto begin = std::chrono::steady_clock::now();
  step();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double Median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

int Main(size_t megabytes, int rounds) {
  const size_t values = megabytes << 18;
  std::vector<float> gradient(values, 1.0f);
  std::vector<float> weights(values, 0.0f);

  int naive_port = 0;
  NaiveService naive(values);
  const auto naive_server = Serve(naive, naive_port);
  grpc::ChannelArguments arguments = ClientArguments();
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  const auto naive_stub = benchmarks::Naive::NewStub(grpc::CreateCustomChannel(
      "127.0.0.1:" + std::to_string(naive_port), grpc::InsecureChannelCredentials(), arguments));

  int port = 0;
  RunSpec run;
  run.consistency.policy = ConsistencySpec::Policy::kAsync;
  run.optimizer.learning_rate = 1e-9;
  ShardService service({.run = run});
  ServerOrders orders = Orders(values);
  service.OnOrders(orders);
  const auto server = Serve(service, port);
  CancelSwitch cancel;
  ShardClient client("127.0.0.1:" + std::to_string(port), {.chunk_bytes = run.wire.chunk_bytes},
                     cancel);
  const uint64_t map = orders.model->shard_map.fingerprint();
  Require(client.Initialize({kWorker, 1, map, values}, weights).ok(), "initialise");
  Require(client.AwaitReturn(absl::Seconds(10)).ok(), "initial values were not returned");
  orders.number = 2;
  orders.phase = Phase::kTraining;
  service.OnOrders(orders);
  const auto pulled = client.Pull({kWorker, map, Version{}, true, 0}, weights);
  Require(pulled.ok(), "pull");

  Version base = pulled->version;
  Sequence sequence{1};
  const auto slipstream_step = [&] {
    const PushHeader header = {.identity = kWorker,
                               .sequence = sequence,
                               .shard_map = map,
                               .base = base,
                               .count = values,
                               .examples = 32,
                               .pull = true};
    const auto answer = client.Exchange(header, gradient, weights);
    Require(answer.ok() && answer->push.outcome == PushOutcome::kApplied, "exchange");
    Require(client.AwaitReturn(absl::Seconds(10)).ok(), "the gradient was not returned");
    base = answer->weights->version;
    sequence = Next(sequence);
  };
  const auto naive_step = [&] {
    grpc::ClientContext context;
    benchmarks::NaiveValues request;
    benchmarks::NaiveValues reply;
    request.set_values(gradient.data(), values * sizeof(float));
    Require(naive_stub->Exchange(&context, request, &reply).ok(), "naive exchange");
    std::memcpy(weights.data(), reply.values().data(), values * sizeof(float));
  };

  std::vector<double> slipstream_seconds;
  std::vector<double> naive_seconds;
  for (int round = -2; round < rounds; ++round) {  // Two rounds to warm up.
    const double slipstream = Time(slipstream_step);
    const double by_bytes = Time(naive_step);
    if (round < 0) continue;
    slipstream_seconds.push_back(slipstream);
    naive_seconds.push_back(by_bytes);
  }
  const double gigabytes = 2.0 * static_cast<double>(values) * sizeof(float) / 1e9;
  const double ours = gigabytes / Median(slipstream_seconds);
  const double theirs = gigabytes / Median(naive_seconds);
  std::printf("%zu MB, %d rounds: slipstream %.2f GB/s, bytes field %.2f GB/s, ratio %.2f\n",
              megabytes, rounds, ours, theirs, ours / theirs);
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  slipstream::TuneAllocatorForTransfers();
  const size_t megabytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  if (megabytes == 0 || rounds <= 0) {
    std::fprintf(stderr, "usage: wire_benchmark [megabytes] [rounds]\n");
    return 2;
  }
  return slipstream::Main(megabytes, rounds);
}

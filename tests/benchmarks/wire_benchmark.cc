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
#include <optional>
#include <span>
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

std::unique_ptr<grpc::Server> Serve(grpc::ServerBuilder& builder, grpc::Service& service,
                                    int& port) {
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

/// The contender with a `bytes` field: its server, and one step of its worker.
class NaiveContender {
 public:
  explicit NaiveContender(size_t values) : service_(values) {
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    int port = 0;
    server_ = Serve(builder, service_, port);
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    stub_ = benchmarks::Naive::NewStub(grpc::CreateCustomChannel(
        "127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials(), arguments));
  }

  void Step(std::span<const float> gradient, std::span<float> weights) {
    grpc::ClientContext context;
    benchmarks::NaiveValues request;
    benchmarks::NaiveValues reply;
    request.set_values(gradient.data(), gradient.size_bytes());
    const grpc::Status status = stub_->Exchange(&context, request, &reply);
    Require(status.ok(), "naive exchange: " + status.error_message());
    std::memcpy(weights.data(), reply.values().data(), weights.size_bytes());
  }

 private:
  NaiveService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<benchmarks::Naive::Stub> stub_;
};

/// The contender with the real service and client.
class SlipstreamContender {
 public:
  explicit SlipstreamContender(size_t values) : service_({.run = Run()}), orders_(Orders(values)) {
    grpc::ServerBuilder builder;
    ApplyTransportOptions(builder);
    int port = 0;
    server_ = Serve(builder, service_, port);
    client_.emplace("127.0.0.1:" + std::to_string(port),
                    ShardClient::Options{.chunk_bytes = Run().wire.chunk_bytes}, cancel_);
    map_ = orders_.model->shard_map.fingerprint();
    service_.OnOrders(orders_);
    Initialize(values);
  }

  void Step(std::span<const float> gradient, std::span<float> weights) {
    const PushHeader header = {.identity = kWorker,
                               .sequence = sequence_,
                               .shard_map = map_,
                               .base = base_,
                               .count = gradient.size(),
                               .examples = 32,
                               .pull = true};
    const auto answer = client_->Exchange(header, gradient, weights);
    Require(answer.ok() && answer->push.outcome == PushOutcome::kApplied, "exchange");
    Require(client_->AwaitReturn(absl::Seconds(10)).ok(), "the gradient was not returned");
    base_ = answer->weights->version;
    sequence_ = Next(sequence_);
  }

 private:
  static RunSpec Run() {
    RunSpec run;
    run.consistency.policy = ConsistencySpec::Policy::kAsync;
    run.optimizer.learning_rate = 1e-9;
    return run;
  }

  void Initialize(size_t values) {
    std::vector<float> weights(values, 0.0f);
    Require(client_->Initialize({kWorker, 1, map_, values}, weights).ok(), "initialise");
    Require(client_->AwaitReturn(absl::Seconds(10)).ok(), "the weights were not returned");
    orders_.number = 2;
    orders_.phase = Phase::kTraining;
    service_.OnOrders(orders_);
    const auto pulled = client_->Pull({kWorker, map_, Version{}, true, 0}, weights);
    Require(pulled.ok(), "pull");
    base_ = pulled->version;
  }

  ShardService service_;
  ServerOrders orders_;
  std::unique_ptr<grpc::Server> server_;
  CancelSwitch cancel_;
  std::optional<ShardClient> client_;
  uint64_t map_ = 0;
  Version base_{};
  Sequence sequence_{1};
};

int Main(size_t megabytes, int rounds) {
  const size_t values = megabytes << 18;
  const std::vector<float> gradient(values, 1.0f);
  std::vector<float> weights(values, 0.0f);
  NaiveContender naive(values);
  SlipstreamContender slipstream(values);

  std::vector<double> slipstream_seconds;
  std::vector<double> naive_seconds;
  for (int round = -2; round < rounds; ++round) {  // Two rounds to warm up.
    const double ours = Time([&] { slipstream.Step(gradient, weights); });
    const double theirs = Time([&] { naive.Step(gradient, weights); });
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

#ifndef SLIPSTREAM_TESTS_BENCHMARKS_NAIVE_EXCHANGE_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_NAIVE_EXCHANGE_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/benchmarks/naive.grpc.pb.h"

namespace slipstream::benchmarks {

/// A parameter server as a first attempt would be: values in a `bytes` field, SGD within the call.
///
/// Thread-safe: guarded by its own mutex.
class NaiveService final : public Naive::Service {
 public:
  explicit NaiveService(size_t values) : weights_(values) {}

  grpc::Status Exchange(grpc::ServerContext* context, const NaiveValues* request,
                        NaiveValues* reply) override;

 private:
  std::mutex mutex_;
  std::vector<float> weights_;
};

/// Allows messages of any size, as whole models are sent in one message.
void AllowAnySize(grpc::ServerBuilder& builder);

/// The client of NaiveService. Not thread-safe: one owner.
class NaiveClient {
 public:
  /// `address` is host:port.
  explicit NaiveClient(const std::string& address);

  absl::Status Exchange(std::span<const float> gradient, std::span<float> weights);

 private:
  std::unique_ptr<Naive::Stub> stub_;
};

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_NAIVE_EXCHANGE_H_

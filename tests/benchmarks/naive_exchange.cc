#include "tests/benchmarks/naive_exchange.h"

#include <cstring>

namespace slipstream::benchmarks {

grpc::Status NaiveService::Exchange(grpc::ServerContext*, const NaiveValues* request,
                                    NaiveValues* reply) {
  const std::lock_guard lock(mutex_);
  if (request->values().size() != weights_.size() * sizeof(float)) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "another model"};
  }
  const auto* gradient = reinterpret_cast<const float*>(request->values().data());
  for (size_t i = 0; i < weights_.size(); ++i) weights_[i] -= 1e-9f * gradient[i];
  reply->set_values(weights_.data(), weights_.size() * sizeof(float));
  return grpc::Status::OK;
}

void AllowAnySize(grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
}

NaiveClient::NaiveClient(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // Without this, channels with equal arguments to one address would share a connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  stub_ = Naive::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

absl::Status NaiveClient::Exchange(std::span<const float> gradient, std::span<float> weights) {
  grpc::ClientContext context;
  NaiveValues request;
  NaiveValues reply;
  request.set_values(gradient.data(), gradient.size_bytes());
  const grpc::Status status = stub_->Exchange(&context, request, &reply);
  if (!status.ok()) return absl::UnavailableError(status.error_message());
  std::memcpy(weights.data(), reply.values().data(), weights.size_bytes());
  return absl::OkStatus();
}

}  // namespace slipstream::benchmarks

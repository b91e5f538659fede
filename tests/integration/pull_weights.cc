// Pulls the weights that the servers of a run hold, as a reader that never pushes, and writes them
// as raw little-endian fp32 in layout order. The servers are given in the order of their shards.
//
//   pull_weights FILE host:port…

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

#include "proto/shard.grpc.pb.h"

namespace {

int Pull(const std::string& address, std::ofstream& file) {
  const auto stub = slipstream::v1::Shard::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  auto reader = stub->Pull(&context, slipstream::v1::PullRequest());
  for (slipstream::v1::WeightsChunk chunk; reader->Read(&chunk);) {
    file.write(chunk.values().data(), static_cast<std::streamsize>(chunk.values().size()));
  }
  const grpc::Status status = reader->Finish();
  if (status.ok()) return 0;
  std::cerr << "pull_weights: " << address << ": " << status.error_message() << "\n";
  return 69;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::ofstream file(argv[1], std::ios::binary);
  for (int i = 2; i < argc; ++i) {
    if (const int failed = Pull(argv[i], file); failed != 0) return failed;
  }
  return file ? 0 : 74;
}

// Shows the limit of sockets. A server applies an update between receiving a gradient and answering
// with weights, without versions, checks or identity. A worker has one stream to each server.
//
//   raw_probe serve --listen ADDRESS --bytes N [--rule sgd|momentum|adam]
//   raw_probe work --servers ADDRESS,… --bytes N
//   raw_probe ping --servers ADDRESS
//
// Addresses are those of socket_stream.h. A server prints `ready ADDRESS`. For `serve`, N is the
// size of the server's part of the model; for `work`, the size of the whole model, of which the
// servers hold equal parts. Workers take the commands of exchange_commands.h. An exchange is a
// push, its acknowledgement, and a pull, or with `ping` 64 bytes each way.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/benchmarks/exchange_commands.h"
#include "tests/benchmarks/raw_part.h"
#include "tests/benchmarks/server_lanes.h"
#include "tests/benchmarks/socket_stream.h"

namespace slipstream::benchmarks {
namespace {

enum class Operation : uint64_t { kPush, kPull, kPing };

/// The header of every request, and the acknowledgement of a push. It is padded to the 64 bytes of
/// a ping.
struct Header {
  Operation operation;
  uint64_t bytes = 0;
  uint64_t padding[6] = {};
};
static_assert(sizeof(Header) == 64);

/// The size of the pieces in which a gradient is received and applied. A piece fits into the cache.
constexpr size_t kPieceValues = size_t{64} << 10;

bool ReceivePush(SocketStream& stream, RawPart& part, std::vector<float>& piece, size_t values) {
  for (size_t begin = 0; begin < values; begin += piece.size()) {
    const size_t count = std::min(piece.size(), values - begin);
    if (!stream.Read(piece.data(), count * sizeof(float))) return false;
    part.Apply(begin, std::span(piece).first(count));
  }
  return true;
}

void ServeStream(SocketStream stream, RawPart& part) {
  std::vector<float> piece(kPieceValues);
  Header header;
  while (stream.Read(&header, sizeof header)) {
    const std::span<const float> weights = part.weights();
    bool is_sent = false;
    if (header.operation == Operation::kPull) {
      is_sent = stream.Write(weights.data(), weights.size_bytes());
    } else {
      if (header.operation == Operation::kPush &&
          !ReceivePush(stream, part, piece, weights.size())) {
        return;
      }
      is_sent = stream.Write(&header, sizeof header);
    }
    if (!is_sent) return;
  }
}

[[noreturn]] void Serve(const std::string& address, size_t bytes, const std::string& rule) {
  std::vector<float> weights(bytes / sizeof(float), 0.0f);
  std::vector<std::vector<float>> state(StateArrays(rule), weights);
  RawPart part(weights, {state.begin(), state.end()});
  SocketListener listener(address);
  std::cout << "ready " << listener.address() << std::endl;
  // The threads run until the process ends.
  std::thread([&listener, &part] {
    for (;;) {
      std::thread([stream = listener.Accept(), &part]() mutable {
        ServeStream(std::move(stream), part);
      }).detach();
    }
  }).detach();
  AwaitEndOfCommands();
  std::_Exit(0);
}

absl::Status Broken() { return absl::UnavailableError("the stream is broken"); }

int Work(const std::vector<std::string>& servers, size_t bytes) {
  const size_t part = bytes / sizeof(float) / servers.size();
  const std::vector<float> gradient(part * servers.size(), 1.0f);
  std::vector<float> weights(gradient.size(), 0.0f);
  std::vector<SocketStream> streams(servers.begin(), servers.end());
  ServerLanes lanes(servers.size());
  const auto exchange = [&](size_t server) {
    SocketStream& stream = streams[server];
    const size_t size = part * sizeof(float);
    Header header = {Operation::kPush, size};
    const bool is_pushed = stream.Write(&header, sizeof header) &&
                           stream.Write(gradient.data() + part * server, size) &&
                           stream.Read(&header, sizeof header);
    header.operation = Operation::kPull;
    const bool is_pulled = is_pushed && stream.Write(&header, sizeof header) &&
                           stream.Read(weights.data() + part * server, size);
    return is_pulled ? absl::OkStatus() : Broken();
  };
  return ServeCommands([&] { return lanes.Run(exchange); });
}

int Ping(const std::string& server) {
  SocketStream stream(server);
  return ServeCommands([&stream] {
    Header header = {Operation::kPing};
    const bool is_answered =
        stream.Write(&header, sizeof header) && stream.Read(&header, sizeof header);
    return is_answered ? absl::OkStatus() : Broken();
  });
}

int Main(int argc, char** argv) {
  CLI::App app("Exchanges over plain sockets.", "raw_probe");
  app.require_subcommand(1);
  std::string listen;
  std::string rule = "sgd";
  size_t bytes = 0;
  std::vector<std::string> servers;
  CLI::App* serve = app.add_subcommand("serve", "Serves one part of the model");
  serve->add_option("--listen", listen, "host:port, or unix:PATH")->required();
  serve->add_option("--bytes", bytes, "Of its part")->required();
  serve->add_option("--rule", rule, "Of the update")
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}));
  CLI::App* work = app.add_subcommand("work", "Exchanges gradients for weights on command");
  work->add_option("--servers", servers, "Their addresses")->required()->delimiter(',');
  work->add_option("--bytes", bytes, "Of the model")->required();
  CLI::App* ping = app.add_subcommand("ping", "Sends 64 bytes and waits for 64, on command");
  ping->add_option("--servers", servers, "The server's address")->required()->expected(1);
  CLI11_PARSE(app, argc, argv);
  if (*serve) Serve(listen, bytes, rule);
  return *work ? Work(servers, bytes) : Ping(servers.front());
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) { return slipstream::benchmarks::Main(argc, argv); }

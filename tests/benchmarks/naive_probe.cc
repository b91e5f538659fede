// The contender with a `bytes` field. An exchange is one call to each server.
//
//   naive_probe serve --bytes N
//   naive_probe work --servers HOST:PORT,… --bytes N
//
// For `serve`, N is the size of the server's part of the model; for `work`, the size of the whole
// model. A server prints `ready HOST:PORT`. Workers take the commands of exchange_commands.h.

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "tests/benchmarks/child_process.h"
#include "tests/benchmarks/exchange_commands.h"
#include "tests/benchmarks/naive_exchange.h"
#include "tests/benchmarks/server_lanes.h"
#include "tests/support/loopback.h"

namespace slipstream::benchmarks {
namespace {

[[noreturn]] void Serve(size_t bytes) {
  NaiveService service(bytes / sizeof(float));
  grpc::ServerBuilder builder;
  AllowAnySize(builder);
  const Loopback loopback = ServeOnLoopback(service, builder);
  Require(loopback.server != nullptr, "no port to listen on");
  std::cout << "ready " << loopback.address() << std::endl;
  AwaitEndOfCommands();
  std::_Exit(0);
}

int Work(const std::vector<std::string>& servers, size_t bytes) {
  const size_t part = bytes / sizeof(float) / servers.size();
  const std::vector<float> gradient(part * servers.size(), 1.0f);
  std::vector<float> weights(gradient.size(), 0.0f);
  std::vector<NaiveClient> clients(servers.begin(), servers.end());
  ServerLanes lanes(servers.size());
  const auto exchange = [&](size_t server) {
    const size_t begin = part * server;
    return clients[server].Exchange(std::span(gradient).subspan(begin, part),
                                    std::span(weights).subspan(begin, part));
  };
  return ServeCommands([&] { return lanes.Run(exchange); });
}

int Main(int argc, char** argv) {
  CLI::App app("Exchanges by a `bytes` field of an ordinary message.", "naive_probe");
  app.require_subcommand(1);
  size_t bytes = 0;
  std::vector<std::string> servers;
  CLI::App* serve = app.add_subcommand("serve", "Serves one part of the model");
  serve->add_option("--bytes", bytes, "Of its part")->required();
  CLI::App* work = app.add_subcommand("work", "Exchanges gradients for weights on command");
  work->add_option("--servers", servers, "Their addresses")->required()->delimiter(',');
  work->add_option("--bytes", bytes, "Of the model")->required();
  CLI11_PARSE(app, argc, argv);
  if (*serve) Serve(bytes);
  return Work(servers, bytes);
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) { return slipstream::benchmarks::Main(argc, argv); }

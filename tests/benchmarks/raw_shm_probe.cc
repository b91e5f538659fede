// Shows the limit of shared memory. A server applies an update to weights in memory that it shares
// with its workers, without versions, checks or identity. A worker copies its gradient in, waits
// until the server has applied it, and copies the weights out.
//
//   raw_shm_probe serve --workers W --bytes N [--rule sgd|momentum|adam]
//   raw_shm_probe work --servers ADDRESS,… --bytes N
//
// A server prints `ready ADDRESS`. For `serve`, N is the size of the server's part of the model;
// for `work`, the size of the whole model, of which the servers hold equal parts. Workers take the
// commands of exchange_commands.h. Like Slipstream's, arrays lie on large pages if there are any.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/memory/aligned_buffer.h"
#include "tests/benchmarks/child_process.h"
#include "tests/benchmarks/exchange_commands.h"
#include "tests/benchmarks/raw_part.h"
#include "tests/benchmarks/server_lanes.h"
#include "tests/benchmarks/shared_segment.h"

namespace slipstream::benchmarks {
namespace {

/// The length of one part of a wait. After each part a worker checks whether its server still runs.
constexpr std::chrono::seconds kLookInterval(1);

/// The longest wait for one piece, in parts; it also suffices on an overloaded machine.
constexpr int kLooksMax = 30;

/// Returns the piece that begins at `begin`.
template <typename Value>
std::span<Value> PieceAt(std::span<Value> values, size_t begin) {
  return values.subspan(begin, std::min(SharedLane::kPieceValues, values.size() - begin));
}

/// Applies one worker's pushes until the process ends.
[[noreturn]] void ServeLane(SharedLane& lane, RawPart& part) {
  for (uint32_t count = 0;;) {
    for (size_t begin = 0; begin < part.weights().size(); begin += SharedLane::kPieceValues) {
      const auto& slot = lane.ring[count % SharedLane::kPieces];
      ++count;
      // A worker may take any time: it may be waiting for its next command.
      while (!lane.sent.Await(count, kLookInterval)) {
      }
      part.Apply(begin, std::span(slot).first(PieceAt(part.weights(), begin).size()));
      lane.applied.Raise();
    }
  }
}

[[noreturn]] void Serve(uint32_t workers, size_t bytes, const std::string& rule) {
  const size_t values = bytes / sizeof(float);
  Require(workers > 0 && values > 0, "a server needs a worker and a value");
  const SharedSegment segment(workers, values);
  std::vector<AlignedBuffer<float>> state;
  std::vector<std::span<float>> state_spans;
  for (size_t i = 0; i < StateArrays(rule); ++i) {
    state_spans.push_back(state.emplace_back(values).span());
  }
  RawPart part(segment.weights(), state_spans);
  // The threads run until the process ends.
  for (uint32_t worker = 0; worker < workers; ++worker) {
    std::thread([&lane = segment.lane(worker), &part] { ServeLane(lane, part); }).detach();
  }
  std::cout << "ready " << segment.address() << std::endl;
  AwaitEndOfCommands();
  std::_Exit(0);
}

/// A worker's connection to one server.
///
/// Not thread-safe: one owner.
class ServerConnection {
 public:
  explicit ServerConnection(const std::string& address)
      : segment_(address), lane_(segment_.TakeLane()) {}

  size_t values() const { return segment_.weights().size(); }

  absl::Status Push(std::span<const float> gradient) {
    for (size_t begin = 0; begin < gradient.size(); begin += SharedLane::kPieceValues) {
      // The slot is free once the piece that used it before has been applied.
      const absl::Status freed = AwaitApplied(sent_ + 1 - SharedLane::kPieces);
      if (!freed.ok()) return freed;
      const std::span<const float> piece = PieceAt(gradient, begin);
      std::memcpy(lane_.ring[sent_ % SharedLane::kPieces].data(), piece.data(), piece.size_bytes());
      ++sent_;
      lane_.sent.Raise();
    }
    return AwaitApplied(sent_);
  }

  void Pull(std::span<float> weights) const {
    std::memcpy(weights.data(), segment_.weights().data(), weights.size_bytes());
  }

 private:
  absl::Status AwaitApplied(uint32_t count) {
    for (int looks = 0; looks < kLooksMax; ++looks) {
      if (lane_.applied.Await(count, kLookInterval)) return absl::OkStatus();
      if (access(segment_.address().c_str(), F_OK) != 0) {
        return absl::UnavailableError("the server of " + segment_.address() + " has ended");
      }
    }
    return absl::DeadlineExceededError("the server of " + segment_.address() + " does not answer");
  }

  const SharedSegment segment_;
  SharedLane& lane_;
  uint32_t sent_ = 0;  // The number of pieces sent, counted like lane_.sent.
};

int Work(const std::vector<std::string>& addresses, size_t bytes) {
  const size_t part = bytes / sizeof(float) / addresses.size();
  AlignedBuffer<float> gradient(part * addresses.size());
  AlignedBuffer<float> weights(gradient.size());
  std::ranges::fill(gradient.span(), 1.0f);
  std::vector<std::unique_ptr<ServerConnection>> servers;
  for (const std::string& address : addresses) {
    servers.push_back(std::make_unique<ServerConnection>(address));
    Require(servers.back()->values() == part, address + " holds a part of another size");
  }
  ServerLanes lanes(servers.size());
  return ServeCommands([&] {
    return lanes.Run([&](size_t number) {
      ServerConnection& server = *servers[number];
      const size_t begin = part * number;
      const absl::Status pushed = server.Push(gradient.span().subspan(begin, part));
      if (pushed.ok()) server.Pull(weights.span().subspan(begin, part));
      return pushed;
    });
  });
}

int Main(int argc, char** argv) {
  CLI::App app("Exchanges through plain shared memory.", "raw_shm_probe");
  app.require_subcommand(1);
  uint32_t workers = 1;
  size_t bytes = 0;
  std::string rule = "sgd";
  std::vector<std::string> servers;
  CLI::App* serve = app.add_subcommand("serve", "Serves one part of the model");
  serve->add_option("--workers", workers, "The number of workers that will come")->required();
  serve->add_option("--bytes", bytes, "The size of its part")->required();
  serve->add_option("--rule", rule, "The rule of the update")
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}));
  CLI::App* work = app.add_subcommand("work", "Exchanges gradients for weights on command");
  work->add_option("--servers", servers, "Their addresses")->required()->delimiter(',');
  work->add_option("--bytes", bytes, "The size of the model")->required();
  CLI11_PARSE(app, argc, argv);
  if (*serve) Serve(workers, bytes, rule);
  return Work(servers, bytes);
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) { return slipstream::benchmarks::Main(argc, argv); }

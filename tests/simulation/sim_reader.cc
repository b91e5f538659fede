#include "tests/simulation/sim_reader.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "worker/core/call_tries.h"

namespace slipstream {
namespace {

// The first of the streams of draws of a seed's readers, one each.
constexpr uint64_t kReaderStreams = 3000;

}  // namespace

SimReader::SimReader(const SimWorld& world, uint64_t number, const ReaderPlan& plan)
    : world_(world),
      number_(number),
      plan_(plan),
      process_(std::make_shared<Process>()),
      chance_(world.scenario.seed, kReaderStreams + number),
      calls_(world, process_, kReaderStreams + number) {
  lane_ = std::make_unique<ShardLane>(
      ShardId{0}, process_, world_.queue, world_.network,
      PushTries::Options{.retry = {.give_up_after = absl::InfiniteDuration()},
                         .seed = kReaderStreams + number});
}

void SimReader::Start() {
  world_.queue.After(plan_.comes, [this] { Tell(); });
  if (plan_.dies.has_value()) {
    world_.queue.After(plan_.comes + *plan_.dies, [this] {
      if (!is_dead()) End();
    });
  }
}

void SimReader::Tell() {
  v1::FollowRequest report;
  report.set_instance(number_ + 1);
  report.set_host("host");
  report.set_name("reader");
  report.set_lag_max(plan_.lag_max);
  report.set_wants_model(!map_.has_value());
  if (held_.has_value()) report.set_held_version(Value(held_->version));
  report.set_leaves(is_over_);
  calls_.Call<v1::FollowReply>(Method::kFollow, report,
                               [this](const absl::StatusOr<v1::FollowReply>& reply) {
                                 PS_CHECK(reply.ok());
                                 OnTold(*reply);
                               });
}

void SimReader::OnTold(const v1::FollowReply& reply) {
  if (is_over_) return End();
  if (reply.has_layout() && !map_.has_value()) {
    map_ = FromWire(reply.shard_map(), FromWire(reply.layout()).value()).value();
    weights_.resize(map_->range(ShardId{0}).size());
    Read();
  }
  is_over_ = reply.phase() == v1::FINISHED || reply.phase() == v1::FAILED;
  const absl::Duration pause =
      is_over_ ? absl::ZeroDuration() : world_.scenario.run.cluster.lease / 3;
  world_.network.AtProcess(process_, world_.queue.now() + pause, [this] { Tell(); });
}

void SimReader::Read() {
  if (is_over_) return;
  PullRequest request = {.shard_map = map_->fingerprint(), .reader = number_ + 1};
  if (held_.has_value()) {
    request.min_generation = held_->generation;
    request.min_version = Next(held_->version);
  }
  lane_->Pull(
      request, weights_,
      [this](const absl::StatusOr<std::optional<WeightsHeader>>& weights) { OnRead(weights); });
}

void SimReader::OnRead(const absl::StatusOr<std::optional<WeightsHeader>>& weights) {
  if (weights.ok()) held_ = GenerationVersion{(*weights)->generation, (*weights)->version};
  const absl::Duration pause = chance_.Time(absl::ZeroDuration(), plan_.pause_max);
  // This runs inside the lane's callback.
  world_.network.AtProcess(process_, world_.queue.now() + pause, [this] { Read(); });
}

void SimReader::End() {
  process_->is_dead = true;
  calls_.Close();
  lane_->Close();
  world_.network.DropAllOf(process_);
}

std::string SimReader::Describe() const {
  if (is_dead()) return fmt::format("reader {} has ended", number_);
  return fmt::format("reader {} holds {}", number_, held_.has_value() ? Value(held_->version) : 0);
}

}  // namespace slipstream

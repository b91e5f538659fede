#include "worker/core/weights_reading.h"

#include <algorithm>
#include <utility>

namespace slipstream {
namespace {

constexpr int kTriesMax = 5;

std::pair<Generation, Version> AgeOf(const WeightsHeader& header) {
  return {header.generation, header.version};
}

bool IsOfRounds(const WeightsHeader& header) {
  return header.stamp.has_value() && header.stamp->publisher == Incarnation{};
}

}  // namespace

WeightsReading::WeightsReading(const Identity& identity, uint64_t shard_map, uint32_t shards)
    : request_{.identity = identity, .shard_map = shard_map},
      headers_(shards),
      tries_left_(kTriesMax) {
  for (uint32_t i = 0; i < shards; ++i) due_.push_back(ShardId{i});
}

void WeightsReading::OnPulled(ShardId shard, const WeightsHeader& header) {
  headers_.at(Value(shard)) = header;
}

void WeightsReading::GoOn() {
  due_.clear();
  if (tries_left_-- == 0 || !std::ranges::all_of(headers_, IsOfRounds)) return;
  const auto newest = AgeOf(std::ranges::max(headers_, {}, AgeOf));
  for (uint32_t i = 0; i < headers_.size(); ++i) {
    if (AgeOf(headers_[i]) < newest) due_.push_back(ShardId{i});
  }
  request_.min_generation = newest.first;
  request_.min_version = newest.second;
}

}  // namespace slipstream

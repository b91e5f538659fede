#include "server/storage/checkpoint_paths.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

namespace slipstream {
namespace {

constexpr std::string_view kShard = "shard-";
constexpr std::string_view kCheckpoint = "checkpoint-";
constexpr std::string_view kSegment = "log-";

/// Reads a number from the begin of `text`, and removes it there.
template <typename Number>
std::optional<Number> TakeNumber(std::string_view& text, int base = 10) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

std::string RunDirectoryName(uint64_t run) { return fmt::format("{:016x}", run); }

std::string ShardDirectoryName(ShardId shard) { return fmt::format("{}{}", kShard, Value(shard)); }

std::string CheckpointDirectoryName(const CheckpointName& name) {
  return fmt::format("{}{}-{}", kCheckpoint, Value(name.generation), Value(name.version));
}

std::string SegmentName(uint64_t number) { return fmt::format("{}{}", kSegment, number); }

// Each compares with the name that it would write, and so refuses other ways to write the number.

std::optional<uint64_t> ParseRunDirectoryName(std::string_view name) {
  std::string_view rest = name;
  const auto run = TakeNumber<uint64_t>(rest, 16);
  if (!run || RunDirectoryName(*run) != name) return std::nullopt;
  return run;
}

std::optional<ShardId> ParseShardDirectoryName(std::string_view name) {
  if (!name.starts_with(kShard)) return std::nullopt;
  std::string_view rest = name.substr(kShard.size());
  const auto shard = TakeNumber<uint32_t>(rest);
  if (!shard || ShardDirectoryName(ShardId{*shard}) != name) return std::nullopt;
  return ShardId{*shard};
}

std::optional<CheckpointName> ParseCheckpointDirectoryName(std::string_view name) {
  if (!name.starts_with(kCheckpoint)) return std::nullopt;
  std::string_view rest = name.substr(kCheckpoint.size());
  const auto generation = TakeNumber<uint64_t>(rest);
  if (!generation || !rest.starts_with('-')) return std::nullopt;
  rest.remove_prefix(1);
  const auto version = TakeNumber<uint64_t>(rest);
  if (!version) return std::nullopt;
  const CheckpointName parsed = {.generation = Generation{*generation},
                                 .version = Version{*version}};
  if (CheckpointDirectoryName(parsed) != name) return std::nullopt;
  return parsed;
}

std::optional<uint64_t> ParseSegmentName(std::string_view name) {
  if (!name.starts_with(kSegment)) return std::nullopt;
  std::string_view rest = name.substr(kSegment.size());
  const auto number = TakeNumber<uint64_t>(rest);
  if (!number || SegmentName(*number) != name) return std::nullopt;
  return number;
}

}  // namespace slipstream

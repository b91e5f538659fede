#include "server/data_plane/shard_recovery.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/log/log.h"
#include "server/data_plane/shard_log.h"
#include "server/storage/log_segment.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;

// How often the log of the process says how far the shard is.
constexpr std::chrono::seconds kProgressInterval{2};

/// Adds to the message the place of the record that was read last.
absl::Status DamageIn(const std::string& directory, const LogReader& reader,
                      const absl::Status& damage) {
  return absl::Status(damage.code(), fmt::format("{}: a record of the batch at byte {}: {}",
                                                 SegmentPath(directory, reader.segment()),
                                                 reader.position(), std::string(damage.message())));
}

absl::Status NoMemory() { return absl::UnavailableError("there is not enough memory"); }

/// Loads the newest checkpoint that is sound.
absl::StatusOr<ShardSave> LoadNewest(CheckpointStore& store, const ArrayBuffers& arrays,
                                     Shard& shard) {
  while (true) {
    const std::vector<SavedVersion> saved = store.saved();
    absl::StatusOr<ShardSave> save = LoadCheckpoint(
        store, saved.back(), arrays, *shard.training_state(), CheckFor(shard, arrays));
    // One that is damaged is not among those saved any more.
    if (!absl::IsDataLoss(save.status()) || saved.size() == 1) return save;
    LogWarning("a checkpoint is damaged; the shard goes on from the one before, and a longer log",
               {{"reason", save.status().message()}});
  }
}

/// Where to read, as in RedoLog.
struct LogRange {
  const std::string& directory;
  uint64_t first = 0;
  uint64_t until = 0;
};

/// Does what RedoLog does, with a reader that was opened at the range's beginning. `goes_on` is
/// called before each event, with the number of those before; CANCELLED once it returns false.
absl::StatusOr<RedoneLog> Redo(LogReader& reader, const LogRange& range, Shard& shard,
                               const std::function<bool(uint64_t events)>& goes_on) {
  RedoneLog redone = {.last_segment = range.first};
  EventsOfLog events;
  while (true) {
    const absl::StatusOr<std::optional<std::span<const std::byte>>> record = reader.Next();
    if (!record.ok()) return record.status();
    if (!record->has_value()) break;
    const uint64_t segment = reader.segment();
    if (range.until != 0 && segment >= range.until) return redone;
    // No event is in two segments, so what is left of the one before was never complete.
    if (segment != redone.last_segment) events = EventsOfLog();
    redone.last_segment = segment;
    absl::StatusOr<std::optional<EventsOfLog::Event>> event = events.Add(**record);
    absl::Status done = event.status();
    if (event.ok() && event->has_value()) {
      if (!goes_on(redone.events)) return absl::CancelledError("the process ends");
      done = shard.Redo((*event)->event, std::move((*event)->payload));
      ++redone.events;
    }
    if (!done.ok()) return DamageIn(range.directory, reader, done);
  }
  redone.last_segment = reader.last();
  redone.torn_bytes = reader.end().torn_bytes;
  return redone;
}

}  // namespace

absl::StatusOr<ShardSave> LoadCheckpoint(const CheckpointFolder& from, const ArrayBuffers& arrays,
                                         TrainingState& state, const CheckSave& check) {
  const absl::StatusOr<std::string> bytes = from.ReadState();
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<ShardSave> save = DecodeSave(*bytes);
  // The checksums are right, so this is no damage that an older checkpoint would not have.
  const auto does_not_fit = [&from](const std::string& why) {
    return absl::FailedPreconditionError(fmt::format("{}: {}", from.StatePath(), why));
  };
  if (!save.ok()) return does_not_fit(std::string(save.status().message()));
  if (check != nullptr) {
    const CheckpointFacts& facts = from.manifest().facts;
    if (save->version() != facts.saved || save->log != facts.log) {
      return does_not_fit("it is of another version than the checkpoint");
    }
    if (const std::string why = check(*save); !why.empty()) return does_not_fit(why);
  }
  std::vector<LoadedArray> loaded;
  for (const auto& [name, values] : arrays) loaded.push_back({name, values->values()});
  for (auto& [version, weights] : save->bases) {
    std::shared_ptr<FloatBuffer> base = state.TryNewWeights();
    if (base == nullptr) return NoMemory();
    loaded.push_back({NameOfBase(version), base->values()});
    weights = std::move(base);
  }
  if (absl::Status read = from.ReadArrays(loaded); !read.ok()) return read;
  return save;
}

absl::StatusOr<ShardSave> LoadCheckpoint(CheckpointStore& store, const SavedVersion& which,
                                         const ArrayBuffers& arrays, TrainingState& state,
                                         const CheckSave& check) {
  absl::StatusOr<ShardSave> save;
  const absl::Status loaded = store.Load(which, [&](const CheckpointFolder& folder) {
    save = LoadCheckpoint(folder, arrays, state, check);
    return save.status();
  });
  if (!loaded.ok()) return loaded;
  return save;
}

CheckSave CheckFor(const Shard& shard, const ArrayBuffers& arrays) {
  return [&shard, values = arrays.front().second->values().size()](const ShardSave& saved) {
    return shard.FaultOf(saved, values);
  };
}

absl::StatusOr<RedoneLog> RedoLog(Disk& disk, const std::string& directory, uint64_t first,
                                  uint64_t until, Shard& shard) {
  absl::StatusOr<LogReader> reader = LogReader::Open(disk, directory, first);
  if (!reader.ok()) return reader.status();
  return Redo(*reader, {directory, first, until}, shard, [](uint64_t) { return true; });
}

absl::StatusOr<RecoveredShard> RecoverShard(CheckpointStore& store, const ModelOrders& model,
                                            Shard& shard,
                                            const std::function<bool()>& is_stopping) {
  const Clock::time_point begin = Clock::now();
  ArrayBuffers arrays = shard.NewArrays(model);
  if (arrays.empty()) return NoMemory();
  absl::StatusOr<ShardSave> save = LoadNewest(store, arrays, shard);
  if (!save.ok()) return save.status();
  const SavedVersion from = save->version();
  const uint64_t first = save->log;
  shard.BeginRedo(*std::move(save), std::move(arrays));

  Clock::time_point last_line = begin;
  const auto say = [&](uint64_t events) {
    LogInfo("redoing the log", {{"checkpoint", Value(from.version)}, {"events", events}});
  };
  say(0);
  const auto goes_on = [&](uint64_t events) {
    if (is_stopping()) return false;
    if (Clock::now() - last_line < kProgressInterval) return true;
    last_line = Clock::now();
    say(events);
    return true;
  };
  const std::string& directory = store.directory();
  absl::StatusOr<LogReader> reader = LogReader::Open(store.disk(), directory, first);
  if (!reader.ok()) return reader.status();
  const absl::StatusOr<RedoneLog> log = Redo(*reader, {directory, first}, shard, goes_on);
  if (!log.ok()) return log.status();
  const absl::Status cut = reader->CutTail();
  if (!cut.ok()) return absl::UnavailableError(cut.message());
  const absl::StatusOr<std::vector<uint64_t>> segments = ListSegments(store.disk(), directory);
  if (!segments.ok()) return segments.status();
  const std::chrono::duration<double> seconds = Clock::now() - begin;
  LogWarning("went on from the log", {{"checkpoint", Value(from.version)},
                                      {"version", Value(shard.machine().decided())},
                                      {"events", log->events},
                                      {"seconds", seconds.count()},
                                      {"torn_bytes", log->torn_bytes}});
  return RecoveredShard{from, *log, segments->back()};
}

}  // namespace slipstream

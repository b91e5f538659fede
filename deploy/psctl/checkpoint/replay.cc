#include "deploy/psctl/checkpoint/replay.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "common/base/duration_text.h"
#include "common/config/run_config.h"
#include "common/process/output_text.h"
#include "deploy/psctl/complaint.h"
#include "server/core/coordinator/coordinator.h"
#include "server/data_plane/checkpoint_replay.h"
#include "server/storage/coordinator_journal.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

/// The settings and the model of a run.
struct LoggedRun {
  RunSpec settings;
  ModelOrders model;
};

/// Reads them from `directory`, where the coordinator of the run keeps its state.
absl::StatusOr<LoggedRun> ReadRun(const std::string& directory, uint64_t run) {
  const absl::StatusOr<std::optional<SavedCoordinator>> saved = ReadJournal(directory);
  if (!saved.ok()) return saved.status();
  if (!saved->has_value()) {
    return absl::NotFoundError(
        fmt::format("{} has no coordinator.state, which says what the run's settings and its model "
                    "are; copy that of server 0 there",
                    directory));
  }
  const absl::StatusOr<SavedRun> peeked = PeekAtRun((*saved)->state);
  if (!peeked.ok()) return peeked.status();
  if (peeked->run != run) {
    return absl::NotFoundError(fmt::format(
        "{}/coordinator.state is of run {}, a newer one than {}, whose settings and model are not "
        "known any more",
        directory, RunDirectoryName(peeked->run), RunDirectoryName(run)));
  }
  absl::StatusOr<RunSpec> settings =
      ToStatusOr(ParseRunConfig((*saved)->settings, "the saved settings"));
  if (!settings.ok()) return settings.status();
  Coordinator coordinator(run, *settings, absl::Now());
  const absl::Status restored = coordinator.Restore((*saved)->state, absl::Now());
  if (!restored.ok()) return restored;
  const std::optional<ModelOrders>& model = coordinator.orders().model;
  if (!model.has_value()) {
    return absl::FailedPreconditionError("no client has named the model of the run yet");
  }
  return LoggedRun{*std::move(settings), *model};
}

/// Returns the directory of the checkpoint's shard, with all directories above it.
fs::path ShardDirectory(const ListedCheckpoint& checkpoint) {
  std::error_code error;
  return fs::canonical(checkpoint.path, error).parent_path();
}

/// Redoes the log from one checkpoint to `next`, or to its end if that is null.
absl::StatusOr<ReplayedLog> Replay(Disk& disk, const LoggedRun& run, const ListedCheckpoint& from,
                                   const ListedCheckpoint* next) {
  const absl::StatusOr<CheckpointFolder> begin = CheckpointFolder::Open(disk, from.path);
  if (!begin.ok()) return begin.status();
  const LoggedShard shard = {.shard = from.shard,
                             .run = run.settings,
                             .model = run.model,
                             .directory = ShardDirectory(from).string()};
  if (next == nullptr) return ReplayLog(disk, shard, *begin, nullptr);
  const absl::StatusOr<CheckpointFolder> end = CheckpointFolder::Open(disk, next->path);
  if (!end.ok()) return end.status();
  return ReplayLog(disk, shard, *begin, &*end);
}

/// Does the same, and prints the result.
ExitCode ReplayAndPrint(Disk& disk, const LoggedRun& run, const ListedCheckpoint& from,
                        const ListedCheckpoint* next) {
  const std::string span =
      fmt::format("{} -> {}", from.path,
                  next == nullptr ? "the end of the log" : CheckpointDirectoryName(next->name));
  const absl::Time begin = absl::Now();
  const absl::StatusOr<ReplayedLog> replayed = Replay(disk, run, from, next);
  std::error_code error;
  const bool was_removed = !fs::exists(from.path, error);
  if (!replayed.ok() && was_removed) {
    WriteToStdout(span + ": was removed meanwhile\n");
    return ExitCode::kOk;
  }
  if (!replayed.ok()) {
    return Complain(ExitCodeFor(replayed.status()),
                    fmt::format("{}: {}", span, std::string(replayed.status().message())));
  }
  const uint64_t versions = Value(replayed->version) - Value(from.name.version);
  const std::string figures =
      fmt::format("{}: {} event{}, {} version{} in {}", span, replayed->events,
                  replayed->events == 1 ? "" : "s", versions, versions == 1 ? "" : "s",
                  DurationText(absl::Now() - begin));
  if (!replayed->difference.empty()) {
    return Complain(ExitCode::kIo, fmt::format("{}, {}", figures, replayed->difference));
  }
  WriteToStdout(next == nullptr
                    ? fmt::format("{}, up to version {}\n", figures, Value(replayed->version))
                    : fmt::format("{}, equal\n", figures));
  return ExitCode::kOk;
}

}  // namespace

ExitCode ReplayCheckpoints(Disk& disk, const std::vector<ListedCheckpoint>& sound) {
  ExitCode code = ExitCode::kOk;
  absl::StatusOr<LoggedRun> run = absl::UnknownError("no run was read yet");
  const auto note = [&code](ExitCode one) {
    if (one != ExitCode::kOk) code = one;
  };
  for (size_t i = 0; i < sound.size(); ++i) {
    const ListedCheckpoint& from = sound[i];
    if (i == 0 || sound[i - 1].run != from.run) {
      run = ReadRun(ShardDirectory(from).parent_path().parent_path().string(), from.run);
      if (!run.ok()) {
        note(Complain(run.status()));
      }
    }
    if (!run.ok()) continue;
    const bool has_next =
        i + 1 < sound.size() && sound[i + 1].run == from.run && sound[i + 1].shard == from.shard;
    note(ReplayAndPrint(disk, *run, from, has_next ? &sound[i + 1] : nullptr));
  }
  return code;
}

}  // namespace slipstream

#include "deploy/psctl/durability_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/time/time.h"
#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/run/shards.h"

namespace slipstream {
namespace {

std::string SecondsText(double seconds) { return DurationText(absl::Seconds(seconds)); }

/// Returns the age of the shard's newest checkpoint, or of the run while there is none.
double CheckpointAge(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  return shard.has_checkpoint() ? shard.checkpoint().age_seconds() : status.seconds();
}

/// Returns whether the shard should have made a checkpoint since its newest one. The run makes none
/// where it waits for somebody.
bool IsLate(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  const double interval = status.checkpoint_interval_seconds();
  if (interval == 0 || status.phase() != v1::TRAINING || status.has_missing()) return false;
  return CheckpointAge(status, shard) > 3 * interval + kCheckpointWriteSecondsMax;
}

std::string LateText(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  const std::string age = SecondsText(CheckpointAge(status, shard));
  const std::string interval = SecondsText(status.checkpoint_interval_seconds());
  if (!shard.has_checkpoint()) {
    return fmt::format("shard {} has no checkpoint after {}, and one is due every {}",
                       shard.shard(), age, interval);
  }
  return fmt::format("the last checkpoint of shard {} is {} old, and one is due every {}",
                     shard.shard(), age, interval);
}

std::string FailureText(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  const std::string last =
      shard.has_checkpoint()
          ? fmt::format("its last one is {} old", SecondsText(CheckpointAge(status, shard)))
          : "it has none";
  return fmt::format("shard {} could not save a checkpoint, and {}: {}", shard.shard(), last,
                     Printable(shard.checkpoint_failure()));
}

/// Returns whether the shard has made fewer versions since its return than it has lost.
bool IsBehindItsReturn(const v1::RunStatus& status, const v1::ShardStatus& shard) {
  const bool is_over = status.phase() >= v1::FINISHED;
  return !is_over && shard.life() > 0 &&
         shard.version() < shard.returned_to() + shard.versions_lost();
}

}  // namespace

bool HasDurability(const v1::RunStatus& status) { return status.checkpoint_interval_seconds() > 0; }

uint64_t Returns(const v1::RunStatus& status) {
  uint64_t returns = 0;
  for (const v1::ShardStatus& shard : status.shards()) returns += shard.life();
  return returns;
}

std::string CheckpointsText(const v1::RunStatus& status) {
  double age = 0;
  uint64_t bytes = 0;
  uint64_t lost = 0;
  bool have_all = !status.shards().empty();
  for (const v1::ShardStatus& shard : status.shards()) {
    have_all = have_all && shard.has_checkpoint();
    age = std::max(age, shard.checkpoint().age_seconds());
    bytes += shard.checkpoint().bytes();
    lost += shard.versions_lost();
  }
  std::string text = fmt::format("every {}", SecondsText(status.checkpoint_interval_seconds()));
  if (have_all) {
    text += fmt::format("; the oldest of the last ones {} ago, together {}", SecondsText(age),
                        BytesText(bytes));
  } else {
    text += "; not all shards have one yet";
  }
  if (const uint64_t returns = Returns(status); returns > 0) {
    text += fmt::format("; {} return{}, {} version{} lost", returns, returns == 1 ? "" : "s", lost,
                        lost == 1 ? "" : "s");
  }
  return text;
}

std::string CheckpointText(const v1::ShardStatus& shard) {
  if (!shard.has_checkpoint()) return "-";
  const v1::CheckpointStatus& checkpoint = shard.checkpoint();
  return fmt::format("{}, {} ago", checkpoint.version(), SecondsText(checkpoint.age_seconds()));
}

std::vector<ScreenLine> CheckpointAlarms(const v1::RunStatus& status) {
  std::vector<ScreenLine> lines;
  for (const v1::ShardStatus& shard : status.shards()) {
    if (IsBehindItsReturn(status, shard)) {
      lines.push_back(
          {fmt::format("shard {} went on from its checkpoint of version {} (life {}); it has lost "
                       "{} versions so far",
                       shard.shard(), shard.returned_to(), shard.life(), shard.versions_lost()),
           LineStyle::kWarning});
    }
    if (!shard.checkpoint_failure().empty()) {
      lines.push_back({FailureText(status, shard), LineStyle::kAlarm});
    } else if (IsLate(status, shard)) {
      lines.push_back({LateText(status, shard), LineStyle::kWarning});
    }
  }
  return lines;
}

}  // namespace slipstream

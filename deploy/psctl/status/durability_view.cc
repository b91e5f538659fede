#include "deploy/psctl/status/durability_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "absl/time/time.h"
#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "common/settings/shards.h"

namespace slipstream {
bool HasDurability(const v1::RunStatus& status) { return status.checkpoint_interval_seconds() > 0; }

uint64_t ReturnsOf(const v1::RunStatus& status) {
  uint64_t returns = 0;
  for (const v1::ShardStatus& shard : status.shards()) returns += shard.generation();
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
  std::string text = fmt::format("every {}", DurationText(status.checkpoint_interval_seconds()));
  if (have_all) {
    text += fmt::format("; the oldest of the last ones {} ago, together {}", DurationText(age),
                        BytesText(bytes));
  } else {
    text += "; not all shards have one yet";
  }
  if (const uint64_t returns = ReturnsOf(status); returns > 0) {
    text += fmt::format("; {} return{}, at least {} version{} lost", returns,
                        returns == 1 ? "" : "s", lost, lost == 1 ? "" : "s");
  }
  return text;
}

std::string StartText(const v1::RunStatus& status) {
  for (const v1::ShardStatus& shard : status.shards()) {
    if (!shard.started_from().empty()) return Printable(shard.started_from());
  }
  return "";
}

std::string CheckpointText(const v1::ShardStatus& shard) {
  if (!shard.has_checkpoint()) return "-";
  const v1::CheckpointStatus& checkpoint = shard.checkpoint();
  return fmt::format("{}, {} ago", checkpoint.version(), DurationText(checkpoint.age_seconds()));
}

std::string SavesText(const v1::SaveCheckpointReply& reply) {
  std::string text;
  for (int i = 0; i < reply.shards_size(); ++i) {
    const v1::ShardSaveStatus& shard = reply.shards(i);
    const v1::CheckpointStatus& checkpoint = shard.checkpoint();
    if (shard.has_saved()) {
      text += fmt::format("shard {}: version {}, {}, written in {}\n", i, checkpoint.version(),
                          BytesText(checkpoint.bytes()), DurationText(checkpoint.write_seconds()));
      continue;
    }
    const std::string last =
        shard.has_checkpoint()
            ? fmt::format("its last checkpoint has version {}", checkpoint.version())
            : std::string("it has no checkpoint");
    text += fmt::format("shard {}: not saved, and {}: {}\n", i, last, Printable(shard.reason()));
  }
  return text;
}

bool HasLogs(const v1::RunStatus& status) {
  return std::ranges::any_of(status.shards(), &v1::ShardStatus::has_log);
}

std::string LogsText(const v1::RunStatus& status) {
  uint64_t bytes = 0;
  uint64_t events = 0;
  uint64_t batches = 0;
  uint64_t events_redone = 0;
  uint32_t went_on = 0;
  double seconds = 0;
  for (const v1::ShardStatus& shard : status.shards()) {
    const v1::LogStatus& log = shard.log();
    bytes += log.bytes();
    events += log.events();
    batches += log.batches();
    events_redone += log.events_redone();
    went_on += log.events_redone() > 0 ? 1 : 0;
    seconds = std::max(seconds, log.batch_seconds());
  }
  std::string text = fmt::format("{} written", BytesText(bytes));
  if (batches > 0) {
    text += fmt::format(", {:.2f} events a batch, at most {} each",
                        static_cast<double>(events) / static_cast<double>(batches),
                        DurationText(seconds));
  }
  if (went_on > 0) {
    text += fmt::format("; {} shard{} went on from {}, {} events", went_on, went_on == 1 ? "" : "s",
                        went_on == 1 ? "its log" : "their logs", events_redone);
  }
  return text;
}

std::string DrainedText(uint32_t server, const v1::DrainReply& reply) {
  std::string text = fmt::format("server {} has drained", server);
  // With a log, versions are made up to the end of the process, which is after this answer.
  if (reply.version() > 0) {
    text += fmt::format(" at version {}{}", reply.version(), reply.has_log() ? " or beyond" : "");
  }
  if (!reply.has_checkpoint()) {
    text += "; its process has made no checkpoint";
  } else if (reply.checkpoint().version() == reply.version() && !reply.has_log()) {
    text += "; its newest checkpoint has this version";
  } else {
    text += fmt::format("; its newest checkpoint has version {}", reply.checkpoint().version());
  }
  if (reply.has_log()) text += "; its log has all that it has told";
  if (!reply.checkpoint_failure().empty()) {
    text +=
        fmt::format("; the last try to make one failed: {}", Printable(reply.checkpoint_failure()));
  }
  return text + "\n";
}

std::string LogText(const v1::ShardStatus& shard) {
  if (!shard.has_log()) return "-";
  return fmt::format("{}, {}", BytesText(shard.log().bytes()),
                     DurationText(shard.log().batch_seconds()));
}

}  // namespace slipstream

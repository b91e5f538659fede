#include "deploy/psctl/status/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "common/alarms/run_alarms.h"
#include "common/base/check.h"
#include "common/base/duration_text.h"
#include "deploy/psctl/status/durability_view.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

/// A line of a table before it is laid out.
struct Entry {
  TableRow row;
  LineStyle style = LineStyle::kPlain;

  /// Lines of a higher rank stay longer where there are few lines.
  int rank = 0;
};

std::string ShareText(double share) { return fmt::format("{:.0f}%", 100 * share); }

/// Returns "1.5/64.0 MiB".
std::string BytesText(uint64_t bytes, uint64_t bytes_max) {
  constexpr double kMebibyte = 1 << 20;
  return fmt::format("{:.1f}/{:.1f} MiB", static_cast<double>(bytes) / kMebibyte,
                     static_cast<double>(bytes_max) / kMebibyte);
}

/// Lays the entries out. `name` is the plural of the thing that a line is about.
std::vector<ScreenLine> Draw(const std::vector<TableColumn>& columns, std::vector<Entry> entries,
                             const ScreenSize& size, std::string_view name, size_t unlisted = 0) {
  PS_CHECK(size.rows > 1);
  const size_t all = entries.size() + unlisted;
  const bool fits = all < size.rows && unlisted == 0;
  if (!fits) {
    std::ranges::stable_sort(entries, std::ranges::greater(), &Entry::rank);
    entries.resize(std::min(entries.size(), size.rows - 2));
  }
  std::vector<TableRow> rows;
  for (const Entry& entry : entries) rows.push_back(entry.row);
  const std::vector<std::string> texts = FormatTableWithin(columns, std::move(rows), size.columns);

  std::vector<ScreenLine> lines = {{texts.front(), LineStyle::kHeading}};
  for (size_t i = 0; i < entries.size(); ++i) lines.push_back({texts[i + 1], entries[i].style});
  if (!fits) {
    const std::string rest = fmt::format("… {} more {}", all - entries.size(), name);
    lines.push_back({Ellipsize(rest, size.columns)});
  }
  return lines;
}

Entry EntryOf(const v1::ShardStatus& shard, bool is_over, bool has_durability, bool has_logs) {
  const bool is_silent = !is_over && shard.silent_seconds() > kServerSilenceSecondsMax;
  const std::string heard = DurationText(shard.silent_seconds()) + " ago";
  Entry entry;
  entry.row = {fmt::format("{}", shard.shard()),
               shard.address(),
               fmt::format("{}", shard.end() - shard.begin()),
               fmt::format("{}", shard.version()),
               ThreeDigits(shard.updates_per_second()),
               fmt::format("{:.2f}", shard.staleness().window_mean()),
               fmt::format("{}", shard.staleness().max()),
               fmt::format("{}/{}", shard.round_contributions(), shard.round_size()),
               fmt::format("{}", shard.parked_calls()),
               fmt::format("{}", shard.pulls_under_way()),
               fmt::format("{}", shard.live_versions()),
               BytesText(shard.bytes_queued(), shard.bytes_queued_max()),
               is_silent ? heard + " <-- SILENT" : heard};
  if (has_durability) {
    entry.row.push_back(fmt::format("{}", shard.generation()));
    entry.row.push_back(CheckpointText(shard));
  }
  if (has_logs) entry.row.push_back(LogText(shard));
  if (is_silent) {
    entry.style = LineStyle::kAlarm;
    entry.rank = 1;
  }
  return entry;
}

/// Returns "3 for 20.0 ms", "3, 5 for 1.50 s", or "-" if it waits for nobody.
std::string WaitingText(const v1::AggregatorStatus& aggregator) {
  if (aggregator.waiting_for().empty()) return "-";
  return fmt::format("{} for {}", fmt::join(aggregator.waiting_for(), ", "),
                     DurationText(aggregator.waiting_seconds()));
}

Entry EntryOf(const v1::AggregatorStatus& aggregator, bool is_over) {
  const bool has_come = !aggregator.address().empty();
  const bool is_silent = !is_over && aggregator.silent_seconds() > kServerSilenceSecondsMax;
  const std::string heard = DurationText(aggregator.silent_seconds()) + " ago";
  Entry entry;
  entry.row = {fmt::format("{}", aggregator.group()),
               fmt::format("{}", aggregator.shard()),
               has_come ? aggregator.address() : "-",
               fmt::format("{}", aggregator.parts()),
               fmt::format("{}", aggregator.composites()),
               fmt::format("{}", aggregator.sent_back()),
               WaitingText(aggregator),
               !has_come ? "never" : (is_silent ? heard + " <-- SILENT" : heard)};
  if (is_silent || !has_come) {
    entry.style = LineStyle::kWarning;
    entry.rank = 1;
  }
  return entry;
}

Entry EntryOf(const v1::WorkerStatus& worker) {
  const bool has_reported = worker.examples() > 0;
  const auto if_reported = [&](std::string text) { return has_reported ? std::move(text) : "-"; };
  Entry entry;
  entry.row = {
      fmt::format("{}", worker.worker()),
      worker.is_stalled() ? "STALLED" : (worker.is_straggler() ? "STRAGGLER" : worker.state()),
      worker.host(),
      fmt::format("{}", worker.pushes()),
      worker.examples_per_second() > 0 ? ThreeDigits(worker.examples_per_second()) : "-",
      worker.step_seconds() > 0 ? DurationText(worker.step_seconds()) : "-",
      if_reported(fmt::format("{:.4f}", worker.train_loss())),
      worker.has_train_accuracy() ? fmt::format("{:.1f}%", 100 * worker.train_accuracy()) : "-",
      fmt::format("{:.2f}", worker.mean_staleness()),
      fmt::format("{}", worker.last_staleness()),
      ShareText(worker.compute_share()),
      ShareText(worker.communication_share()),
      ShareText(worker.communication_hidden()),
      worker.lease_left_seconds() > 0 ? DurationText(worker.lease_left_seconds()) : "-"};
  if (worker.state() == "dead") {
    // A dead worker has no figures.
    entry.style = LineStyle::kAlarm;
    entry.rank = 1;
  } else if (worker.is_stalled() || worker.is_straggler()) {
    entry.style = LineStyle::kWarning;
    entry.rank = 2;
  }
  return entry;
}

Entry EntryOf(const v1::ReaderStatus& reader) {
  const bool is_live = reader.state() == "live";
  const bool is_late = is_live && reader.has_lag_max() && reader.lag() > reader.lag_max();
  const bool is_published = reader.label() > 0;
  Entry entry;
  entry.row = {fmt::format("{}", reader.reader()),
               reader.is_awaited() ? "awaited" : (is_late ? "LATE" : reader.state()),
               reader.name(),
               reader.host(),
               reader.has_version() ? fmt::format("{}", reader.version()) : "-",
               is_published ? fmt::format("{}", reader.label()) : "-",
               fmt::format("{}", reader.lag()),
               reader.has_lag_max() ? fmt::format("{}", reader.lag_max()) : "-",
               reader.lag() > 0 ? DurationText(reader.lag_seconds()) : "-",
               fmt::format("{:.2f}", reader.lag_mean()),
               fmt::format("{}", reader.lag_highest()),
               fmt::format("{}", reader.taken()),
               fmt::format("{}", reader.lost()),
               fmt::format("{:.1f} MB/s", reader.bytes_per_second() / 1e6),
               DurationText(reader.silent_seconds()) + " ago"};
  if (!is_live || is_late) {
    entry.style = LineStyle::kWarning;
    entry.rank = 1;
  }
  return entry;
}

}  // namespace

std::vector<ScreenLine> ShardTable(const v1::RunStatus& status, const ScreenSize& size) {
  std::vector<TableColumn> columns = {
      {"shard", 13},    {"address", 8}, {"parameters", 4}, {"version", 12}, {"updates/s", 10},
      {"staleness", 9}, {"max", 7},     {"round", 11},     {"parked", 3},   {"pulls", 2},
      {"versions", 1},  {"queued", 5},  {"heard", 6}};
  const bool has_durability = HasDurability(status);
  if (has_durability) columns.insert(columns.end(), {{"generation", 4}, {"checkpoint", 4}});
  const bool has_logs = HasLogs(status);
  if (has_logs) columns.push_back({"log", 4});
  const bool is_over = status.phase() >= v1::FINISHED;
  std::vector<Entry> entries;
  for (const v1::ShardStatus& shard : status.shards()) {
    entries.push_back(EntryOf(shard, is_over, has_durability, has_logs));
  }
  return Draw(columns, std::move(entries), size, "shards");
}

std::vector<ScreenLine> AggregatorTable(const v1::RunStatus& status, const ScreenSize& size) {
  const std::vector<TableColumn> columns = {{"group", 8},     {"shard", 7},   {"address", 2},
                                            {"parts", 6},     {"sent on", 5}, {"sent back", 4},
                                            {"waits for", 1}, {"heard", 3}};
  const bool is_over = status.phase() >= v1::FINISHED;
  std::vector<Entry> entries;
  for (const v1::AggregatorStatus& aggregator : status.aggregators()) {
    entries.push_back(EntryOf(aggregator, is_over));
  }
  return Draw(columns, std::move(entries), size, "aggregators");
}

std::vector<ScreenLine> WorkerTable(const v1::RunStatus& status, const ScreenSize& size) {
  const std::vector<TableColumn> columns = {
      {"worker", 14},        {"state", 13}, {"host", 4},       {"pushes", 9},
      {"examples/s", 12},    {"step", 10},  {"train loss", 8}, {"train accuracy", 5},
      {"staleness", 11},     {"last", 3},   {"compute", 7},    {"communication", 2},
      {"hidden of that", 1}, {"lease", 6}};
  std::vector<Entry> entries;
  for (const v1::WorkerStatus& worker : status.workers()) entries.push_back(EntryOf(worker));
  return Draw(columns, std::move(entries), size, "workers");
}

std::vector<ScreenLine> ReaderTable(const v1::RunStatus& status, const ScreenSize& size) {
  const std::vector<TableColumn> columns = {
      {"reader", 15}, {"state", 14}, {"name", 8},  {"host", 3},   {"version", 12},
      {"label", 11},  {"lag", 13},   {"bound", 9}, {"since", 10}, {"mean when taken", 4},
      {"highest", 5}, {"taken", 7},  {"lost", 6},  {"rate", 2},   {"heard", 1}};
  std::vector<Entry> entries;
  for (const v1::ReaderStatus& reader : status.readers()) entries.push_back(EntryOf(reader));
  return Draw(columns, std::move(entries), size, "readers", status.readers_unlisted());
}

}  // namespace slipstream

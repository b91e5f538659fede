#include "deploy/psctl/status/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/time.h"
#include "common/base/duration_text.h"
#include "common/base/printable.h"
#include "deploy/psctl/status/alarms.h"
#include "deploy/psctl/status/durability_view.h"
#include "deploy/psctl/status/progress_view.h"
#include "deploy/psctl/status/run_summary.h"
#include "deploy/psctl/status/staleness_histogram.h"
#include "deploy/psctl/status/tables.h"
#include "deploy/psctl/text_table.h"

namespace slipstream {
namespace {

constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

// A page with fewer columns shows only essential figures, with short labels.
constexpr size_t kNarrow = 60;
constexpr int kEssentialRank = 4;

/// A line of the run's figures. Lines of a higher rank stay longer where there are few lines.
struct Fact {
  std::string label;
  std::string value;
  int rank = 0;

  /// Set if the value is the progress, which takes the rest of the width.
  bool is_progress = false;
};

/// A part of the page, with an empty line before it unless it is the first.
struct Section {
  /// The number of its lines in full, and the least number where other sections need lines, too.
  size_t wanted = 0;
  size_t least = 0;

  /// Sections of a higher rank get the remaining lines first.
  int rank = 0;

  /// Draws the section in the given number of lines, at least 2 unless `wanted` is 1.
  std::function<std::vector<ScreenLine>(size_t rows)> draw;
  size_t given = 0;
};

/// Returns "NONFINITE 3, RETRY_LATER 12", or "none".
std::string RefusalText(const v1::RunStatus& status) {
  // They are sorted, so that they keep their places while somebody watches.
  const std::map<std::string, uint64_t> refusals(status.refusals().begin(),
                                                 status.refusals().end());
  std::string text;
  for (const auto& [reason, count] : refusals) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", reason, count);
  }
  return text.empty() ? "none" : text;
}

std::string RateText(const v1::RunStatus& status) {
  const std::string rate = fmt::format("{:.6g}", status.learning_rate());
  if (status.effective_learning_rate() == status.learning_rate()) return rate;
  return fmt::format("{}, effective {:.6g}", rate, status.effective_learning_rate());
}

/// Returns the policy, and where members have gone or joined, how many gradients make an update
/// now.
std::string PolicyNowText(const v1::RunStatus& status) {
  const bool is_under_way = status.phase() == v1::TRAINING && !status.shards().empty();
  const uint32_t now = is_under_way ? status.shards(0).round_size() : 0;
  const std::string now_text =
      now == 0 || now == status.round_size() ? "" : fmt::format("; {} now", now);
  return PolicyText(status) + now_text;
}

std::string SplitText(const v1::RunStatus& status) {
  uint64_t split = 0;
  uint64_t pushes = 0;
  for (const v1::WorkerStatus& worker : status.workers()) {
    split += worker.split_pushes();
    pushes += worker.pushes();
  }
  if (split == 0) return "";
  return fmt::format("{} of {} pushes counted at some shards and were dropped at others", split,
                     pushes);
}

std::vector<Fact> Facts(const v1::RunStatus& status) {
  const v1::StalenessStatus& staleness = status.staleness();
  std::vector<Fact> facts = {{"run", status.name(), 9},
                             {"policy", PolicyNowText(status), 7},
                             {"state", "", 10, /*is_progress=*/true}};
  if (status.plaintext_accepted()) {
    facts.push_back({"security", "none: traffic is not encrypted, and the risk was accepted", 6});
  }
  if (!status.ended_by().empty()) facts.push_back({"ended by", status.ended_by(), 6});
  if (const v1::EvaluationStatus* evaluation = DecidingEvaluation(status)) {
    facts.push_back({"evaluation", FormatEvaluation(*evaluation), 8});
  }
  facts.push_back({"progress",
                   fmt::format("{} updates, {} pushes in {}", status.updates(), status.pushes(),
                               DurationText(absl::Seconds(status.seconds()))),
                   5});
  facts.push_back({"staleness",
                   fmt::format("mean {:.3f}, p50 {}, p99 {}, max {}", staleness.mean(),
                               staleness.p50(), staleness.p99(), staleness.max()),
                   4});
  facts.push_back({"values", ValuesText(status), 2});
  facts.push_back({"learning rate", RateText(status), 3});
  facts.push_back({"refused", RefusalText(status), 2});
  if (status.has_guard()) facts.push_back({"guard", GuardText(status), 4});
  if (HasDurability(status)) facts.push_back({"checkpoints", CheckpointsText(status), 2});
  if (const std::string start = StartText(status); !start.empty()) {
    facts.push_back({"started from", start, 2});
  }
  if (HasLogs(status)) facts.push_back({"logs", LogsText(status), 2});
  const std::string split = SplitText(status);
  if (!split.empty()) facts.push_back({"split", split, 2});
  if (!status.shards().empty() && !status.shards(0).http_address().empty()) {
    facts.push_back({"http", Printable(status.shards(0).http_address()), 1});
  }
  facts.push_back(
      {"version skew", fmt::format("{}, view {}", status.version_skew(), status.view()), 1});
  return facts;
}

std::vector<ScreenLine> DrawFacts(const v1::RunStatus& status, std::vector<Fact> facts,
                                  const ScreenSize& size) {
  const size_t all = facts.size();
  if (size.columns < kNarrow) {
    std::erase_if(facts, [](const Fact& fact) { return fact.rank < kEssentialRank; });
  }
  const size_t kept =
      all <= size.rows && facts.size() == all ? all : std::min(facts.size(), size.rows - 1);
  while (facts.size() > kept) facts.erase(std::ranges::min_element(facts, {}, &Fact::rank));
  size_t label_width = 0;
  for (const Fact& fact : facts) label_width = std::max(label_width, DisplayWidth(fact.label));
  const size_t room = size.columns - std::min(size.columns, label_width + kFactGap);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const Fact& fact : facts) {
    pairs.emplace_back(fact.label, fact.is_progress ? FormatProgress(status, room) : fact.value);
  }
  std::vector<ScreenLine> lines;
  for (const std::string& line : SplitLines(FormatFacts(pairs))) {
    lines.push_back({Ellipsize(line, size.columns)});
  }
  if (kept < all)
    lines.push_back({Ellipsize(fmt::format("… {} more figures", all - kept), size.columns)});
  return lines;
}

/// Returns the first lines, cut to the size. The last one says how many are left out.
std::vector<ScreenLine> DrawLines(std::vector<ScreenLine> lines, const ScreenSize& size,
                                  std::string_view name) {
  const size_t all = lines.size();
  if (all > size.rows) {
    lines.resize(size.rows - 1);
    const std::string rest = fmt::format("… {} more {}", all - lines.size(), std::string(name));
    lines.push_back({rest, lines.empty() ? LineStyle::kPlain : lines.front().style});
  }
  for (ScreenLine& line : lines) line.text = Ellipsize(line.text, size.columns);
  return lines;
}

/// Returns the rounds that wait, except those that wait so long that they are stalled.
std::vector<ScreenLine> RoundLines(const v1::RunStatus& status) {
  std::vector<ScreenLine> lines;
  for (const v1::WaitingRound& round : status.waiting_rounds()) {
    if (round.unchanged_seconds() < kRoundStillSecondsMax) lines.push_back({RoundText(round)});
  }
  return lines;
}

std::vector<ScreenLine> DrawHistogram(const v1::RunStatus& status, const ScreenSize& size) {
  const v1::StalenessStatus& staleness = status.staleness();
  const std::vector<uint64_t> counts(staleness.histogram().begin(), staleness.histogram().end());
  HistogramStyle style;
  if (size.rows != kUnbounded) style.lines_max = std::min(style.lines_max, size.rows - 1);
  std::vector<ScreenLine> lines;
  for (const std::string& line : SplitLines(FormatHistogram(counts, staleness.max(), style))) {
    lines.push_back(
        {Ellipsize(line, size.columns), lines.empty() ? LineStyle::kHeading : LineStyle::kPlain});
  }
  return lines;
}

/// Divides `rows` lines among the sections, including the empty lines between them: first the least
/// number of each, in their order, and then the remaining lines.
void ShareOut(size_t rows, std::vector<Section>& sections) {
  size_t left = rows;
  bool is_first = true;
  for (Section& section : sections) {
    const size_t gap = is_first ? 0 : 1;
    const size_t least = std::min(section.wanted, section.least);
    if (least == 0 || left < gap + least) continue;
    section.given = least;
    left -= gap + least;
    is_first = false;
  }
  std::vector<Section*> by_rank;
  for (Section& section : sections) by_rank.push_back(&section);
  std::ranges::stable_sort(by_rank, std::ranges::greater(), &Section::rank);
  for (Section* const section : by_rank) {
    if (section->wanted <= section->given) continue;
    if (section->given == 0) {
      // It had no line so far, and would need an empty line before it.
      const size_t gap = is_first ? 0 : 1;
      if (left < gap + std::min<size_t>(section->wanted, 2)) continue;
      left -= gap;
      is_first = false;
    }
    const size_t more = std::min(left, section->wanted - section->given);
    section->given += more;
    left -= more;
  }
}

std::vector<Section> Sections(const v1::RunStatus& status, size_t columns) {
  std::vector<Section> sections;
  const auto add = [&](size_t wanted, size_t least, int rank, auto draw) {
    if (wanted == 0) return;
    sections.push_back({.wanted = wanted, .least = least, .rank = rank, .draw = std::move(draw)});
  };
  const std::vector<ScreenLine> alarms = StatusAlarms(status);
  add(alarms.size(), 5, 4, [alarms, columns](size_t rows) {
    return DrawLines(alarms, {rows, columns}, "alarms");
  });
  const std::vector<Fact> facts = Facts(status);
  add(facts.size(), 5, 3, [&status, facts, columns](size_t rows) {
    return DrawFacts(status, facts, {rows, columns});
  });
  if (!status.shards().empty()) {
    add(static_cast<size_t>(status.shards_size()) + 1, 4, 2, [&status, columns](size_t rows) {
      return ShardTable(status, {rows, columns});
    });
  }
  if (!status.aggregators().empty()) {
    add(static_cast<size_t>(status.aggregators_size()) + 1, 3, 1, [&status, columns](size_t rows) {
      return AggregatorTable(status, {rows, columns});
    });
  }
  if (!status.workers().empty()) {
    add(static_cast<size_t>(status.workers_size()) + 1, 5, 5, [&status, columns](size_t rows) {
      return WorkerTable(status, {rows, columns});
    });
  }
  if (!status.readers().empty()) {
    const size_t lines = static_cast<size_t>(status.readers_size()) + 1;
    add(lines + (status.readers_unlisted() > 0 ? 1 : 0), 3, 2, [&status, columns](size_t rows) {
      return ReaderTable(status, {rows, columns});
    });
  }
  const std::vector<ScreenLine> rounds = RoundLines(status);
  add(rounds.size(), 0, 1, [rounds, columns](size_t rows) {
    return DrawLines(rounds, {rows, columns}, "open rounds");
  });
  const size_t histogram = DrawHistogram(status, {kUnbounded, columns}).size();
  add(histogram, 0, 0, [&status, columns](size_t rows) {
    return DrawHistogram(status, {rows, columns});
  });
  return sections;
}

}  // namespace

std::vector<ScreenLine> StatusPage(const v1::RunStatus& status, const ScreenSize& size) {
  std::vector<Section> sections = Sections(status, size.columns);
  ShareOut(size.rows, sections);
  std::vector<ScreenLine> page;
  for (const Section& section : sections) {
    if (section.given == 0) continue;
    if (!page.empty()) page.emplace_back();
    for (ScreenLine& line : section.draw(section.given)) page.push_back(std::move(line));
  }
  return page;
}

}  // namespace slipstream

#include "server/core/coordinator/events.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <variant>

#include "common/base/log_line.h"
#include "common/base/utf8.h"

namespace slipstream {
namespace {

constexpr std::array<std::string_view, 11> kNames = {
    "none",       "worker",     "server",    "aggregator", "phase", "change",
    "checkpoint", "evaluation", "straggler", "refusal",    "state"};

/// Returns for whom the event is counted. One that is refused may say that it is anybody.
auto OwnerOf(const RunEvent& event) {
  const bool is_known = event.kind != EventKind::kRefusal;
  return std::tuple(event.kind, is_known ? event.worker : std::nullopt,
                    is_known ? event.shard : std::nullopt);
}

std::optional<uint32_t> NumberIn(const LogLine& line, std::string_view name) {
  const auto field = std::ranges::find(line.fields, name, &LogField::name);
  if (field == line.fields.end()) return std::nullopt;
  const auto* const number = std::get_if<uint64_t>(&field->value);
  return number != nullptr ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
}

}  // namespace

std::string_view Name(EventKind kind) { return kNames.at(static_cast<size_t>(kind)); }

void RunEvents::Add(const CoordinatorNotes::Note& note, absl::Time time_of_day) {
  if (note.kind == EventKind::kNone) return;
  RunEvent& event = events_.emplace_back();
  event.number = ++newest_;
  event.time_ms = absl::ToUnixMillis(time_of_day);
  event.kind = note.kind;
  event.is_warning = note.is_warning;
  event.text = CutUtf8(TextOf(note.line), kTextBytesMax);
  if (const auto worker = NumberIn(note.line, "worker")) event.worker = WorkerId{*worker};
  // An aggregator's note names the shard that it sends to.
  const auto shard = NumberIn(note.line, "shard");
  if (shard.has_value() && note.kind != EventKind::kAggregator) event.shard = ShardId{*shard};
  if (events_.size() <= kMax) return;

  std::map<decltype(OwnerOf(event)), size_t> counts;
  for (const RunEvent& each : events_) ++counts[OwnerOf(each)];
  events_.erase(std::ranges::max_element(
      events_, {}, [&counts](const RunEvent& each) { return counts[OwnerOf(each)]; }));
}

bool RunEvents::IsSound() const {
  uint64_t before = 0;
  for (const RunEvent& event : events_) {
    const bool has_kind =
        event.kind != EventKind::kNone && static_cast<size_t>(event.kind) < kNames.size();
    if (!has_kind || event.number <= before) return false;
    before = event.number;
  }
  return before <= newest_ && events_.size() <= kMax;
}

}  // namespace slipstream

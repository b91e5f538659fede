#include "deploy/lab/push_lines.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace slipstream {
namespace {

constexpr absl::string_view kColumns =
    "time,worker,incarnation,sequence,batch,examples,base,version,staleness,outcome,loss,stage";

template <typename Number>
bool Read(absl::string_view text, Number& number) {
  return absl::SimpleAtoi(text, &number);
}

/// Reads a text like "12" or "12-19;40-42".
std::optional<BatchRanges> ReadBatches(absl::string_view text) {
  BatchRanges ranges;
  if (text.empty()) return ranges;
  for (const absl::string_view part : absl::StrSplit(text, ';')) {
    const std::pair<absl::string_view, absl::string_view> ends =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    uint64_t first = 0;
    if (!Read(ends.first, first)) return std::nullopt;
    uint64_t last = first;
    if (!ends.second.empty() && (!Read(ends.second, last) || last < first)) return std::nullopt;
    ranges.push_back({first, last - first + 1});
  }
  return ranges;
}

std::optional<PushLine> ReadLine(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts.size() != 12) return std::nullopt;
  uint32_t worker = 0;
  uint64_t incarnation = 0;
  uint64_t sequence = 0;
  uint64_t base = 0;
  uint64_t version = 0;
  PushLine line;
  const std::optional<BatchRanges> batches = ReadBatches(parts[4]);
  const bool is_read =
      Read(parts[1], worker) && Read(parts[2], incarnation) && Read(parts[3], sequence) &&
      batches.has_value() && Read(parts[5], line.examples) && Read(parts[6], base) &&
      Read(parts[7], version) && Read(parts[8], line.staleness) && Read(parts[11], line.stage);
  if (!is_read) return std::nullopt;
  line.worker = WorkerId{worker};
  line.incarnation = Incarnation{incarnation};
  line.sequence = Sequence{sequence};
  line.batches = *batches;
  line.base = Version{base};
  line.version = Version{version};
  line.outcome = std::string(parts[9]);
  return line;
}

}  // namespace

absl::StatusOr<std::vector<PushLine>> ReadPushLines(absl::string_view text,
                                                    const std::string& file) {
  std::vector<PushLine> lines;
  size_t number = 0;
  while (true) {
    const size_t end = text.find('\n');
    if (end == absl::string_view::npos) break;  // What is left was cut off.
    const absl::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    ++number;
    if (number == 1) {
      if (line != kColumns) {
        return absl::DataLossError(fmt::format("{}:1: this is no push log, whose columns are {}",
                                               file, std::string(kColumns)));
      }
      continue;
    }
    std::optional<PushLine> read = ReadLine(line);
    if (!read.has_value()) {
      return absl::DataLossError(fmt::format("{}:{}: this is no line of a push log", file, number));
    }
    read->number = number;
    lines.push_back(*std::move(read));
  }
  if (number == 0) return absl::DataLossError(file + ": the push log is empty");
  return lines;
}

absl::StatusOr<std::vector<PushLine>> ReadPushLog(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file.is_open()) text << file.rdbuf();
  if (!file.is_open() || file.bad()) {
    return absl::NotFoundError(
        fmt::format("{}: cannot open the push log, which psctl run --push-log writes: {}", path,
                    errno != 0 ? std::strerror(errno) : "it cannot be read"));
  }
  return ReadPushLines(text.str(), path);
}

}  // namespace slipstream

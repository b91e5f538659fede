#include "worker/data/csv_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "common/base/utf8.h"

namespace slipstream {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

absl::StatusOr<CsvLines> CsvLines::Open(const std::string& path) {
  absl::StatusOr<OpenFile> file = OpenToRead(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<uint64_t> bytes = FileBytes(*file, path);
  if (!bytes.ok()) return bytes.status();
  return CsvLines(path, *std::move(file), *bytes);
}

double CsvLines::share() const {
  return bytes_ == 0 ? 1 : std::min(1.0, static_cast<double>(taken_) / static_cast<double>(bytes_));
}

absl::Status CsvLines::Fill() {
  std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
            buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() < end_ + kReadBytes) buffer_.resize(std::max(2 * end_, kReadBytes + end_));
  const size_t got = std::fread(buffer_.data() + end_, 1, buffer_.size() - end_, file_.get());
  end_ += got;
  is_at_end_ = got == 0;
  if (std::ferror(file_.get()) != 0) {
    return absl::DataLossError(fmt::format("{}: cannot be read: {}", path_, strerror(errno)));
  }
  return absl::OkStatus();
}

std::string_view CsvLines::Take(size_t length, size_t with_end) {
  std::string_view line(buffer_.data() + begin_, length);
  begin_ += with_end;
  taken_ += with_end;
  if (++number_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

absl::StatusOr<std::optional<std::string_view>> CsvLines::Next() {
  size_t searched = 0;
  for (;;) {
    const std::string_view held(buffer_.data() + begin_, end_ - begin_);
    const size_t length = held.find('\n', searched);
    if (length != std::string_view::npos) return Take(length, length + 1);
    if (is_at_end_) {
      if (held.empty()) return std::nullopt;
      return Take(held.size(), held.size());  // The last line has no line end.
    }
    if (held.size() > kLineBytesMax) {
      return absl::DataLossError(
          fmt::format("{}: line {} has more than {} bytes, the most accepted", path_, number_ + 1,
                      kLineBytesMax));
    }
    searched = held.size();
    if (absl::Status status = Fill(); !status.ok()) return status;
  }
}

namespace {

constexpr size_t kShownBytesMax = 40;

std::string_view Trim(std::string_view field) {
  while (field.starts_with(' ') || field.starts_with('\t')) field.remove_prefix(1);
  while (field.ends_with(' ') || field.ends_with('\t')) field.remove_suffix(1);
  if (field.size() >= 2 && field.starts_with('"') && field.ends_with('"')) {
    return field.substr(1, field.size() - 2);
  }
  return field;
}

}  // namespace

void SplitCsvRow(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (;;) {
    const size_t comma = line.find(',');
    fields.push_back(Trim(line.substr(0, comma)));
    if (comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> ParseCsvNumber(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double number = 0;
  const char* const end = field.data() + field.size();
  const auto [parsed, error] = std::from_chars(field.data(), end, number);
  if (parsed != end || error == std::errc::invalid_argument) return std::nullopt;
  // A number that fp64 cannot hold is too large for fp32, or practically zero in it; from_chars
  // does not say which.
  if (error == std::errc::result_out_of_range) return std::nullopt;
  return number;
}

std::string DescribeCsvField(std::string_view field) {
  if (field.empty()) return "nothing";
  std::string shown;
  for (const char c : CutUtf8(field, kShownBytesMax)) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    shown += is_control ? fmt::format("\\x{:02x}", c) : std::string(1, c);
  }
  return fmt::format("\"{}{}\"", shown, field.size() > kShownBytesMax ? "…" : "");
}

}  // namespace slipstream

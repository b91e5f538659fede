#include "worker/data/csv_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>

#include "absl/strings/charconv.h"
#include "absl/strings/str_replace.h"
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
  return line;
}

absl::StatusOr<std::optional<std::string_view>> CsvLines::Next() {
  size_t searched = 0;
  for (;;) {
    const std::string_view held(buffer_.data() + begin_, end_ - begin_);
    const auto end = std::find_if(held.begin() + static_cast<ptrdiff_t>(searched), held.end(),
                                  [](char c) { return c == '\n' || c == '\r'; });
    searched = static_cast<size_t>(end - held.begin());
    const std::string_view rest = held.substr(searched);
    // The LF behind a CR may not have been read yet.
    if (!rest.empty() && (rest != "\r" || is_at_end_)) {
      return Take(searched, searched + (rest.starts_with("\r\n") ? 2 : 1));
    }
    if (is_at_end_) {
      if (held.empty()) return std::nullopt;
      return Take(held.size(), held.size());  // The last line has no line end.
    }
    if (held.size() > kLineBytesMax) {
      return absl::DataLossError(
          fmt::format("{}: line {} has more than {} bytes, the most accepted", path_, number_ + 1,
                      kLineBytesMax));
    }
    if (absl::Status status = Fill(); !status.ok()) return status;
  }
}

namespace {

constexpr size_t kShownBytesMax = 40;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

/// Returns the place of the double quote that ends the field in quotes at the front of `line`.
size_t EndOfQuoted(std::string_view line) {
  size_t quote = line.find('"', 1);
  while (line.substr(std::min(quote, line.size())).starts_with("\"\"")) {
    quote = line.find('"', quote + 2);
  }
  return quote;
}

}  // namespace

std::string CsvField::Name() const {
  return is_quoted ? absl::StrReplaceAll(std::string(text), {{"\"\"", "\""}}) : std::string(text);
}

bool SplitCsvRow(std::string_view line, std::vector<CsvField>& fields) {
  fields.clear();
  for (;;) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const size_t quote = line.starts_with('"') ? EndOfQuoted(line) : 0;
    if (quote == line.npos) return false;
    const size_t comma = line.find(',', quote);
    CsvField field = {.text = Trim(line.substr(0, comma))};
    if (quote > 0 && field.text.size() == quote + 1) {
      field = {.text = Trim(field.text.substr(1, quote - 1)), .is_quoted = true};
    }
    fields.push_back(field);
    if (comma == line.npos) return true;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> ParseCsvNumber(std::string_view field) {
  if (field.starts_with('+')) {
    field.remove_prefix(1);
    if (field.starts_with('-')) return std::nullopt;
  }
  double number = 0;
  const char* const end = field.data() + field.size();
  const auto [parsed, error] = std::from_chars(field.data(), end, number);
  if (parsed != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // std::from_chars does not say whether the number is too large or too small.
    absl::from_chars(field.data(), end, number);
    const double bound = std::abs(number) > 1 ? std::numeric_limits<double>::infinity() : 0;
    return std::copysign(bound, number);
  }
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

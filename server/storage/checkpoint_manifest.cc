#include "server/storage/checkpoint_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include "common/process/version.h"

namespace slipstream {
namespace {

constexpr std::string_view kBasePrefix = "base-";

constexpr std::string_view kFirstLine = "slipstream checkpoint";
constexpr std::string_view kChecksum = "checksum ";
constexpr size_t kHashDigits = 32;
constexpr size_t kLastLineBytes = kChecksum.size() + kHashDigits + 1;

std::string HashText(const BlockHash& hash) {
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

std::string ChecksumLine(std::string_view text) {
  return fmt::format("{}{}\n", kChecksum, HashText(HashOf(std::as_bytes(std::span(text)))));
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

uint64_t BlocksOf(uint64_t bytes) { return bytes / kBlockBytes + (bytes % kBlockBytes > 0); }

/// Reads lines of the form "key value". After the first line that is not as expected it returns
/// empty values.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}

  bool is_ok() const { return is_ok_; }
  bool is_at_end() const { return rest_.empty(); }
  bool is_next(std::string_view key) const { return rest_.starts_with(std::string(key) + " "); }

  std::string_view Line() {
    const size_t end = rest_.find('\n');
    if (!is_ok_ || end == rest_.npos) {
      is_ok_ = false;
      return {};
    }
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }

  /// Returns the rest of a line that begins with `key`.
  std::string_view Text(std::string_view key) {
    is_ok_ = is_ok_ && is_next(key);
    const std::string_view line = Line();
    return is_ok_ ? line.substr(key.size() + 1) : std::string_view();
  }

  uint64_t Number(std::string_view key) {
    std::string_view text = Text(key);
    const uint64_t number = TakeNumber(text);
    is_ok_ = is_ok_ && text.empty();
    return number;
  }

  /// Returns the number at the begin of `text`, and removes it there.
  uint64_t TakeNumber(std::string_view& text, int base = 10) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    is_ok_ = is_ok_ && error == std::errc();
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    return number;
  }

  void Take(std::string_view& text, char expected) {
    is_ok_ = is_ok_ && text.starts_with(expected);
    if (is_ok_) text.remove_prefix(1);
  }

 private:
  std::string_view rest_;
  bool is_ok_ = true;
};

/// Reads lines such as "array 4096 weights" and "file 16520 weights.safetensors".
std::pair<uint64_t, std::string> ReadSized(LineReader& reader, std::string_view key) {
  std::string_view text = reader.Text(key);
  const uint64_t size = reader.TakeNumber(text);
  reader.Take(text, ' ');
  return {size, std::string(text)};
}

ManifestFile ReadFile(LineReader& reader) {
  ManifestFile file;
  std::tie(file.bytes, file.name) = ReadSized(reader, "file");
  for (uint64_t i = 0; i < BlocksOf(file.bytes) && reader.is_ok(); ++i) {
    std::string_view line = reader.Line();
    if (line.size() != kHashDigits) line = {};
    std::string_view high = line.substr(0, kHashDigits / 2);
    std::string_view low = line.substr(line.size() / 2);
    file.blocks.push_back({.high = reader.TakeNumber(high, 16), .low = reader.TakeNumber(low, 16)});
  }
  return file;
}

void ReadFacts(LineReader& reader, CheckpointManifest& manifest) {
  const std::string_view saved = reader.Text("saved");
  std::string error;
  (void)absl::ParseTime(absl::RFC3339_full, absl::string_view(saved.data(), saved.size()),
                        &manifest.saved_at, &error);
  std::string_view run = reader.Text("run");
  manifest.facts.run = reader.TakeNumber(run, 16);
  manifest.facts.shard = ShardId{static_cast<uint32_t>(reader.Number("shard"))};
  std::string_view range = reader.Text("range");
  manifest.facts.range.begin = reader.TakeNumber(range);
  reader.Take(range, ':');
  manifest.facts.range.end = reader.TakeNumber(range);
  manifest.facts.saved.generation = Generation{reader.Number("generation")};
  manifest.facts.saved.version = Version{reader.Number("version")};
  manifest.facts.saved.stage = static_cast<uint32_t>(reader.Number("stage"));
  if (reader.is_next("log")) manifest.facts.log = reader.Number("log");
}

/// Returns whether the sizes of files and arrays agree, so that readers need not look again.
bool IsConsistent(const CheckpointManifest& manifest) {
  constexpr const char* kNames[] = {kWeightsFile, kArraysFile, kStateFile};
  if (!std::ranges::equal(manifest.files, kNames, {}, &ManifestFile::name)) return false;
  if (manifest.arrays.empty() || manifest.arrays.front().name != kWeightsArray) return false;
  uint64_t values = 0;
  for (const ManifestArray& array : manifest.arrays) {
    if (array.values > TensorLayout::kParametersMax) return false;
    if (&array != &manifest.arrays.front()) values += array.values;
    if (values > manifest.arrays_file().bytes) return false;
  }
  const ParameterRange& range = manifest.facts.range;
  const uint64_t weights = manifest.arrays.front().values;
  return values * sizeof(float) == manifest.arrays_file().bytes &&
         weights * sizeof(float) <= manifest.weights_file().bytes && range.begin <= range.end &&
         range.size() == weights;
}

}  // namespace

std::string NameOfBase(Version version) { return fmt::format("{}{}", kBasePrefix, Value(version)); }

bool IsNameOfBase(std::string_view name) { return name.starts_with(kBasePrefix); }

uint64_t CheckpointManifest::bytes() const {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const ManifestFile& file) { return sum + file.bytes; });
}

std::string WithChecksum(std::string lines) {
  const std::string last = ChecksumLine(lines);
  return std::move(lines) + last;
}

std::string EncodeManifest(const CheckpointManifest& manifest) {
  const CheckpointFacts& facts = manifest.facts;
  std::string text = fmt::format("{}\nformat {}\nprogram {}\nsaved {}\nrun {:016x}\nshard {}\n",
                                 kFirstLine, manifest.format, manifest.program,
                                 TimeText(manifest.saved_at), facts.run, Value(facts.shard));
  text += fmt::format("range {}:{}\ngeneration {}\nversion {}\nstage {}\n", facts.range.begin,
                      facts.range.end, Value(facts.saved.generation), Value(facts.saved.version),
                      facts.saved.stage);
  if (facts.log > 0) text += fmt::format("log {}\n", facts.log);
  for (const ManifestArray& array : manifest.arrays) {
    text += fmt::format("array {} {}\n", array.values, array.name);
  }
  for (const ManifestFile& file : manifest.files) {
    text += fmt::format("file {} {}\n", file.bytes, file.name);
    for (const BlockHash& block : file.blocks) text += HashText(block) + "\n";
  }
  return WithChecksum(std::move(text));
}

absl::StatusOr<CheckpointManifest> ParseManifest(std::string_view text) {
  if (text.size() < kLastLineBytes || !text.ends_with('\n')) {
    return absl::DataLossError(
        fmt::format("truncated: it ends at byte {} without its checksum", text.size()));
  }
  const std::string_view body = text.substr(0, text.size() - kLastLineBytes);
  if (text.substr(body.size()) != ChecksumLine(body)) {
    return absl::DataLossError(fmt::format(
        "damaged: the checksum at byte {} is not that of the text before it", body.size()));
  }
  LineReader reader(body);
  const bool is_manifest = reader.Line() == kFirstLine;
  const uint64_t format = reader.Number("format");
  CheckpointManifest manifest = {.format = format, .program = std::string(reader.Text("program"))};
  ReadFacts(reader, manifest);
  while (reader.is_ok() && reader.is_next("array")) {
    auto [values, name] = ReadSized(reader, "array");
    manifest.arrays.push_back({.name = std::move(name), .values = values});
  }
  while (reader.is_ok() && !reader.is_at_end()) manifest.files.push_back(ReadFile(reader));
  // Comparing with what would be written refuses every other way to write a number.
  if (!is_manifest || !reader.is_ok() || !IsConsistent(manifest) ||
      EncodeManifest(manifest) != text) {
    // A later release may have more lines.
    const std::string why = WhyUnreadable(format, manifest.program);
    if (is_manifest && !why.empty()) return absl::FailedPreconditionError(why);
    return absl::DataLossError("its checksum is right, but it is no manifest of a checkpoint");
  }
  return manifest;
}

}  // namespace slipstream

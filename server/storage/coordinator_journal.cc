#include "server/storage/coordinator_journal.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "absl/strings/numbers.h"
#include "common/base/archive.h"
#include "common/base/fixed_bytes.h"
#include "common/files/whole_file.h"
#include "common/process/version.h"

namespace slipstream {
namespace {

// The first line says what the file is, to people too. The state follows, and the checksum of both.
constexpr std::string_view kFirst = "slipstream coordinator state, format ";
constexpr std::string_view kProgram = ", written by version ";

/// The longest first line.
constexpr size_t kFirstLineMax = 200;

std::string PathIn(const std::string& directory) { return directory + "/coordinator.state"; }

constexpr size_t kChecksumBytes = 16;

std::string ChecksumOf(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return FixedBytes({hash.low64, hash.high64});
}

absl::Status Unusable(const std::string& path, std::string_view why) {
  return absl::DataLossError(
      fmt::format("{}: {}; move the directory away to begin a new run", path, why));
}

}  // namespace

absl::Status WriteJournal(const std::string& directory, const SavedCoordinator& saved) {
  ArchiveWriter body;
  body(saved);
  const std::string text =
      fmt::format("{}{}{}{}\n", kFirst, kDurableFormat, kProgram, kVersion) + body.Take();
  return WriteWholeFile(PathIn(directory), text + ChecksumOf(text));
}

absl::StatusOr<std::optional<SavedCoordinator>> ReadJournal(const std::string& directory) {
  const std::string path = PathIn(directory);
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return std::nullopt;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return Unusable(path, error.message());
  std::ifstream file(path, std::ios::binary);
  std::string contents(size, '\0');
  // Unlike an iterator of the file, this throws nothing if the disk fails.
  file.read(contents.data(), static_cast<std::streamsize>(size));
  if (!file.good()) return Unusable(path, std::strerror(errno));
  const size_t end = contents.substr(0, kFirstLineMax).find('\n');
  const std::string first = contents.substr(0, end == contents.npos ? 0 : end);
  const size_t program = first.find(kProgram);
  uint64_t format = 0;
  if (!first.starts_with(kFirst) || program == first.npos ||
      !absl::SimpleAtoi(first.substr(kFirst.size(), program - kFirst.size()), &format)) {
    return Unusable(path, "it is not the state of a coordinator");
  }
  const std::string why = WhyUnreadable(format, first.substr(program + kProgram.size()));
  if (!why.empty()) return absl::DataLossError(fmt::format("{}: {}", path, why));
  if (contents.size() < end + 1 + kChecksumBytes) return Unusable(path, "it ends too early");
  const std::string_view text =
      std::string_view(contents).substr(0, contents.size() - kChecksumBytes);
  if (ChecksumOf(text) != contents.substr(text.size())) {
    return Unusable(path, "its checksum is not that of its bytes");
  }
  const std::string_view bytes = text.substr(end + 1);
  SavedCoordinator saved;
  ArchiveReader body(bytes);
  body(saved);
  if (!body.is_complete()) return Unusable(path, "its parts have the wrong lengths");
  return std::optional<SavedCoordinator>(std::move(saved));
}

}  // namespace slipstream

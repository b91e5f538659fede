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

#include "common/base/archive.h"
#include "common/files/whole_file.h"
#include "common/process/version.h"

namespace slipstream {
namespace {

// The first line says what the file is, to people too. The rest is the checksum and the state.
std::string FirstLine() {
  return fmt::format("slipstream coordinator state, format 3, written by version {}\n", kVersion);
}

std::string PathIn(const std::string& directory) { return directory + "/coordinator.state"; }

absl::Status Unusable(const std::string& path, std::string_view why) {
  return absl::DataLossError(
      fmt::format("{}: {}; move the directory away to begin a new run", path, why));
}

}  // namespace

absl::Status WriteJournal(const std::string& directory, const SavedCoordinator& saved) {
  ArchiveWriter body;
  body(saved);
  const std::string bytes = body.Take();
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  ArchiveWriter sum;
  sum(hash.low64, hash.high64);
  return WriteWholeFile(PathIn(directory), FirstLine() + sum.Take() + bytes);
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
  const std::string first = FirstLine();
  if (!contents.starts_with(first)) {
    const size_t end = contents.substr(0, 200).find('\n');
    return Unusable(path,
                    end == std::string::npos
                        ? "it is not the state of a coordinator"
                        : fmt::format("it begins with \"{}\", where this program writes \"{}\"",
                                      contents.substr(0, end), first.substr(0, first.size() - 1)));
  }
  const std::string_view rest = std::string_view(contents).substr(first.size());
  XXH128_hash_t hash{};
  ArchiveReader sum(rest.substr(0, sizeof(hash)));
  sum(hash.low64, hash.high64);
  if (!sum.is_complete()) return Unusable(path, "it ends too early");
  const std::string_view bytes = rest.substr(sizeof(hash));
  const XXH128_hash_t found = XXH3_128bits(bytes.data(), bytes.size());
  if (XXH128_isEqual(hash, found) == 0)
    return Unusable(path, "its checksum is not that of its bytes");
  SavedCoordinator saved;
  ArchiveReader body(bytes);
  body(saved);
  if (!body.is_complete()) return Unusable(path, "its parts have the wrong lengths");
  return std::optional<SavedCoordinator>(std::move(saved));
}

}  // namespace slipstream

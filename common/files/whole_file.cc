#include "common/files/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/time/clock.h"
#include "common/base/check.h"

namespace slipstream {
namespace {

// Linux writes at most about 2 GiB in one call; smaller pieces also keep a call from taking long.
constexpr size_t kPieceBytes = size_t{64} << 20;

// The end of an unfinished file's name, behind its random part.
constexpr std::string_view kUnfinished = ".unfinished";
constexpr size_t kRandomDigits = 16;

constexpr absl::Duration kAbandonedAfter = absl::Hours(1);
constexpr absl::Duration kAbandonedAfterWithoutLocks = absl::Hours(24);

constexpr mode_t kMode = 0666;  // The process's umask is applied to it.

absl::Status Failure(const std::string& path, int error) {
  return absl::DataLossError(fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

/// Returns a random name: two threads or processes, even on different machines, that write to the
/// same path must not write into one file.
std::string UnfinishedPath(const std::string& path) {
  uint64_t any = 0;
  PS_CHECK(getentropy(&any, sizeof(any)) == 0);
  return fmt::format("{}.{:0{}x}{}", path, any, kRandomDigits, kUnfinished);
}

bool IsNameOfUnfinished(std::string_view name) {
  if (!name.ends_with(kUnfinished)) return false;
  name.remove_suffix(kUnfinished.size());
  if (name.size() <= kRandomDigits + 1 || name[name.size() - kRandomDigits - 1] != '.')
    return false;
  name.remove_prefix(name.size() - kRandomDigits);
  return name.find_first_not_of("0123456789abcdef") == name.npos;
}

bool IsAbandoned(const std::string& path) {
  // Network file systems grant an exclusive lock only on a file that is open for writing.
  const FileDescriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat found = {};
  if (!file.is_open() || fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
  const bool is_locked = flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  if (!is_locked && errno == EWOULDBLOCK) return false;
  const absl::Duration idle = absl::Now() - absl::TimeFromTimespec(found.st_mtim);
  return idle > (is_locked ? kAbandonedAfter : kAbandonedAfterWithoutLocks);
}

bool IsReplaceable(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) != 0 || S_ISREG(found.st_mode);
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return path.substr(0, std::max<size_t>(slash, 1));
}

/// Syncs the directory of `path`, without which a rename is not on the disk. Returns 0 or the
/// error.
int SyncDirectoryOf(const std::string& path) {
  const FileDescriptor directory(
      open(DirectoryOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A directory may be writable and not readable, or its file system may be unable to sync it. That
  // is no failure: the file is in its place.
  if (!directory.is_open()) return errno == EACCES ? 0 : errno;
  if (fsync(directory.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
}

}  // namespace

absl::StatusOr<WholeFile> WholeFile::Create(const std::string& path) {
  if (!IsReplaceable(path)) {
    return absl::DataLossError(fmt::format("cannot write {}: it is no plain file", path));
  }
  std::string unfinished_path = UnfinishedPath(path);
  FileDescriptor file(
      open(unfinished_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!file.is_open()) return Failure(path, errno);
  // The lock ends with the process, however that ends. On file systems without locks there is none.
  (void)flock(file.get(), LOCK_EX | LOCK_NB);
  return WholeFile(path, std::move(unfinished_path), std::move(file));
}

WholeFile::WholeFile(std::string path, std::string unfinished_path, FileDescriptor file)
    : path_(std::move(path)),
      unfinished_path_(std::move(unfinished_path)),
      file_(std::move(file)) {}

WholeFile::WholeFile(WholeFile&& other) noexcept
    : path_(std::move(other.path_)),
      unfinished_path_(std::exchange(other.unfinished_path_, {})),
      file_(std::move(other.file_)) {}

WholeFile::~WholeFile() {
  if (!unfinished_path_.empty()) unlink(unfinished_path_.c_str());
}

absl::Status WholeFile::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        write(file_.get(), bytes.data(), std::min<size_t>(bytes.size(), kPieceBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure(path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WholeFile::Publish() {
  // Some file systems notice only here that the disk is full.
  if (fsync(file_.get()) != 0) return Failure(path_, errno);
  if (std::rename(unfinished_path_.c_str(), path_.c_str()) != 0) return Failure(path_, errno);
  unfinished_path_.clear();
  const int error = SyncDirectoryOf(path_);
  return error == 0 ? absl::OkStatus() : Failure(path_, error);
}

void RemoveAbandonedFiles(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (IsNameOfUnfinished(entry->path().filename().string()) && IsAbandoned(path)) {
      unlink(path.c_str());
    }
  }
}

absl::Status WriteWholeFile(const std::string& path, std::string_view contents) {
  absl::StatusOr<WholeFile> file = WholeFile::Create(path);
  if (!file.ok()) return file.status();
  absl::Status written = file->Append(std::as_bytes(std::span(contents)));
  return written.ok() ? file->Publish() : written;
}

}  // namespace slipstream

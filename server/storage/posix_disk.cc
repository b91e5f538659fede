#include "server/storage/posix_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/base/printable.h"
#include "common/files/file_descriptor.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

// Linux reads or writes at most about 2 GiB in one call; smaller pieces also keep a call short.
constexpr size_t kPieceBytes = size_t{64} << 20;

// A file's bytes begin to go to the disk when there are so many, and not only when they are synced.
// So the disk works while more bytes are copied.
constexpr size_t kWriteStepBytes = size_t{4} << 20;

// Only whole pages are handed over: an append to a page that is being written would wait for it.
constexpr uint64_t kPageBytes = 4096;

// The process's umask clears some of these bits.
constexpr mode_t kFileMode = 0666;
constexpr mode_t kDirectoryMode = 0777;

// As much of a lock's file is read to tell who holds it.
constexpr size_t kHolderBytesMax = 160;

absl::Status Failure(std::string_view what, const std::string& path, int error) {
  const std::string message = fmt::format("cannot {} {}: {}", what, path, std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(message) : absl::DataLossError(message);
}

class PosixFile final : public DiskFile {
 public:
  PosixFile(std::string path, FileDescriptor file)
      : path_(std::move(path)), file_(std::move(file)) {}

  absl::Status Append(std::span<const std::span<const std::byte>> parts) override {
    std::vector<iovec> pieces;
    for (std::span<const std::byte> part : parts) {
      while (!part.empty()) {
        const std::span<const std::byte> piece = part.first(std::min(part.size(), kWriteStepBytes));
        pieces.push_back(
            {.iov_base = const_cast<std::byte*>(piece.data()), .iov_len = piece.size()});
        part = part.subspan(piece.size());
      }
    }
    // A call may write less than it was given.
    for (std::span<iovec> left(pieces); !left.empty();) {
      const ssize_t written = writev(file_.get(), left.data(), CountOfStep(left));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return Failure("write", path_, errno);
      left = Rest(left, static_cast<size_t>(written));
      bytes_ += static_cast<uint64_t>(written);
      if (bytes_ - bytes_begun_ >= kWriteStepBytes) BeginWriting();
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    bytes_begun_ = bytes_;
    // Some file systems notice only here that the disk is full.
    return fsync(file_.get()) == 0 ? absl::OkStatus() : Failure("sync", path_, errno);
  }

 private:
  /// Lets the system begin to write the whole pages that were added, without waiting for it. Sync
  /// tells of failures.
  void BeginWriting() {
    const uint64_t end = bytes_ - bytes_ % kPageBytes;
    (void)sync_file_range(file_.get(), static_cast<off_t>(bytes_begun_),
                          static_cast<off_t>(end - bytes_begun_), SYNC_FILE_RANGE_WRITE);
    bytes_begun_ = end;
  }

  /// Returns the number of the first pieces to write with one call: one at least, and about
  /// kWriteStepBytes.
  static int CountOfStep(std::span<const iovec> pieces) {
    size_t count = 0;
    for (size_t bytes = 0;
         bytes < kWriteStepBytes && count < std::min<size_t>(pieces.size(), IOV_MAX); ++count) {
      bytes += pieces[count].iov_len;
    }
    return static_cast<int>(count);
  }

  /// Returns the pieces without their first `written` bytes.
  static std::span<iovec> Rest(std::span<iovec> pieces, size_t written) {
    while (!pieces.empty() && pieces.front().iov_len <= written) {
      written -= pieces.front().iov_len;
      pieces = pieces.subspan(1);
    }
    if (written > 0) {
      iovec& first = pieces.front();
      first.iov_base = static_cast<std::byte*>(first.iov_base) + written;
      first.iov_len -= written;
    }
    return pieces;
  }

  const std::string path_;
  const FileDescriptor file_;
  uint64_t bytes_ = 0;
  uint64_t bytes_begun_ = 0;  // The bytes that the system was told to write.
};

class PosixLock final : public DiskLock {
 public:
  explicit PosixLock(FileDescriptor file) : file_(std::move(file)) {}

 private:
  const FileDescriptor file_;
};

/// Returns who holds a lock, as WriteHolder has left it in the file; "another process" if it says
/// nothing.
std::string ReadHolder(int file) {
  std::array<char, kHolderBytesMax> bytes{};
  const ssize_t got = pread(file, bytes.data(), bytes.size(), 0);
  const std::string_view said(bytes.data(), got > 0 ? static_cast<size_t>(got) : 0);
  const std::string_view line = said.substr(0, said.find('\n'));
  if (line.empty()) return "another process";
  return fmt::format("another process ({})", Printable(line));
}

/// Leaves in the lock's file which process has it, for the messages of others. That it cannot be
/// written, as on a full disk, changes nothing.
void WriteHolder(int file) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host = {};
  const std::string line = fmt::format("process {} on {}\n", getpid(), host.data());
  if (ftruncate(file, 0) == 0) (void)!pwrite(file, line.data(), line.size(), 0);
}

/// Returns the directory that has the name of `path`.
std::string ParentOf(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskFile>> PosixDisk::Create(const std::string& path) {
  FileDescriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!file.is_open()) return Failure("create", path, errno);
  return std::make_unique<PosixFile>(path, std::move(file));
}

absl::Status PosixDisk::ReadAt(const std::string& path, uint64_t offset,
                               std::span<std::byte> bytes) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return Failure("read", path, errno);
  while (!bytes.empty()) {
    const ssize_t got = pread(file.get(), bytes.data(), std::min<size_t>(bytes.size(), kPieceBytes),
                              static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure("read", path, errno);
    if (got == 0) {
      return absl::DataLossError(fmt::format("cannot read {}: it ends at byte {}", path, offset));
    }
    bytes = bytes.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return absl::OkStatus();
}

absl::Status PosixDisk::WriteAt(const std::string& path, uint64_t offset,
                                std::span<const std::byte> bytes) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return Failure("write", path, errno);
  while (!bytes.empty()) {
    const ssize_t written =
        pwrite(file.get(), bytes.data(), std::min<size_t>(bytes.size(), kPieceBytes),
               static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failure("write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return fsync(file.get()) == 0 ? absl::OkStatus() : Failure("sync", path, errno);
}

absl::Status PosixDisk::Truncate(const std::string& path, uint64_t bytes) {
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.is_open()) return Failure("truncate", path, errno);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0 || fsync(file.get()) != 0) {
    return Failure("truncate", path, errno);
  }
  return absl::OkStatus();
}

absl::Status PosixDisk::Rename(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  return Failure("rename", from + " to " + to, errno);
}

absl::Status PosixDisk::Remove(const std::string& path) {
  return std::remove(path.c_str()) == 0 ? absl::OkStatus() : Failure("remove", path, errno);
}

absl::StatusOr<std::vector<DiskEntry>> PosixDisk::List(const std::string& directory) {
  std::vector<DiskEntry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    DiskEntry found = {
        .name = entry->path().filename().string(), .is_directory = false, .bytes = 0};
    std::error_code gone;  // A file may be removed meanwhile.
    const fs::file_status status = entry->symlink_status(gone);
    found.is_directory = fs::is_directory(status);
    if (!gone && fs::is_regular_file(status)) found.bytes = entry->file_size(gone);
    if (!gone) entries.push_back(std::move(found));
  }
  if (error) return Failure("list", directory, error.value());
  std::ranges::sort(entries, {}, &DiskEntry::name);
  return entries;
}

absl::Status PosixDisk::MakeDirectories(const std::string& directory) {
  fs::path made;
  for (const fs::path& name : fs::path(directory)) {
    made /= name;
    if (mkdir(made.c_str(), kDirectoryMode) == 0) {
      if (absl::Status synced = SyncDirectory(ParentOf(made.string())); !synced.ok()) {
        return synced;
      }
      continue;
    }
    const int failure = errno;
    // A directory that exists may be on a read-only file system, which mkdir says first.
    std::error_code error;
    if (!fs::is_directory(made, error)) return Failure("make", directory, failure);
  }
  return absl::OkStatus();
}

absl::Status PosixDisk::SyncDirectory(const std::string& directory) {
  const FileDescriptor opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.is_open()) return Failure("sync", directory, errno);
  // Some file systems cannot sync a directory, and need not.
  if (fsync(opened.get()) == 0 || errno == EINVAL || errno == ENOTSUP) return absl::OkStatus();
  return Failure("sync", directory, errno);
}

std::optional<uint64_t> PosixDisk::FreeBytes(const std::string& directory) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  return error ? std::nullopt : std::optional<uint64_t>(space.available);
}

absl::StatusOr<std::unique_ptr<DiskLock>> PosixDisk::Lock(const std::string& directory) {
  const std::string path = directory + "/" + kLockName;
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode));
  if (!file.is_open()) return Failure("lock", path, errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return absl::ResourceExhaustedError(
        fmt::format("{} is in use by {}: end that process, or wait until it ends", directory,
                    ReadHolder(file.get())));
  }
  WriteHolder(file.get());
  return std::make_unique<PosixLock>(std::move(file));
}

}  // namespace slipstream

#ifndef SLIPSTREAM_TESTS_SUPPORT_SIMULATED_DISK_H_
#define SLIPSTREAM_TESTS_SUPPORT_SIMULATED_DISK_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/storage/disk.h"

namespace slipstream {

/// A file system in memory that crashes, fills up and fails when a test says so.
///
/// It keeps two states: what programs see, and what is on the disk. Sync and SyncDirectory carry
/// the one over to the other, and a crash goes back. What was not synced is lost then, or partly
/// there, as the seed draws: a file may keep a part of the bytes that it lacks, where some sectors
/// and the last bytes are zeros, and a directory may keep all of its new, renamed and removed names
/// or none.
///
/// A sync that fails drops the bytes that it should have carried over, as Linux does: they are
/// still read, but count as written. No later sync carries them over, unless they are written
/// again, and a crash leaves zeros in their place.
///
/// The calls of Disk and DiskFile are counted, so that a test can let each of them fail in turn.
///
/// Not thread-safe: one owner.
class SimulatedDisk final : public Disk {
 public:
  absl::StatusOr<std::unique_ptr<DiskFile>> Create(const std::string& path) override;
  absl::Status ReadAt(const std::string& path, uint64_t offset,
                      std::span<std::byte> bytes) override;
  absl::Status WriteAt(const std::string& path, uint64_t offset,
                       std::span<const std::byte> bytes) override;
  absl::Status Truncate(const std::string& path, uint64_t bytes) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<DiskEntry>> List(const std::string& directory) override;
  absl::Status MakeDirectories(const std::string& directory) override;
  absl::Status SyncDirectory(const std::string& directory) override;
  absl::StatusOr<std::unique_ptr<DiskLock>> Lock(const std::string& directory) override;

  /// The number of calls so far.
  uint64_t calls() const { return calls_; }

  /// Lets the `number`-th call from now on fail, counted from 1. An Append that fails adds a half
  /// of its bytes. A Sync, WriteAt or Truncate that fails drops what the file has not synced.
  void FailCall(uint64_t number) { fails_at_ = calls_ + number; }

  /// Lets that call and all later ones fail, as the machine stands still. They drop nothing. Crash
  /// ends this.
  void StopAtCall(uint64_t number) { stops_at_ = calls_ + number; }

  /// Lets no file of this name be removed, as if it were on NFS and another process had it open.
  void KeepFiles(std::string name) { kept_ = std::move(name); }

  /// No call fails any more because of FailCall or StopAtCall. So these may stand for the end of a
  /// process alone, whose machine goes on and forgets nothing.
  void EndFailures();

  /// Returns whether a call has failed because of FailCall or StopAtCall.
  bool has_failed() const { return calls_ >= std::min(fails_at_, stops_at_); }

  /// The bytes of all files.
  uint64_t BytesUsed() const { return BytesUsed(*root_); }

  /// Bounds the bytes of all files. Appends that pass it add what there is room for, and fail.
  void SetCapacity(uint64_t bytes) { capacity_ = bytes; }

  /// The machine stops and starts again. `seed` draws what is left of what was not synced; without
  /// one, nothing is. Locks are free again, and nothing fails any more.
  void Crash(std::optional<uint64_t> seed = std::nullopt);

  /// Returns the bytes of a file, to be read or damaged as a disk would. The file must exist.
  std::string& BytesOf(const std::string& path);

 private:
  /// A file or directory. A directory's names lead to nodes, which may be on the disk before the
  /// names are.
  struct Node {
    /// All bytes are on the disk then but those that were dropped.
    void Sync() { bytes_on_disk = bytes_clean = bytes.size(); }

    /// Drops what Sync would carry over.
    void DropUnsynced();

    /// The bytes from `begin` up to `end` were written again, or cut off.
    void EndDropped(size_t begin, size_t end);

    bool is_directory = false;
    std::string bytes;
    size_t bytes_on_disk = 0;  // The size of the file on the disk.
    size_t bytes_clean = 0;    // How many bytes the next sync need not carry over; the first ones.

    // The ranges of bytes, from the first one up to the second, of which the disk has only zeros.
    std::vector<std::pair<size_t, size_t>> dropped;
    std::map<std::string, std::shared_ptr<Node>> entries;
    std::map<std::string, std::shared_ptr<Node>> synced_entries;
  };
  class File;
  class LockHolder;

  /// Counts a call, and fails it if its turn has come.
  absl::Status Count(const std::string& path);

  /// Counts a call that syncs the file, and drops bytes if it fails and the machine goes on. The
  /// file is null if there is none.
  absl::Status CountSync(const std::string& path, Node* file);

  /// Returns null if there is no such file or directory.
  std::shared_ptr<Node> Find(const std::string& path) const;
  std::shared_ptr<Node> FindDirectory(const std::string& path) const;
  static uint64_t BytesUsed(const Node& node);

  std::shared_ptr<Node> root_ = std::make_shared<Node>(Node{.is_directory = true});
  std::set<std::string> locked_;
  uint64_t calls_ = 0;
  uint64_t fails_at_ = std::numeric_limits<uint64_t>::max();
  uint64_t stops_at_ = std::numeric_limits<uint64_t>::max();
  uint64_t capacity_ = std::numeric_limits<uint64_t>::max();
  std::string kept_;  // The name of files that stay.
};

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SUPPORT_SIMULATED_DISK_H_

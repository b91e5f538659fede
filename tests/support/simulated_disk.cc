#include "tests/support/simulated_disk.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "common/base/check.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

absl::Status Failure(const std::string& path, const char* reason) {
  return absl::DataLossError(fmt::format("{}: {}", path, reason));
}

absl::Status Missing(const std::string& path) {
  return absl::NotFoundError(fmt::format("{}: No such file or directory", path));
}

std::string ParentOf(const std::string& path) { return fs::path(path).parent_path().string(); }
std::string NameOf(const std::string& path) { return fs::path(path).filename().string(); }

/// Makes bytes that lie behind the first `synced` zeros: some sectors, as a disk writes them in any
/// order, and a part of the last one.
void LoseSectors(std::string& bytes, size_t synced, std::mt19937_64& random) {
  constexpr size_t kSectorBytes = 512;
  const size_t torn = std::min<size_t>(bytes.size() - synced, random() % kSectorBytes);
  std::fill_n(bytes.rbegin(), torn, '\0');
  for (size_t begin = synced; begin < bytes.size();) {
    const size_t end = std::min(bytes.size(), (begin / kSectorBytes + 1) * kSectorBytes);
    if (random() % 4 == 0) std::fill(bytes.begin() + begin, bytes.begin() + end, '\0');
    begin = end;
  }
}

}  // namespace

class SimulatedDisk::File final : public DiskFile {
 public:
  /// `disk` must outlive the file.
  File(SimulatedDisk& disk, std::string path, std::shared_ptr<Node> node)
      : disk_(disk), path_(std::move(path)), node_(std::move(node)) {}

  absl::Status Append(std::span<const std::span<const std::byte>> parts) override {
    std::string text;
    for (const std::span<const std::byte> part : parts) {
      text.append(reinterpret_cast<const char*>(part.data()), part.size());
    }
    if (absl::Status counted = disk_.Count(path_); !counted.ok()) {
      node_->bytes.append(text, 0, text.size() / 2);
      return counted;
    }
    const uint64_t used = disk_.BytesUsed();
    const uint64_t room = disk_.capacity_ - std::min(used, disk_.capacity_);
    node_->bytes.append(text, 0, room);
    if (text.size() <= room) return absl::OkStatus();
    return Failure(path_, "No space left on device");
  }

  absl::Status Sync() override {
    if (absl::Status counted = disk_.CountSync(path_, node_.get()); !counted.ok()) return counted;
    node_->Sync();
    return absl::OkStatus();
  }

 private:
  SimulatedDisk& disk_;
  const std::string path_;
  const std::shared_ptr<Node> node_;  // Shared with the directory, which may lose it.
};

class SimulatedDisk::LockHolder final : public DiskLock {
 public:
  /// `disk` must outlive the lock.
  LockHolder(SimulatedDisk& disk, std::string directory)
      : disk_(disk), directory_(std::move(directory)) {}
  ~LockHolder() override { disk_.locked_.erase(directory_); }

 private:
  SimulatedDisk& disk_;
  const std::string directory_;
};

absl::Status SimulatedDisk::Count(const std::string& path) {
  ++calls_;
  if (calls_ == fails_at_ || calls_ >= stops_at_) return Failure(path, "Input/output error");
  return absl::OkStatus();
}

absl::Status SimulatedDisk::CountSync(const std::string& path, Node* file) {
  absl::Status counted = Count(path);
  if (!counted.ok() && file != nullptr && calls_ < stops_at_) file->DropUnsynced();
  return counted;
}

void SimulatedDisk::Node::DropUnsynced() {
  dropped.emplace_back(bytes_clean, bytes.size());
  bytes_clean = bytes.size();
}

void SimulatedDisk::Node::EndDropped(size_t begin, size_t end) {
  std::vector<std::pair<size_t, size_t>> left;
  for (const auto& [first, last] : dropped) {
    if (first < begin) left.emplace_back(first, std::min(last, begin));
    if (last > end) left.emplace_back(std::max(first, end), last);
  }
  dropped = std::move(left);
}

std::shared_ptr<SimulatedDisk::Node> SimulatedDisk::Find(const std::string& path) const {
  std::shared_ptr<Node> node = root_;
  for (const fs::path& name : fs::path(path).relative_path()) {
    const auto found = node->entries.find(name.string());
    if (found == node->entries.end()) return nullptr;
    node = found->second;
  }
  return node;
}

std::shared_ptr<SimulatedDisk::Node> SimulatedDisk::FindDirectory(const std::string& path) const {
  std::shared_ptr<Node> node = Find(path);
  return node != nullptr && node->is_directory ? node : nullptr;
}

uint64_t SimulatedDisk::BytesUsed(const Node& node) {
  uint64_t used = node.bytes.size();
  for (const auto& [name, entry] : node.entries) used += BytesUsed(*entry);
  return used;
}

absl::StatusOr<std::unique_ptr<DiskFile>> SimulatedDisk::Create(const std::string& path) {
  if (absl::Status counted = Count(path); !counted.ok()) return counted;
  const std::shared_ptr<Node> parent = FindDirectory(ParentOf(path));
  if (parent == nullptr) return Missing(path);
  auto node = std::make_shared<Node>();
  if (!parent->entries.emplace(NameOf(path), node).second) return Failure(path, "File exists");
  return std::make_unique<File>(*this, path, std::move(node));
}

absl::Status SimulatedDisk::ReadAt(const std::string& path, uint64_t offset,
                                   std::span<std::byte> bytes) {
  if (absl::Status counted = Count(path); !counted.ok()) return counted;
  const std::shared_ptr<Node> node = Find(path);
  if (node == nullptr) return Missing(path);
  if (offset + bytes.size() > node->bytes.size()) return Failure(path, "ends too early");
  std::ranges::copy(std::as_bytes(std::span(node->bytes)).subspan(offset, bytes.size()),
                    bytes.begin());
  return absl::OkStatus();
}

absl::Status SimulatedDisk::WriteAt(const std::string& path, uint64_t offset,
                                    std::span<const std::byte> bytes) {
  const std::shared_ptr<Node> node = Find(path);
  if (absl::Status counted = CountSync(path, node.get()); !counted.ok()) return counted;
  if (node == nullptr) return Missing(path);
  PS_CHECK(offset + bytes.size() <= node->bytes.size());
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(node->bytes)).begin() + offset);
  node->EndDropped(offset, offset + bytes.size());
  node->Sync();
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Truncate(const std::string& path, uint64_t bytes) {
  const std::shared_ptr<Node> node = Find(path);
  if (absl::Status counted = CountSync(path, node.get()); !counted.ok()) return counted;
  if (node == nullptr) return Missing(path);
  PS_CHECK(bytes <= node->bytes.size());
  node->bytes.resize(bytes);
  node->EndDropped(bytes, std::string::npos);
  node->Sync();
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  if (absl::Status counted = Count(from); !counted.ok()) return counted;
  const std::shared_ptr<Node> node = Find(from);
  const std::shared_ptr<Node> parent = FindDirectory(ParentOf(to));
  if (node == nullptr || parent == nullptr) return Missing(from);
  const std::shared_ptr<Node> replaced = Find(to);
  if (replaced != nullptr && !replaced->entries.empty()) return Failure(to, "Directory not empty");
  FindDirectory(ParentOf(from))->entries.erase(NameOf(from));
  parent->entries[NameOf(to)] = node;
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Remove(const std::string& path) {
  if (absl::Status counted = Count(path); !counted.ok()) return counted;
  const std::shared_ptr<Node> node = Find(path);
  if (node == nullptr) return Missing(path);
  if (!node->entries.empty()) return Failure(path, "Directory not empty");
  if (NameOf(path) == kept_) return Failure(path, "in use");
  FindDirectory(ParentOf(path))->entries.erase(NameOf(path));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<DiskEntry>> SimulatedDisk::List(const std::string& directory) {
  if (absl::Status counted = Count(directory); !counted.ok()) return counted;
  const std::shared_ptr<Node> node = FindDirectory(directory);
  if (node == nullptr) return Missing(directory);
  std::vector<DiskEntry> entries;
  for (const auto& [name, entry] : node->entries) {
    entries.push_back(
        {.name = name, .is_directory = entry->is_directory, .bytes = entry->bytes.size()});
  }
  return entries;
}

absl::Status SimulatedDisk::MakeDirectories(const std::string& directory) {
  if (absl::Status counted = Count(directory); !counted.ok()) return counted;
  std::shared_ptr<Node> node = root_;
  for (const fs::path& name : fs::path(directory).relative_path()) {
    std::shared_ptr<Node>& entry = node->entries[name.string()];
    if (entry == nullptr) {
      entry = std::make_shared<Node>(Node{.is_directory = true});
      node->synced_entries = node->entries;
    }
    if (!entry->is_directory) return Failure(directory, "Not a directory");
    node = entry;
  }
  return absl::OkStatus();
}

absl::Status SimulatedDisk::SyncDirectory(const std::string& directory) {
  if (absl::Status counted = Count(directory); !counted.ok()) return counted;
  const std::shared_ptr<Node> node = FindDirectory(directory);
  if (node == nullptr) return Missing(directory);
  node->synced_entries = node->entries;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<DiskLock>> SimulatedDisk::Lock(const std::string& directory) {
  if (absl::Status counted = Count(directory); !counted.ok()) return counted;
  const std::shared_ptr<Node> node = FindDirectory(directory);
  if (node == nullptr) return Missing(directory);
  if (!locked_.insert(directory).second) {
    return absl::ResourceExhaustedError(fmt::format("{} is in use by another process", directory));
  }
  std::shared_ptr<Node>& file = node->entries[kLockName];
  if (file == nullptr) file = std::make_shared<Node>();
  return std::make_unique<LockHolder>(*this, directory);
}

void SimulatedDisk::Crash(std::optional<uint64_t> seed) {
  std::mt19937_64 random(seed.value_or(0));
  std::vector<std::shared_ptr<Node>> nodes = {root_};
  while (!nodes.empty()) {
    const std::shared_ptr<Node> node = nodes.back();
    nodes.pop_back();
    if (!seed || random() % 2 == 0) {
      node->entries = node->synced_entries;
    } else {
      node->synced_entries = node->entries;
    }
    for (const auto& [begin, end] : node->dropped) {
      std::fill(node->bytes.begin() + begin, node->bytes.begin() + end, '\0');
    }
    node->dropped.clear();
    // An Append only adds bytes, so those that were synced are the first ones.
    const size_t unsynced = node->bytes.size() - node->bytes_on_disk;
    const size_t left = seed ? random() % (unsynced + 1) : 0;
    node->bytes.resize(node->bytes_on_disk + left);
    if (seed) LoseSectors(node->bytes, node->bytes_on_disk, random);
    node->Sync();
    for (const auto& [name, entry] : node->entries) nodes.push_back(entry);
  }
  locked_.clear();
  EndFailures();
}

void SimulatedDisk::EndFailures() {
  fails_at_ = std::numeric_limits<uint64_t>::max();
  stops_at_ = std::numeric_limits<uint64_t>::max();
}

std::string& SimulatedDisk::BytesOf(const std::string& path) {
  const std::shared_ptr<Node> node = Find(path);
  PS_CHECK(node != nullptr);
  return node->bytes;
}

}  // namespace slipstream

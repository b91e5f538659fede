#include "deploy/psctl/lab/lab_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "common/config/run_text.h"
#include "common/files/whole_file.h"
#include "common/json/json_text.h"
#include "common/process/version.h"
#include "deploy/psctl/compare/run_record.h"
#include "deploy/psctl/compare/summary_values.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

absl::Status FileError(std::string_view what, const std::string& path, std::string_view reason) {
  return absl::DataLossError(fmt::format("cannot {} {}: {}", what, path, reason));
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? FileError("make", path, error.message()) : absl::OkStatus();
}

/// Replaces `from` by `to` in a text file. A file that is not there needs nothing.
absl::Status ReplaceIn(const std::string& path, const std::string& from, const std::string& to) {
  absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok() || text->find(from) == std::string::npos) return absl::OkStatus();
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at)) {
    text->replace(at, from.size(), to);
    at += to.size();
  }
  return WriteWholeFile(path, *text);
}

std::string CostPath(const std::string& directory) { return directory + "/cell.json"; }

/// Returns an exclusive lock of a whole file. It belongs to the open file, so that children do not
/// keep it alive.
struct flock WholeFileLock() {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

/// Syncs a directory, so that a name in it survives a crash of the machine.
void SyncDirectory(const std::string& path) {
  const FileDescriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.is_open()) (void)fsync(directory.get());
}

}  // namespace

LabDirectory::LabDirectory(std::string path, std::string build, bool takes_any_build)
    : path_(std::move(path)), build_(std::move(build)), takes_any_build_(takes_any_build) {
  std::map<std::string, fs::file_time_type> times;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_ + "/cells", error)) {
    const std::string name = entry.path().filename().string();
    const size_t dash = name.find('-');
    if (dash == std::string::npos || name.find('.') != std::string::npos) continue;
    const std::string id = name.substr(0, dash);
    const fs::file_time_type time = entry.last_write_time(error);
    if (name.substr(dash + 1) == build_ || (others_.contains(id) && time < times[id])) continue;
    others_[id] = name.substr(dash + 1);
    times[id] = time;
  }
}

absl::StatusOr<FileDescriptor> LabDirectory::Lock() const {
  for (const char* folder : {"/cells", "/settings"}) {
    if (absl::Status made = MakeDirectories(path_ + folder); !made.ok()) return made;
  }
  const std::string path = LockPath();
  FileDescriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.is_open()) return FileError("open", path, strerror(errno));
  struct flock whole = WholeFileLock();
  if (fcntl(lock.get(), F_OFD_SETLK, &whole) == 0) return lock;
  if (errno != EAGAIN && errno != EACCES) return FileError("lock", path, strerror(errno));
  return absl::FailedPreconditionError(fmt::format(
      "another psctl lab run works in {}; wait for it, or name another directory with --dir",
      path_));
}

bool LabDirectory::IsLocked() const {
  const FileDescriptor file(open(LockPath().c_str(), O_RDONLY | O_CLOEXEC));
  struct flock found = WholeFileLock();
  return file.is_open() && fcntl(file.get(), F_OFD_GETLK, &found) == 0 && found.l_type != F_UNLCK;
}

std::optional<std::string> LabDirectory::BuildOf(const std::string& id) const {
  std::error_code error;
  if (fs::exists(CellPath(id), error)) return build_;
  if (fs::exists(FailedPath(id), error)) return std::nullopt;  // That of others does not hide it.
  const auto other = others_.find(id);
  return takes_any_build_ && other != others_.end() ? std::optional(other->second) : std::nullopt;
}

std::string LabDirectory::UnusedText(const std::vector<Cell>& cells) const {
  const auto count = std::ranges::count_if(cells, [this](const Cell& cell) {
    std::error_code error;
    return others_.contains(cell.id) && !BuildOf(cell.id) &&
           !fs::exists(FailedPath(cell.id), error);
  });
  if (count == 0) return "";
  return fmt::format("; {} of another build left unused (--any-build takes them)",
                     CountText(static_cast<size_t>(count), "cell"));
}

CellState LabDirectory::StateOf(const std::string& id) const {
  std::error_code error;
  if (BuildOf(id)) return CellState::kDone;
  if (fs::exists(UnfinishedPath(id), error)) return CellState::kRunning;
  return fs::exists(FailedPath(id), error) ? CellState::kFailed : CellState::kPending;
}

absl::Status LabDirectory::Begin(const Cell& cell) const {
  GiveUp(cell.id);
  absl::Status status = WriteWholeFile(SettingsPath(cell.id), ToYaml(cell.settings));
  status.Update(WriteWholeFile(WorldPath(cell.id), cell.world));
  if (status.ok()) status.Update(MakeDirectories(UnfinishedPath(cell.id)));
  return status;
}

absl::Status LabDirectory::Settle(const Cell& cell, bool has_failed, const CellCost& cost) const {
  const std::string from = UnfinishedPath(cell.id);
  const std::string to = has_failed ? FailedPath(cell.id) : CellPath(cell.id);
  Json values = Json::object();
  for (const CellValue& value : cell.values) values[value.key] = value.value;
  const Json json = {{"id", cell.id},
                     {"values", std::move(values)},
                     {"seed", cell.seed()},
                     {"release", kVersion},
                     {"program", build_},
                     {"wall_seconds", cost.wall_seconds},
                     {"cpu_seconds", cost.cpu_seconds},
                     {"peak_bytes", cost.peak_bytes}};
  absl::Status status = WriteWholeFile(CostPath(from), JsonText(json));
  for (const char* file : {"run.yaml", "summary.json", "metrics.jsonl"}) {
    const std::string path = from + "/" + file;
    if (status.ok()) {
      status.Update(
          ReplaceIn(path, fs::path(from).filename().string(), fs::path(to).filename().string()));
    }
  }
  if (!status.ok()) return status;
  std::error_code error;
  fs::remove_all(FailedPath(cell.id), error);  // An earlier attempt.
  fs::rename(from, to, error);
  if (error) return FileError("rename", from, error.message());
  SyncDirectory(path_ + "/cells");
  return absl::OkStatus();
}

void LabDirectory::GiveUp(const std::string& id) const {
  std::error_code error;
  fs::remove_all(UnfinishedPath(id), error);
}

std::optional<CellCost> LabDirectory::CostOf(const std::string& id) const {
  if (!BuildOf(id)) return std::nullopt;
  const absl::StatusOr<std::string> text = ReadText(CostPath(ResultPath(id)));
  const nlohmann::json json = text.ok() ? ParseObject(*text) : nlohmann::json();
  if (json.is_null()) return std::nullopt;
  const auto number = [&json](const char* pointer) { return NumberAt(json, pointer).value_or(0); };
  return CellCost{.wall_seconds = number("/wall_seconds"),
                  .cpu_seconds = number("/cpu_seconds"),
                  .peak_bytes = CountAt(json, "/peak_bytes")};
}

}  // namespace slipstream

#include "deploy/psctl/run/directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/files/file_descriptor.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

constexpr int kNameAttemptsMax = 1000;

absl::Status CannotCreate(const fs::path& path, const std::error_code& error) {
  return absl::NotFoundError("cannot create " + path.string() + ": " + error.message());
}

absl::StatusOr<fs::path> CreateFresh(std::string_view name, absl::Time now) {
  std::error_code error;
  fs::create_directories("runs", error);
  if (error) return CannotCreate("runs", error);
  const std::string stem = RunDirectory::FolderName(name) + "-" +
                           absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  for (int attempt = 1; attempt <= kNameAttemptsMax; ++attempt) {
    const fs::path path =
        fs::path("runs") / (attempt == 1 ? stem : fmt::format("{}-{}", stem, attempt));
    if (fs::create_directory(path, error)) return path;
    if (error) return CannotCreate(path, error);
  }
  return absl::NotFoundError("every name like runs/" + stem + " is taken");
}

/// Returns INVALID_ARGUMENT if another user could choose where this user's files go: everybody may
/// replace what is in the directory; or another user has put it, or a link to it, where everybody
/// may put something, such as /tmp. Elsewhere only somebody who is trusted can have done so: root
/// often writes to a directory of another user that a container was given.
absl::Status CheckIsOurs(const fs::path& path) {
  struct stat entry = {};
  struct stat found = {};
  struct stat parent = {};
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (lstat(path.c_str(), &entry) != 0 || stat(path.c_str(), &found) != 0 ||
      stat(folder.c_str(), &parent) != 0) {
    return CannotCreate(path, {errno, std::generic_category()});
  }
  const bool may_all_replace = (found.st_mode & S_IWOTH) != 0 && (found.st_mode & S_ISVTX) == 0;
  const bool is_of_others = entry.st_uid != 0 && entry.st_uid != geteuid();
  const bool may_all_put = (parent.st_mode & S_IWOTH) != 0;
  if (!may_all_replace && !(is_of_others && may_all_put)) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format(
      "the run directory {} {}, so another user could lead this run's files elsewhere; name "
      "another --run-dir, or one that does not exist yet",
      path.string(), may_all_replace ? "may be written by every user" : "belongs to another user"));
}

absl::StatusOr<fs::path> CreateChosen(const fs::path& chosen) {
  // With a slash at its end, a path leads through a link.
  const fs::path path = chosen.has_filename() ? chosen : chosen.parent_path();
  std::error_code error;
  const bool is_new = fs::create_directories(path, error);
  if (error) return CannotCreate(path, error);
  if (is_new) {
    // Whatever the process's mask of permissions is.
    fs::permissions(path, fs::perms::others_write, fs::perm_options::remove, error);
    return path;
  }
  if (absl::Status ours = CheckIsOurs(path); !ours.ok()) return ours;
  return path;
}

/// Returns INVALID_ARGUMENT if somebody has put a symbolic link where the run has a directory of
/// its own: whole directories of files would go elsewhere.
absl::Status CheckIsNoLink(const fs::path& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return absl::OkStatus();
  if (S_ISLNK(found.st_mode)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} is a symbolic link, through which nothing is written; remove it, or name another "
        "--run-dir",
        path.string()));
  }
  return CheckIsOurs(path);
}

absl::Status MakeFolders(const fs::path& path) {
  for (const char* const folder : {"logs", "checkpoints"}) {
    if (absl::Status plain = CheckIsNoLink(path / folder); !plain.ok()) return plain;
  }
  std::error_code error;
  fs::create_directories(path / "logs", error);
  return error ? CannotCreate(path / "logs", error) : absl::OkStatus();
}

/// Claims the directory. If several processes try, one succeeds.
absl::Status Claim(const fs::path& path) {
  const fs::path claim = path / "run.yaml";
  const FileDescriptor file(open(claim.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.is_open()) return absl::OkStatus();
  if (errno != EEXIST) return CannotCreate(claim, {errno, std::generic_category()});
  return absl::NotFoundError(path.string() + " already keeps a run; name another --run-dir");
}

bool ReportsAnError(std::string_view line) {
  constexpr std::string_view kMarks[] = {" error ",
                                         "error:",
                                         " critical ",
                                         "check failed",
                                         R"("level":"error")",
                                         R"("level":"critical")"};
  return std::any_of(std::begin(kMarks), std::end(kMarks), [&](std::string_view mark) {
    return line.find(mark) != std::string_view::npos;
  });
}

std::vector<std::string> ReadLastLines(const std::string& path) {
  constexpr std::streamoff kTailBytes = std::streamoff{16} * 1024;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::string> lines;
  if (!file) return lines;
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kTailBytes));
  std::string line;
  // The first line of a tail may be incomplete.
  if (size > kTailBytes) std::getline(file, line);
  while (std::getline(file, line)) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

absl::StatusOr<RunDirectory> RunDirectory::Create(const std::string& chosen, std::string_view name,
                                                  absl::Time now) {
  const absl::StatusOr<fs::path> path =
      chosen.empty() ? CreateFresh(name, now) : CreateChosen(chosen);
  if (!path.ok()) return path.status();
  if (absl::Status filled = MakeFolders(*path); !filled.ok()) return filled;
  if (const absl::Status claimed = Claim(*path); !claimed.ok()) return claimed;
  return RunDirectory(path->string());
}

absl::StatusOr<RunDirectory> RunDirectory::Share(const std::string& path) {
  const absl::StatusOr<fs::path> made = CreateChosen(path);
  if (!made.ok()) return made.status();
  if (absl::Status filled = MakeFolders(*made); !filled.ok()) return filled;
  return RunDirectory(made->string());
}

std::string RunDirectory::FolderName(std::string_view name) {
  std::string folder(name);
  for (char& c : folder) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
    if (!is_plain && (c != '.' || &c == folder.data())) c = '_';
  }
  return folder.empty() ? "run" : folder;
}

void RunDirectory::GiveUp() const {
  std::error_code error;
  fs::remove(ConfigPath(), error);
}

std::string RunDirectory::LogPath(const ProcessName& process) const {
  return path_ + "/logs/" + process.Slug() + ".log";
}

std::string RunDirectory::PortFilePath(const ProcessName& server) const {
  return path_ + "/logs/" + server.Slug() + ".port";
}

std::vector<std::string> RunDirectory::Models() const {
  std::vector<std::string> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_, error)) {
    if (entry.path().extension() == ".safetensors") models.push_back(entry.path().string());
  }
  std::ranges::sort(models);
  // The final model, which is the newest, has a name that is sorted after those of epochs.
  return models;
}

std::vector<std::string> LastErrorLines(const std::string& log_path, size_t lines_max,
                                        IfNoError if_none) {
  const std::vector<std::string> lines = ReadLastLines(log_path);
  std::vector<std::string> chosen;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(chosen), ReportsAnError);
  if (chosen.empty() && if_none == IfNoError::kQuoteLast) chosen = lines;
  if (chosen.size() > lines_max) {
    chosen.erase(chosen.begin(), chosen.end() - static_cast<std::ptrdiff_t>(lines_max));
  }
  return chosen;
}

}  // namespace slipstream

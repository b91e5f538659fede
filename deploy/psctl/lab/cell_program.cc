#include "deploy/psctl/lab/cell_program.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <filesystem>
#include <system_error>

#include "deploy/psctl/compare/run_record.h"
#include "deploy/psctl/run/program_locations.h"

namespace slipstream {
namespace {

/// A file that is not there has no size.
CellProgram::File FileAt(const std::string& path) {
  struct stat found = {};
  if (stat(path.c_str(), &found) != 0) return {.path = path};
  return {.path = path,
          .inode = found.st_ino,
          .size = static_cast<uint64_t>(found.st_size),
          .modified_ns = int64_t{found.st_mtim.tv_sec} * 1'000'000'000 + found.st_mtim.tv_nsec};
}

absl::StatusOr<std::string> BuildOf(const std::vector<std::string>& programs) {
  uint64_t hash = 0;
  for (const std::string& program : programs) {
    const absl::StatusOr<std::string> bytes = ReadText(program);
    if (!bytes.ok()) return absl::DataLossError(bytes.status().message());
    hash = XXH64(bytes->data(), bytes->size(), hash);
  }
  return fmt::format("{:08x}", static_cast<uint32_t>(hash));
}

/// `programs` are those whose build counts.
absl::StatusOr<CellProgram> Make(CellProgram program, const std::vector<std::string>& programs) {
  // Before they are read, so that no change is missed.
  for (const std::string& path : programs) program.files.push_back(FileAt(path));
  if (program.path != programs.front()) program.files.push_back(FileAt(program.path));
  absl::StatusOr<std::string> build = BuildOf(programs);
  if (!build.ok()) return build.status();
  program.build = *std::move(build);
  return program;
}

}  // namespace

absl::StatusOr<CellProgram> FindCellProgram(GridEngine engine, const std::string& bin_dir) {
  if (engine == GridEngine::kVirtual) {
    absl::StatusOr<std::string> lab = FindLab(bin_dir);
    if (!lab.ok()) return lab.status();
    return Make({.path = *lab, .build = ""}, {*lab});
  }
  const absl::StatusOr<ProgramPaths> programs = FindPrograms(bin_dir);
  if (!programs.ok()) return programs.status();
  std::error_code error;
  return Make({.path = std::filesystem::read_symlink("/proc/self/exe", error).string(),
               .build = "",
               .environment = {"PS_SERVER_BINARY=" + programs->server,
                               "PS_WORKER_BINARY=" + programs->worker}},
              {programs->server, programs->worker});
}

absl::Status CheckUnchanged(const CellProgram& program) {
  for (const CellProgram::File& file : program.files) {
    const CellProgram::File now = FileAt(file.path);
    if (now.inode == file.inode && now.size == file.size && now.modified_ns == file.modified_ns) {
      continue;
    }
    return absl::FailedPreconditionError(fmt::format(
        "the program {} was replaced while the grid was run, so that its cells would be "
        "of two builds; start psctl lab run again",
        file.path));
  }
  return absl::OkStatus();
}

}  // namespace slipstream

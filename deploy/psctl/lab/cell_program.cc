#include "deploy/psctl/lab/cell_program.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

#include "deploy/psctl/run/program_locations.h"

namespace slipstream {
namespace {

std::string BuildOf(const std::vector<std::string>& programs) {
  uint64_t hash = 0;
  for (const std::string& program : programs) {
    std::ifstream file(program, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    hash = XXH64(bytes.data(), bytes.size(), hash);
  }
  return fmt::format("{:08x}", static_cast<uint32_t>(hash));
}

}  // namespace

absl::StatusOr<CellProgram> FindCellProgram(GridEngine engine, const std::string& bin_dir) {
  if (engine == GridEngine::kVirtual) {
    absl::StatusOr<std::string> lab = FindLab(bin_dir);
    if (!lab.ok()) return lab.status();
    return CellProgram{.path = *lab, .build = BuildOf({*lab})};
  }
  const absl::StatusOr<ProgramPaths> programs = FindPrograms(bin_dir);
  if (!programs.ok()) return programs.status();
  std::error_code error;
  return CellProgram{.path = std::filesystem::read_symlink("/proc/self/exe", error).string(),
                     .build = BuildOf({programs->server, programs->worker})};
}

}  // namespace slipstream

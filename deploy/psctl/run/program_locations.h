#ifndef SLIPSTREAM_DEPLOY_PSCTL_RUN_PROGRAM_LOCATIONS_H_
#define SLIPSTREAM_DEPLOY_PSCTL_RUN_PROGRAM_LOCATIONS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace slipstream {

/// Where ps_server and ps_worker lie.
struct ProgramPaths {
  std::string server;
  std::string worker;
};

/// Returns the paths at which a program may lie, the likeliest first: in `bin_dir` alone if it is
/// given; else in the folder of
/// psctl, its neighbour in a Bazel output tree, and psctl's runfiles. `package` is the program's
/// Bazel package, `self` psctl's own path.
std::vector<std::string> CandidatePaths(std::string_view program, std::string_view package,
                                        std::string_view self, std::string_view bin_dir);

/// Finds both programs. PS_SERVER_BINARY and PS_WORKER_BINARY name them, unless `bin_dir` is given.
/// Fails, saying where it looked, if one is not there or cannot be executed.
absl::StatusOr<ProgramPaths> FindPrograms(std::string_view bin_dir);

/// Returns the path of a program that a user named as in a shell: a path as it is, another word as
/// found on PATH. NOT_FOUND if there is none that can be executed.
absl::StatusOr<std::string> FindOnPath(const std::string& program);

/// Finds ps_lab, the laboratory, in the same way; PS_LAB_BINARY names it.
absl::StatusOr<std::string> FindLab(std::string_view bin_dir);

/// Finds ps_evaluate, as FindPrograms does the others; PS_EVALUATE_BINARY names it.
absl::StatusOr<std::string> FindEvaluator(std::string_view bin_dir);

/// Replaces this process by a program. Returns only if that fails: the exit code, once it has
/// complained.
int Become(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_RUN_PROGRAM_LOCATIONS_H_

#ifndef SLIPSTREAM_DEPLOY_PSCTL_SLURM_BATCH_SCRIPT_H_
#define SLIPSTREAM_DEPLOY_PSCTL_SLURM_BATCH_SCRIPT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace slipstream {

/// The parts of a batch script of Slurm.
struct BatchScript {
  std::string job_name;
  uint32_t nodes = 1;

  /// Further lines for sbatch, such as "--partition=gpu".
  std::vector<std::string> sbatch_options;

  /// The words of the command that each node runs: psctl node RUN.yaml …
  std::vector<std::string> command;

  /// The run's directory, as a word of the script; it may name SLURM_JOB_ID.
  std::string run_dir;

  /// How many seconds before its end the job is told, so that servers can save.
  uint32_t warning_seconds = 120;
};

/// Returns the text of a script that sbatch takes. It starts the command on each node, passes
/// SIGUSR1 on, and puts the job back into the queue once everything is saved. A node that fails
/// ends no other: node 0 says how the run has ended.
std::string BatchScriptText(const BatchScript& script);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_PSCTL_SLURM_BATCH_SCRIPT_H_

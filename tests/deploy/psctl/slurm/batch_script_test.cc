#include "deploy/psctl/slurm/batch_script.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(BatchScriptTest, RunsTheCommandOnEachNodeAndQueuesAgainWhatWasSaved) {
  const BatchScript script = {.job_name = "demo",
                              .nodes = 3,
                              .sbatch_options = {"--partition=gpu"},
                              .command = {"psctl", "node", "my run.yaml", "--restart"}};

  EXPECT_EQ(BatchScriptText(script), R"(#!/bin/bash
#SBATCH --job-name=demo
#SBATCH --nodes=3 --ntasks-per-node=1
#SBATCH --signal=B:USR1@120 --requeue
#SBATCH --output=slurm-%j.log --open-mode=append
#SBATCH --partition=gpu

# Slurm sends SIGUSR1 before the job's time is over, or before it is preempted where it is set up to.
# srun passes it on; each psctl has its servers save, and ends with 79.
trap 'kill -USR1 "$nodes"' USR1
srun --kill-on-bad-exit=0 psctl node 'my run.yaml' --restart &
nodes=$!
wait "$nodes"
code=$?
while kill -0 "$nodes" 2>/dev/null; do
  wait "$nodes"
  code=$?
done

# Started again, the run goes on with what was saved.
if [[ $code == 79 ]]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
)");
}

}  // namespace
}  // namespace slipstream

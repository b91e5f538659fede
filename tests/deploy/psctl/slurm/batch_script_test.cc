#include "deploy/psctl/slurm/batch_script.h"

#include <gtest/gtest.h>

namespace slipstream {
namespace {

TEST(BatchScriptTest, RunsTheCommandOnEachNodeAndQueuesAgainWhatWasSaved) {
  const BatchScript script = {.job_name = "demo",
                              .nodes = 3,
                              .sbatch_options = {"--partition=gpu"},
                              .command = {"psctl", "node", "my run.yaml", "--restart"},
                              .run_dir = "runs/demo-$SLURM_JOB_ID"};

  EXPECT_EQ(BatchScriptText(script), R"(#!/bin/bash
#SBATCH --job-name=demo
#SBATCH --nodes=3 --ntasks-per-node=1
#SBATCH --signal=B:USR1@120 --requeue
#SBATCH --output=slurm-%j.log --open-mode=append
#SBATCH --partition=gpu

# Slurm sends SIGUSR1 before the job's time is over, or before it is preempted where it is set up to.
# srun passes it on; each psctl has its servers save, and ends with 79.
asked=
trap 'asked=1; kill -USR1 "$nodes"' USR1
restarts=${SLURM_RESTART_COUNT:-0}
summary=runs/demo-$SLURM_JOB_ID/attempt-$restarts/summary.json
rm -f "$summary"
srun --kill-on-bad-exit=0 psctl node 'my run.yaml' --restart &
nodes=$!
wait "$nodes"
code=$?
while kill -0 "$nodes" 2>/dev/null; do
  wait "$nodes"
  code=$?
done

# Node 0 has left how the run ended: a node that was lost had perhaps only workers.
said=$(sed -n 's/^  "exit_code": \([0-9]*\).*/\1/p' "$summary")
code=${said:-$code}

# Started again, the run goes on with what was saved. Node 0 leaves no word if its psctl was killed.
# A job that nobody has asked to leave may do so each time, for the same reason.
if [[ ( $code == 79 || ( -z $said && $code == 137 ) ) && ( -n $asked || $restarts -lt 5 ) ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)");
}

}  // namespace
}  // namespace slipstream

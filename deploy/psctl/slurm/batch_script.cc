#include "deploy/psctl/slurm/batch_script.h"

#include <fmt/format.h>

#include "common/process/exit_code.h"
#include "deploy/psctl/run/watch_command.h"

namespace slipstream {
namespace {

// A wait ends whenever a signal comes.
constexpr char kBody[] = R"(
# Slurm sends SIGUSR1 before the job's time is over, or before it is preempted where it is set up to.
# srun passes it on; each psctl has its servers save, and ends with {1}.
asked=
trap 'asked=1; kill -USR1 "$nodes"' USR1
restarts=${{SLURM_RESTART_COUNT:-0}}
summary={2}/attempt-$restarts/summary.json
rm -f "$summary"
srun --kill-on-bad-exit=0 {0} &
nodes=$!
wait "$nodes"
code=$?
while kill -0 "$nodes" 2>/dev/null; do
  wait "$nodes"
  code=$?
done

# Node 0 has left how the run ended: a node that was lost had perhaps only workers.
said=$(sed -n 's/^  "exit_code": \([0-9]*\).*/\1/p' "$summary")
code=${{said:-$code}}

# Started again, the run goes on with what was saved. Node 0 leaves no word if its psctl was killed.
# A job that nobody has asked to leave may do so each time, for the same reason.
if [[ ( $code == {1} || ( -z $said && $code == 137 ) ) && ( -n $asked || $restarts -lt 5 ) ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
)";

}  // namespace

std::string BatchScriptText(const BatchScript& script) {
  std::string text = "#!/bin/bash\n";
  const auto add = [&text](const std::string& option) { text += "#SBATCH " + option + "\n"; };
  add("--job-name=" + ShellWord(script.job_name));
  add(fmt::format("--nodes={} --ntasks-per-node=1", script.nodes));
  add(fmt::format("--signal=B:USR1@{} --requeue", script.warning_seconds));
  add("--output=slurm-%j.log --open-mode=append");
  for (const std::string& option : script.sbatch_options) add(option);
  std::string command;
  for (const std::string& word : script.command) command += " " + ShellWord(word);
  text +=
      fmt::format(kBody, command.substr(1), static_cast<int>(ExitCode::kPreempted), script.run_dir);
  return text;
}

}  // namespace slipstream

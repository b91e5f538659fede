#ifndef SLIPSTREAM_DEPLOY_LAB_RUN_COMMAND_H_
#define SLIPSTREAM_DEPLOY_LAB_RUN_COMMAND_H_

namespace slipstream {

/// Runs `ps_lab run RUN.yaml`: trains in virtual time and leaves a run directory, with run.yaml,
/// world.yaml, metrics.jsonl, summary.json, model.safetensors and, if the settings name a directory
/// for them, push logs. The files are those of `psctl run`; but summary.json has engine
/// ("virtual"), virtual_seconds and examples_per_virtual_second in the place of seconds and
/// examples_per_second, and cpu_seconds, which the process used (total, to load the data, to
/// compute gradients and measure weights, and the rest); and `t` in metrics.jsonl is virtual, too.
///
/// Returns the exit code: that of psctl run.
int RunVirtualCommand(int argc, char** argv);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_RUN_COMMAND_H_

#ifndef SLIPSTREAM_DEPLOY_LAB_REPLAY_COMMAND_H_
#define SLIPSTREAM_DEPLOY_LAB_REPLAY_COMMAND_H_

namespace slipstream {

/// Runs `ps_lab replay RUN_DIR`: redoes the run from run.yaml and the push logs, and compares the
/// SHA-256 of the weights with that in summary.json. With `--set` it asks what other settings would
/// have made of the same order of events. Prints the result as one JSON object: pushes, mean
/// staleness, versions (by shard), test_accuracy, test_loss, weights_sha256, run_sha256 (null if
/// the summary has none) and equal.
///
/// Returns the exit code.
int ReplayCommand(int argc, char** argv);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_REPLAY_COMMAND_H_

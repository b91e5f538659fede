#ifndef SLIPSTREAM_DEPLOY_LAB_MEASURE_COMMAND_H_
#define SLIPSTREAM_DEPLOY_LAB_MEASURE_COMMAND_H_

namespace slipstream {

/// Runs `ps_lab measure RUN.yaml`: prints what the run costs on this machine as one JSON object, to
/// stdout, with times in seconds:
///
///   compute      fixed and per_example (a mini-batch of μ takes a + bμ), spread (standard
///   deviation
///                by mean), processor_share (of the one that computed, less than 1 if others
///                wanted it), batches: the medians that these were fitted to
///   update       rule (an update of the whole model), fold (adding one gradient to a round)
///   local        latency, bytes_per_second and message: threads of this machine that share memory
///   loopback     the same over TCP
///   processors   how many this process may use
///   seconds      how long all this took
///
/// Returns the exit code.
int MeasureCommand(int argc, char** argv);

}  // namespace slipstream

#endif  // SLIPSTREAM_DEPLOY_LAB_MEASURE_COMMAND_H_

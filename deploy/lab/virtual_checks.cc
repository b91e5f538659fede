#include "deploy/lab/virtual_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace slipstream {

absl::Status CheckVirtual(const RunSpec& run) {
  std::vector<std::string> unknown;
  const auto refuse = [&unknown](bool is_there, const char* what) {
    if (is_there) unknown.emplace_back(what);
  };
  refuse(run.workers_make_weights(), "consistency.policy allreduce (it has no servers)");
  refuse(run.worker.fragments() > 1, "fragments of a model");
  refuse(run.worker.threads > 1, "worker.threads above 1");
  refuse(run.wire.pull_codec != Encoding::kFp32, "wire.pull_codec");
  refuse(run.data.from == SuppliedBy::kWorkers, "data of the workers' programs");
  refuse(!run.training.start_from.checkpoint.empty(), "training.start_from");
  refuse(run.testing.push_delay_max > absl::ZeroDuration(), "testing.push_delay_max");
  refuse(run.compute.device.kind == DeviceChoice::Kind::kCuda, "compute.device cuda");
  refuse(run.evaluation.by == EvaluationSpec::By::kNobody, "evaluation by nobody");
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("a run in virtual time cannot have: {}. Run it as processes (psctl run)",
                  fmt::join(unknown, "; ")));
}

absl::Status CheckWorld(const WorldSpec& world, const RunSpec& run) {
  for (const VirtualWorkerSpec& each : world.workers) {
    if (Value(each.worker) < run.cluster.workers) continue;
    return absl::InvalidArgumentError(fmt::format(
        "the world's workers have worker {}, and the run has {}, counted from 0 (cluster.workers)",
        Value(each.worker), run.cluster.workers));
  }
  return absl::OkStatus();
}

absl::Duration LastArrival(const WorldSpec& world) {
  absl::Duration last;
  for (const VirtualWorkerSpec& each : world.workers) {
    last = std::max(last, each.joins);
    if (each.returns != absl::InfiniteDuration()) last = std::max(last, each.returns);
  }
  return last;
}

RunSpec WithoutRealWorld(RunSpec run) {
  run.durability = DurabilitySpec();
  run.worker.save_state = WorkerSpec::SaveState();
  run.wire.transport = WireSpec::Transport::kTcp;
  return run;
}

}  // namespace slipstream

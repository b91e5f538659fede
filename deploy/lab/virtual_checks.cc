#include "deploy/lab/virtual_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

namespace slipstream {

absl::Status CheckVirtual(const RunSpec& run) {
  std::vector<std::string> unknown;
  const auto refuse = [&unknown](bool is_there, const char* what) {
    if (is_there) unknown.emplace_back(what);
  };
  refuse(run.workers_make_weights(), "consistency.policy allreduce (it has no servers)");
  refuse(run.cluster.groups() > 0, "cluster.tree (aggregators)");
  refuse(run.worker.fragments() > 1, "fragments of a model");
  refuse(run.worker.threads > 1, "worker.threads above 1");
  refuse(run.wire.pull_codec != Encoding::kFp32, "wire.pull_codec");
  refuse(run.data.from == SuppliedBy::kWorkers, "data of the workers' programs");
  refuse(!run.training.start_from.checkpoint.empty(), "training.start_from");
  refuse(run.evaluation.by == EvaluationSpec::By::kNobody, "evaluation by nobody");
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("a run in virtual time cannot have: {}. Run it as processes (psctl run)",
                  fmt::join(unknown, "; ")));
}

RunSpec WithoutRealWorld(RunSpec run) {
  run.durability = DurabilitySpec();
  run.worker.save_state = WorkerSpec::SaveState();
  run.wire.transport = WireSpec::Transport::kTcp;
  run.cluster.start_timeout = absl::Hours(24);
  return run;
}

}  // namespace slipstream

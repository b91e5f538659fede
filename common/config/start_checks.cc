#include "common/config/start_checks.h"

namespace slipstream {

void CheckStart(const RunDraft& draft, DiagnosticList& diagnostics) {
  constexpr const char* kCheckpoint = "training.start_from.checkpoint";
  const RunSpec& run = draft.spec;
  if (!draft.IsUsable(kCheckpoint) || run.training.start_from.checkpoint.empty()) return;
  if (draft.IsUsable("consistency.policy") && run.workers_make_weights()) {
    diagnostics.Report(draft.KeySource(kCheckpoint),
                       "training.start_from needs another policy than allreduce, under which "
                       "servers hold no weights; use model.init with a file that psctl checkpoint "
                       "export has written");
  }
  constexpr const char* kInit = "model.init";
  if (draft.IsUsable(kInit) && !run.model_files.init.empty()) {
    diagnostics.Report(draft.KeySource(kInit),
                       "the weights to begin with are those of training.start_from already; leave "
                       "out model.init");
  }
}

}  // namespace slipstream

#include "deploy/lab/update_costs.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "common/kernels/fold.h"
#include "common/kernels/rules/update_rule.h"
#include "common/kernels/segments.h"
#include "common/kernels/streamed_stores.h"
#include "deploy/lab/measured_times.h"

namespace slipstream {

UpdateCosts MeasureUpdates(const RunSpec& run, size_t parameters, absl::Duration budget) {
  const OptimizerSpec optimizer = run.server_optimizer(run.consistency);
  const std::unique_ptr<const UpdateRule> rule = MakeUpdateRule(optimizer);
  std::array<std::vector<float>, 2 + 2 * kStateArraysMax> arrays;
  for (std::vector<float>& array : arrays) array.assign(parameters, 0.5f);
  const std::vector<float> gradient(parameters, 0.25f);
  const Segments segments = {std::as_bytes(std::span(gradient))};

  UpdateArrays update = {.weights_in = arrays[0], .weights_out = arrays[1]};
  for (size_t state = 0; state < RowOf(optimizer.kind).state_arrays; ++state) {
    update.states[state] = {arrays[2 + 2 * state], arrays[3 + 2 * state]};
  }
  const RuleScalars scalars = rule->Next(rule->InitialScalars());
  const auto make_update = [&] {
    // The sum takes no memory of its own, as in a shard.
    rule->Update(update, {.last = &segments}, {.rate = 1e-9f}, scalars,
                 StoresFor(parameters * sizeof(float)));
  };
  const auto fold = [&] { FoldGradient(arrays[1], segments, 1, false); };
  UpdateCosts costs;
  costs.rule = Median(TimesOf(make_update, MeasuringClock::kThread, budget / 2));
  costs.fold = Median(TimesOf(fold, MeasuringClock::kThread, budget / 2));
  return costs;
}

}  // namespace slipstream

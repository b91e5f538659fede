#include "common/config/optimizer_fields.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>

#include "common/base/limits.h"
#include "common/config/field_builders.h"
#include "common/settings/algorithm_rows.h"
#include "common/settings/optimizer_rows.h"
#include "common/settings/run_spec.h"

namespace slipstream {
namespace {

using Table = std::vector<Field>;

/// Returns "0.001 for adam and adamw unless given", with the rates that differ from the first
/// row's, which is the field's own default.
std::string OtherRates(double RuleRow::*rate_of) {
  std::map<double, std::vector<std::string_view>> names;
  for (const RuleRow& row : kRuleRows) {
    if (row.*rate_of != kRuleRows.front().*rate_of) names[row.*rate_of].push_back(row.name);
  }
  std::vector<std::string> texts;
  for (const auto& [rate, rules] : names) {
    texts.push_back(fmt::format("{} for {}", rate, fmt::join(rules, " and ")));
  }
  return fmt::format("{} unless given", fmt::join(texts, ", "));
}

/// Returns "; 0.7 with diloco", for the algorithms with a rate of their own for the outer rule that
/// they bring, and names those whose workers push gradients, so that the rates of deltas are too
/// large.
std::string OuterRatesOfAlgorithms() {
  std::string text;
  for (const AlgorithmRow& row : kAlgorithmRows) {
    if (row.outer_learning_rate)
      text += fmt::format("; {} with {}", *row.outer_learning_rate, row.name);
    if (row.has_local_weights && row.pushes == PushKind::kGradient)
      text += fmt::format("; those of optimizer.learning_rate with {}", row.name);
  }
  return text;
}

/// Returns "; adamw takes it …".
std::string OtherDecays() {
  std::string text;
  for (const RuleRow& row : kRuleRows) {
    if (!row.decay_doc.empty()) text += fmt::format("; {} {}", row.name, row.decay_doc);
  }
  return text;
}

void AddOptimizer(Table& table) {
  table.push_back(RowChoice(
      "optimizer.kind",
      "The update rule, which makes a step of gradients; worker.algorithm may bring another "
      "default.",
      kRuleRows, [](auto& s) -> auto& { return s.optimizer.kind; }));
  table.back().has_dependent_default = true;
  table.push_back(Scalar(
      "optimizer.learning_rate",
      fmt::format("The rate at the start, before scaling and schedule; {}.",
                  OtherRates(&RuleRow::learning_rate)),
      NumberType{.min = 1e-30, .max = 1e30},
      [](auto& s) -> auto& { return s.optimizer.learning_rate; }));
  table.back().has_dependent_default = true;
  AddParameters(
      table, "optimizer.kind", kRuleRows, kRuleParameters,
      [](auto& s) -> auto& { return s.optimizer.parameters; });
  table.push_back(Scalar(
      "optimizer.weight_decay",
      fmt::format("The weights times this number are added to the gradient, once per update{}.",
                  OtherDecays()),
      NumberType{.max = kWeightDecayMax},
      [](auto& s) -> auto& { return s.optimizer.weight_decay; }));
  table.push_back(Records(
      "optimizer.per_tensor",
      "Options of their own for the tensors whose names match, as in {match: \"*.bias\", "
      "weight_decay: 0}. The first item that matches a tensor counts for it; others follow the "
      "section.",
      TensorOptionsType{}, [](auto& s) -> auto& { return s.optimizer.per_tensor; }));
  table.push_back(Scalar(
      "optimizer.clip_value",
      "A worker clips each value of a mini-batch's gradient to at most this magnitude; 0 leaves "
      "them as they are.",
      NumberType{.max = 1e15}, [](auto& s) -> auto& { return s.optimizer.clip_value; }));
  table.push_back(Scalar(
      "optimizer.clip_norm",
      "A worker clips a mini-batch's gradient to at most this L2 norm, after clip_value; 0 leaves "
      "it as it is.",
      NumberType{.max = 1e30}, [](auto& s) -> auto& { return s.optimizer.clip_norm; }));
  table.push_back(RowChoice(
      "optimizer.staleness_scaling",
      "How a gradient's staleness changes its step; worker.algorithm may bring another default.",
      kScalingRows, [](auto& s) -> auto& { return s.optimizer.staleness_scaling; }));
  table.back().has_dependent_default = true;
  AddParameters(
      table, "optimizer.staleness_scaling", kScalingRows, kScalingParameters,
      [](auto& s) -> auto& { return s.optimizer.scaling_parameters; });
}

/// Returns the algorithms whose workers take steps of their own.
std::vector<std::string> AlgorithmsWithOuter() {
  std::vector<std::string> names;
  for (const AlgorithmRow& row : kAlgorithmRows) {
    if (row.has_local_weights) names.emplace_back(row.name);
  }
  return names;
}

void AddSaveState(Table& table) {
  table.push_back(
      Local(Field::Locality::kWorker,
            Scalar(
                "worker.save_state.directory",
                "The directory where each worker saves what it carries from push to push, the same "
                "each time that it is started: rounding errors of wire.push_codec, its own "
                "weights, the state of its own steps. Started again under the same id, it goes on "
                "from there. Workers may share one. Empty for none: it goes on with zeros and the "
                "servers' weights.",
                TextType{}, [](auto& s) -> auto& { return s.worker.save_state.directory; })));
  table.push_back(Local(
      Field::Locality::kWorker,
      Scalar(
          "worker.save_state.interval", "The time from one save of a worker's state to the next.",
          DurationType{absl::Milliseconds(100), absl::Hours(24)},
          [](auto& s) -> auto& { return s.worker.save_state.interval; })));
}

void AddWorker(Table& table) {
  table.push_back(RowChoice(
      "worker.algorithm", "Decides what a worker pushes, and when.", kAlgorithmRows,
      [](auto& s) -> auto& { return s.worker.algorithm; }));
  AddParameters(
      table, "worker.algorithm", kAlgorithmRows, kAlgorithmParameters,
      [](auto& s) -> auto& { return s.worker.parameters; });
  table.push_back(Only(
      "worker.algorithm", {std::string(RowOf(kDefaultAlgorithm).name)}, "",
      Choice(
          "worker.lanes",
          "How a worker gets weights. step: with the answer to each push. free: beside its pushes, "
          "as often as they can be had, and each mini-batch begins with the newest there are; so "
          "computing waits only if gradients are computed faster than they can be sent. free only "
          "where no worker waits for others.",
          {"step", "free"}, [](auto& s) -> auto& { return s.worker.lanes; })));
  table.push_back(
      Only("worker.algorithm", AlgorithmsWithOuter(), "",
           Scalar(
               "worker.steps_by_speed",
               "A slower worker takes fewer steps between two pushes, as its measured speed is to "
               "that of the fastest, which takes as many as are set; so all push about equally "
               "often. Not with policies whose work comes in rounds.",
               FlagType{}, [](auto& s) -> auto& { return s.worker.steps_by_speed; })));
  table.push_back(Only(
      "worker.algorithm", AlgorithmsWithOuter(), "",
      Scalar(
          "worker.threads",
          "The number of threads of one worker that share the mini-batches between two pushes, "
          "and step the same weights at once without waiting for each other (Hogwild). Above 1 "
          "only on processors, and with an optimizer.kind that keeps no state.",
          CountType{1, kWorkerThreadsMax}, [](auto& s) -> auto& { return s.worker.threads; })));
  AddSaveState(table);
  table.push_back(
      Only("worker.algorithm", AlgorithmsWithOuter(), "",
           RowChoice(
               "worker.outer.kind",
               "The rule by which servers apply what workers push, where optimizer is "
               "that of the workers' own steps; its default follows from worker.algorithm.",
               kRuleRows, [](auto& s) -> auto& { return s.worker.outer.kind; })));
  table.back().has_dependent_default = true;
  table.push_back(
      Only("worker.algorithm", AlgorithmsWithOuter(), "",
           Scalar(
               "worker.outer.learning_rate",
               fmt::format("The learning rate of the outer rule; {}{}.",
                           OtherRates(&RuleRow::outer_learning_rate), OuterRatesOfAlgorithms()),
               NumberType{.min = 1e-30, .max = 1e30},
               [](auto& s) -> auto& { return s.worker.outer.learning_rate; })));
  table.back().has_dependent_default = true;
  AddParameters(
      table, "worker.outer.kind", kRuleRows, kRuleParameters,
      [](auto& s) -> auto& { return s.worker.outer.parameters; });
}

void AddSchedule(Table& table) {
  table.push_back(Choice(
      "optimizer.schedule.kind", "How the learning rate falls.", {"constant", "step", "cosine"},
      [](auto& s) -> auto& { return s.optimizer.schedule.kind; }));
  table.push_back(Scalar(
      "optimizer.schedule.warmup_epochs", "The rate rises from 0 over this many epochs first.",
      NumberType{.max = kEpochsMax},
      [](auto& s) -> auto& { return s.optimizer.schedule.warmup_epochs; }));
  table.push_back(Only(
      "optimizer.schedule.kind", {"step"}, "[30, 60]",
      List(
          "optimizer.schedule.at_epochs", "Epochs in rising order; the rate is multiplied at each.",
          ListType{NumberType{.max = kEpochsMax, .is_min_excluded = true}, 1, 1000},
          [](auto& s) -> auto& { return s.optimizer.schedule.at_epochs; })));
  table.push_back(
      Only("optimizer.schedule.kind", {"step"}, "",
           Scalar(
               "optimizer.schedule.factor", "The number that the rate is multiplied by.",
               NumberType{.max = 1, .is_min_excluded = true},
               [](auto& s) -> auto& { return s.optimizer.schedule.factor; })));
  table.push_back(
      Only("optimizer.schedule.kind", {"cosine"}, "",
           Scalar(
               "optimizer.schedule.final_share",
               "The rate at the end, as a share of learning_rate.", NumberType{.max = 1},
               [](auto& s) -> auto& { return s.optimizer.schedule.final_share; })));
}

}  // namespace

void AddOptimizerFields(std::vector<Field>& table) {
  AddOptimizer(table);
  AddSchedule(table);
  AddWorker(table);
}

}  // namespace slipstream

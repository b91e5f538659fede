#include "common/config/combination_checks.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <variant>

#include "common/base/check.h"
#include "common/config/field_table.h"

namespace slipstream {
namespace {

constexpr const char* kPolicy = "consistency.policy";
constexpr const char* kBefore = "consistency.before";

const Field& FieldOf(const Values& values) {
  const Field* field = FindField(values.key);
  PS_CHECK(field != nullptr);  // The table names keys that there are.
  return *field;
}

/// Returns the names of a key's values; null if they have none.
const ChoiceType* ChoicesOf(const Values& values) {
  const auto* scalar = std::get_if<ScalarType>(&FieldOf(values).type);
  return scalar == nullptr ? nullptr : std::get_if<ChoiceType>(scalar);
}

std::string Listed(const std::vector<std::string>& names) {
  return names.empty() ? "" : DescribeScalar(ChoiceType{names});
}

std::string Replaced(std::string text, std::string_view mark, const std::string& by) {
  const size_t place = text.find(mark);
  return place == std::string::npos ? text : text.replace(place, mark.size(), by);
}

/// Returns a run in which the key has a part.
RunSpec RunWith(const Values& values) {
  RunSpec run;
  if (const auto& condition = FieldOf(values).condition; condition.has_value()) {
    FindField(condition->path)->set(run, ScalarValue(condition->choices.front()));
  }
  return run;
}

/// Returns the remedy in words. `first` and `second` are runs by whose other settings the values
/// are chosen that would do.
std::string RemedyOf(const Combination& combination, const std::string& needed,
                     const RunSpec& first, const RunSpec& second) {
  std::string text(combination.remedy);
  if (text.find("{first}") != std::string::npos) {
    text = Replaced(text, "{first}", Listed(NamesOf(combination.first, first, false)));
  }
  if (text.find("{second}") != std::string::npos) {
    text = Replaced(text, "{second}", Listed(NamesOf(combination.second, second, false)));
  }
  return Replaced(text, "{needed}", needed);
}

/// Returns the key and its value in the run, or which values of it are meant.
std::string ValueText(const Values& values, const RunSpec& run) {
  std::string value(values.which);
  if (ChoicesOf(values) != nullptr) {
    value = WriteField(FieldOf(values).type, FieldOf(values).get(run));
  }
  return fmt::format("{}{}{}", values.key, value.empty() ? "" : " ", value);
}

/// Returns the error, in a run whose policy is the one that it is about.
std::string ErrorOf(const Combination& combination, const RunSpec& run) {
  const StageFacts facts(run, run.consistency);
  const std::string needed =
      fmt::format("{}, {}", RowOf(facts.algorithm.policy).name, facts.algorithm.why_policy);
  const std::string maker(RowOf(facts.traits.maker).why_no_versions);
  return fmt::format("{} does not go with {}: {}; {}", ValueText(combination.first, run),
                     ValueText(combination.second, run),
                     Replaced(std::string(combination.why), "{maker}", maker),
                     RemedyOf(combination, needed, run, run));
}

/// Reports a combination under one policy of the run, the one at `place`.
void Check(const RunDraft& draft, const Combination& combination, size_t place,
           DiagnosticList& diagnostics) {
  const bool is_last = place == draft.spec.policies_before.size();
  const ConsistencySpec stage = draft.spec.StageOf(place).consistency;
  for (const Values& values : {combination.first, combination.second}) {
    const bool is_before = !is_last && values.key == kPolicy;
    if (!draft.IsUsable(is_before ? kBefore : values.key)) return;
    if (!values.reads.empty() && !draft.IsUsable(values.reads)) return;
  }
  const StageFacts facts(draft.spec, stage);
  if (!combination.first.Hold(facts) || !combination.second.Hold(facts)) return;
  RunSpec run = draft.spec;
  run.consistency = stage;
  diagnostics.Report(
      is_last ? draft.KeySource(combination.first.key) : draft.ItemSource(kBefore, place),
      ErrorOf(combination, run));
}

/// Returns which values are meant, for all runs.
std::string DescribeValues(const Values& values) {
  const RunSpec run = RunWith(values);
  const std::vector<std::string> held = NamesOf(values, run, true);
  if (held.empty()) return std::string(values.which);
  const std::vector<std::string> others = NamesOf(values, run, false);
  return others.size() < held.size() ? fmt::format("other than {}", Listed(others)) : Listed(held);
}

std::string Cell(const Values& values) {
  const std::string which = DescribeValues(values);
  return fmt::format("`{}`{}{}", values.key, which.empty() ? "" : " ", which);
}

/// Returns each reason why servers have no versions, and the policies that it is for.
std::string DescribeMakers() {
  std::vector<std::string> reasons;
  for (const PolicyRow& row : kPolicyRows) {
    if (row.traits.makes_versions()) continue;
    reasons.push_back(fmt::format("{}: {}", row.name, RowOf(row.traits.maker).why_no_versions));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

/// Returns the policy that each algorithm needs.
std::string DescribeNeeds() {
  std::vector<std::string> needs;
  for (const AlgorithmRow& row : kAlgorithmRows) {
    if (row.why_policy.empty()) continue;
    needs.push_back(
        fmt::format("{} with {}, {}", RowOf(row.policy).name, row.name, row.why_policy));
  }
  return fmt::format("{}", fmt::join(needs, "; "));
}

}  // namespace

void CheckCombinations(const RunDraft& draft, DiagnosticList& diagnostics) {
  const size_t last = draft.spec.policies_before.size();
  for (const Combination& combination : Combinations()) {
    for (size_t place = combination.is_of_policy() ? 0 : last; place <= last; ++place) {
      Check(draft, combination, place, diagnostics);
    }
  }
}

std::vector<std::string> NamesOf(const Values& values, const RunSpec& run, bool held) {
  std::vector<std::string> names;
  const ChoiceType* choices = ChoicesOf(values);
  if (choices == nullptr) return names;
  for (const std::string& name : choices->names) {
    RunSpec other = run;
    FieldOf(values).set(other, ScalarValue(name));
    if (values.Hold(StageFacts(other, other.consistency)) == held) names.push_back(name);
  }
  return names;
}

std::string DescribeCombinations(std::string_view path) {
  std::vector<std::string> sentences;
  for (const Combination& combination : Combinations()) {
    if (combination.first.key != path) continue;
    const std::string which = DescribeValues(combination.first);
    const std::string second = DescribeValues(combination.second);
    sentences.push_back(fmt::format("{}ot with {}{}{}.", which.empty() ? "N" : which + ": n",
                                    combination.second.key, second.empty() ? "" : " ", second));
  }
  return fmt::format("{}", fmt::join(sentences, " "));
}

std::string CombinationsTable() {
  std::string table = "| setting | does not go with | because | remedy |\n|---|---|---|---|\n";
  for (const Combination& combination : Combinations()) {
    const auto& [first, second, why, remedy] = combination;
    table += fmt::format("| {} | {} | {} | {} |\n", Cell(first), Cell(second),
                         Replaced(std::string(why), "{maker}", DescribeMakers()),
                         RemedyOf(combination, DescribeNeeds(), RunWith(first), RunWith(second)));
  }
  return table;
}

}  // namespace slipstream

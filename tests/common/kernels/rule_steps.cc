// Makes updates by the rules of the optimizer, for a test that compares them with another
// implementation.
//
//   rule_steps KIND COUNT RATE DECAY [PARAMETER=VALUE]... [tensor:NAME=SIZE]...
//       [match:PATTERN=D,F]...
//
// The tensors lie one after another; without any, there is one. Those that match a pattern have its
// decay D and the factor F of the rate.
//
// It reads records from the standard input until that ends, and answers each. A record has the
// version's two scalars (float64) before the update, then COUNT weights, each state array and the
// gradient (float32); the answer has the next version's scalars, weights and state arrays. All
// numbers are little-endian.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/kernels/fold.h"
#include "common/kernels/rules/tensor_rules.h"
#include "common/kernels/streamed_stores.h"
#include "common/layout/tensor_layout.h"
#include "common/settings/run_spec.h"

namespace slipstream {
namespace {

template <typename T>
bool Read(std::span<T> values) {
  return std::fread(values.data(), sizeof(T), values.size(), stdin) == values.size();
}

template <typename T>
void Write(std::span<const T> values) {
  std::fwrite(values.data(), sizeof(T), values.size(), stdout);
}

/// Takes one argument after the decay. Returns false if nothing is known of that form.
bool Take(std::string argument, OptimizerSpec& spec, TensorLayout& layout) {
  const size_t equals = argument.rfind('=');
  if (equals == std::string::npos) return false;
  const std::string value = argument.substr(equals + 1);
  argument.resize(equals);
  if (argument.starts_with("tensor:")) {
    return layout.Append(argument.substr(7), {std::stoul(value)}).ok();
  }
  if (argument.starts_with("match:")) {
    spec.per_tensor.push_back(
        {.match = argument.substr(6),
         .weight_decay = std::stod(value),
         .learning_rate_factor = std::stod(value.substr(value.find(',') + 1))});
    return true;
  }
  spec.parameters[argument] = std::stod(value);
  return true;
}

int Run(const OptimizerSpec& spec, const TensorLayout& layout, float rate) {
  const size_t count = layout.parameters();
  const TensorRules rules(spec, layout, {0, count});
  const uint32_t states = RowOf(spec.kind).state_arrays;
  RuleScalars scalars = {};
  std::vector<std::vector<float>> in(states + 1, std::vector<float>(count));
  std::vector<std::vector<float>> out = in;
  std::vector<float> gradient(count);
  UpdateArrays arrays = {.weights_in = in[0], .weights_out = out[0]};
  for (uint32_t i = 0; i < states; ++i) arrays.states[i] = {in[i + 1], out[i + 1]};
  while (Read(std::span<double>(scalars))) {
    for (std::vector<float>& values : in) {
      if (!Read(std::span(values))) return 1;
    }
    if (!Read(std::span(gradient))) return 1;
    scalars = rules.Next(scalars);
    rules.Update(0, arrays, {.sum = gradient}, {.rate = rate}, scalars, Stores::kCached);
    Write(std::span<const double>(scalars));
    for (const std::vector<float>& values : out) Write(std::span<const float>(values));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  using namespace slipstream;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto row = std::ranges::find(kRuleRows, argc > 1 ? arguments[0] : "", &RuleRow::name);
  if (argc < 5 || row == kRuleRows.end()) {
    std::fputs("usage: rule_steps KIND COUNT RATE DECAY [ARGUMENT]...\n", stderr);
    return 2;
  }
  OptimizerSpec spec = {.kind = row->kind, .weight_decay = std::stod(arguments[3])};
  TensorLayout layout;
  for (const std::string& argument : std::span(arguments).subspan(4)) {
    if (Take(argument, spec, layout)) continue;
    std::fprintf(stderr, "rule_steps: cannot read %s\n", argument.c_str());
    return 2;
  }
  const size_t count = std::stoul(arguments[1]);
  if (layout.tensors().empty() && !layout.Append("all", {count}).ok()) return 2;
  if (layout.parameters() != count) return 2;
  return Run(spec, layout, std::stof(arguments[2]));
}

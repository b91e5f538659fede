#include "deploy/psctl/plan_options.h"

#include <algorithm>
#include <string>

#include "deploy/psctl/options.h"
#include "deploy/psctl/prediction/run_costs.h"
#include "deploy/psctl/prediction/sweep.h"

namespace slipstream {
namespace {

const char* TypeName(CostUnit unit) {
  switch (unit) {
    case CostUnit::kSeconds:
      return "TIME";
    case CostUnit::kBytesPerSecond:
      return "RATE";
    case CostUnit::kPlain:
      break;
  }
  return "NUMBER";
}

const char* Wanted(CostUnit unit) {
  switch (unit) {
    case CostUnit::kSeconds:
      return "must be a time, such as 50us or 1.5ms";
    case CostUnit::kBytesPerSecond:
      return "must be a rate above 0, such as 1Gbit or 125MB";
    case CostUnit::kPlain:
      break;
  }
  return "must be a number from 0 on";
}

}  // namespace

void AddPlanOptions(CLI::App& command, PlanArguments& arguments) {
  AddConfig(command, arguments.config);
  command.get_option("config")->required(false);
  AddFormat(command, arguments.format, {OutputFormat::kTable, OutputFormat::kJson});
  command
      .add_option_function<std::string>(
          "--sweep",
          [&arguments](const std::string& text) {
            const auto workers = ParseSweep(text);
            if (!workers) {
              throw CLI::ValidationError("--sweep", "must be workers=1..64 or workers=1,2,30");
            }
            arguments.workers = *workers;
          },
          "Numbers of workers: a range, which doubles, or a list")
      ->type_name("workers=A..B");
  command.add_option("--from", arguments.from, "Takes costs from a run that has ended")
      ->type_name("DIR");
  command
      .add_option("--check", arguments.check,
                  "Compares a run that has ended with its plan (RUN.YAML: the run's own)")
      ->type_name("DIR");
  command.add_option("--bin-dir", arguments.bin_dir, "Where ps_lab lies")->type_name("DIR");
  for (const CostFigure& figure : kCostFigures) {
    std::string flag = "--" + std::string(figure.key);
    std::ranges::replace(flag, '_', '-');
    command
        .add_option_function<std::string>(
            flag,
            [flag, figure, &arguments](const std::string& text) {
              const auto value = ParseCost(figure.unit, text);
              if (!value) throw CLI::ValidationError(flag, Wanted(figure.unit));
              arguments.costs[std::string(figure.key)] = *value;
            },
            std::string(figure.doc))
        ->type_name(TypeName(figure.unit))
        ->group("Costs, where they are not to be measured");
  }
  command.callback([&arguments] {
    if (arguments.config.path.empty() && arguments.check.empty()) {
      throw CLI::RequiredError("RUN.YAML, or --check RUN_DIR");
    }
  });
}

}  // namespace slipstream

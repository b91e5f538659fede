#include "deploy/psctl/options.h"

#include <map>
#include <set>
#include <string_view>
#include <variant>

#include "common/config/server_address.h"
#include "common/security/security_flags.h"
#include "common/settings/policy_rows.h"

namespace slipstream {
namespace {

constexpr CountType kStartsAgain = {1, 1000};

CLI::Option* AddSetting(CLI::App& command, const std::string& option, const std::string& key,
                        std::string_view doc, std::vector<std::string>& settings) {
  return command.add_option_function<std::string>(
      option,
      [key, &settings](const std::string& value) {
        settings.push_back("consistency." + key + "=" + value);
      },
      std::string(doc));
}

}  // namespace

CLI::Option* AddDuration(CLI::App& command, const std::string& flag, const DurationType& type,
                         absl::Duration& duration, const std::string& doc) {
  const auto read = [flag, type, &duration](const std::string& text) {
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.text = text;
    const auto value = ReadScalar(type, node);
    if (const auto* error = std::get_if<ValueError>(&value)) {
      throw CLI::ValidationError(flag, error->message);
    }
    duration = std::get<absl::Duration>(std::get<ScalarValue>(value));
  };
  return command.add_option_function<std::string>(flag, read, doc)->type_name("TIME");
}

CLI::Option* AddCount(CLI::App& command, const std::string& flag, const CountType& type,
                      uint32_t& count, const std::string& doc) {
  return command.add_option(flag, count, doc)
      ->type_name("NUMBER")
      ->check([type](const std::string& text) { return ScalarError(type, text); });
}

void AddRestart(CLI::App& command, RestartChoice& choice, uint32_t& starts_max) {
  static const std::map<std::string, RestartChoice> kChoices = {
      {"possible", RestartChoice::kPossible},
      {"servers", RestartChoice::kServers},
      {"workers", RestartChoice::kWorkers},
      {"all", RestartChoice::kAll}};
  // Only a flag leaves the word behind it to others: --restart run.yaml.
  CLI::Option* const restart =
      command.add_flag("--restart{possible}")->each([&choice](const std::string& name) {
        const auto found = kChoices.find(name);
        if (found == kChoices.end()) {
          throw CLI::ValidationError("--restart",
                                     "'" + name + "' is none of =servers, =workers and =all");
        }
        choice = found->second;
      });
  restart->description(
      "Starts what ends during the run again: workers, and servers if durability.level is "
      "checkpoint or synced; =servers, =workers or =all says which");
  AddCount(command, "--restart-max", kStartsAgain, starts_max,
           "How often in a row one process is started again (5)")
      ->needs(restart);
}

void AddConfig(CLI::App& command, ConfigArguments& arguments) {
  command.add_option("config", arguments.path, "The run's configuration")
      ->type_name("RUN.YAML")
      ->required();
  command.add_option("--set", arguments.overrides, "Overrides one setting; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);  // LoadConfig checks all settings, with everything else.
}

void AddFormat(CLI::App& command, OutputFormat& format, const std::vector<OutputFormat>& choices) {
  const std::map<OutputFormat, std::string> names = {{OutputFormat::kTable, "table"},
                                                     {OutputFormat::kText, "text"},
                                                     {OutputFormat::kJson, "json"},
                                                     {OutputFormat::kYaml, "yaml"}};
  std::map<std::string, OutputFormat> by_name;
  std::string type_name;
  for (const OutputFormat choice : choices) {
    by_name[names.at(choice)] = choice;
    type_name += (type_name.empty() ? "" : "|") + names.at(choice);
  }
  command
      .add_option_function<std::string>(
          "-o,--output", [by_name, &format](const std::string& name) { format = by_name.at(name); },
          "How to print the result (" + names.at(format) + ")")
      ->type_name(type_name)
      ->check([by_name, type_name](const std::string& name) {
        return by_name.contains(name) ? std::string() : "'" + name + "' is none of " + type_name;
      });
}

void AddPeer(CLI::App& command, std::string& coordinator, SecuritySpec& security) {
  command.add_option("--coordinator", coordinator, "Server 0 of the run")
      ->type_name("HOST:PORT")
      ->envname("PS_COORDINATOR")
      ->required();
  command.callback([&coordinator] {
    const std::string error = AddressError(coordinator);
    if (!error.empty()) throw CLI::ValidationError("--coordinator", error);
  });
  AddSecurityFlags(command, security);
}

void AddPolicyOptions(CLI::App& command, std::vector<std::string>& settings) {
  // Whether a policy can take over is the coordinator's to say; help names those that can.
  std::string names;
  std::set<std::string_view> parameters;
  for (const PolicyRow& row : kPolicyRows) {
    if (row.traits.in_step || !row.traits.makes_versions()) continue;
    names += (names.empty() ? "" : "|") + std::string(row.name);
    parameters.insert(row.parameters.begin(), row.parameters.end());
  }
  AddSetting(command, "policy", "policy", "The policy to set", settings)
      ->type_name(names)
      ->required();
  for (const ParameterRow& row : kPolicyParameters) {
    if (!parameters.contains(row.key)) continue;
    const std::string key(row.key);
    AddSetting(command, "--" + key, key, row.doc, settings)->type_name("NUMBER");
  }
}

}  // namespace slipstream

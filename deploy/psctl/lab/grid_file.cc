#include "deploy/psctl/lab/grid_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "common/base/limits.h"
#include "common/config/field_table.h"
#include "common/config/scalar_types.h"
#include "common/config/suggestion.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSeedsMax = 1000;
constexpr std::string_view kWorld = "world";

// Keys of this section are named whole, so that cluster.workers may be named short.
constexpr std::string_view kTesting = "testing.";

/// Reads a YAML file, or reports why it cannot.
std::optional<std::string> ReadText(const std::string& path, const Source& source,
                                    DiagnosticList& diagnostics) {
  absl::StatusOr<std::string> text = ReadYamlFile(path);
  if (text.ok()) return *std::move(text);
  diagnostics.Report(source, path + ": " + std::string(text.status().message()));
  return std::nullopt;
}

/// Reads the parts of a grid file into a Grid, and reports all errors.
class GridReader {
 public:
  GridReader(std::string path, DiagnosticList& diagnostics)
      : folder_(fs::path(path).parent_path()), diagnostics_(diagnostics) {
    grid_.name = fs::path(path).stem().string();
    grid_.path = std::move(path);
    grid_.world.kind = YamlNode::Kind::kMap;
  }

  Grid Read(const YamlNode& root, const std::vector<std::string>& overrides) {
    ReadKeys(root, "a grid",
             {{"name", &GridReader::ReadName},
              {"base", &GridReader::ReadBase},
              {"run", &GridReader::ReadRun},
              {"engine", &GridReader::ReadEngine},
              {"world", &GridReader::ReadWorld},
              {"set", &GridReader::ReadSettings},
              {"zip", &GridReader::ReadZips},
              {"product", &GridReader::ReadProduct},
              {"where", &GridReader::ReadWhere},
              {"seeds", &GridReader::ReadSeeds},
              {"scale", &GridReader::ReadScale},
              {"budget", &GridReader::ReadBudget},
              {"on_divergence", &GridReader::ReadDivergence},
              {"stop", &GridReader::ReadStop},
              {"reference", &GridReader::ReadReference}});
    if (!has_base_) {
      Report(root.source,
             "a grid needs \"base\", the path of a run.yaml, or \"run\", its settings");
    }
    for (const std::string& override : overrides) ReadOverride(override);
    return std::move(grid_);
  }

 private:
  using Part = void (GridReader::*)(const YamlNode& node);

  void Report(const Source& source, std::string message) {
    diagnostics_.Report(source, std::move(message));
  }

  bool IsMap(const YamlNode& node, std::string_view what) {
    if (node.kind == YamlNode::Kind::kMap) return true;
    if (node.kind != YamlNode::Kind::kRefused) {
      Report(node.source,
             fmt::format("{} must be a map of keys, not {}", what, DescribeNode(node)));
    }
    return false;
  }

  /// Calls the part of each entry.
  void ReadKeys(const YamlNode& node, std::string_view what,
                const std::vector<std::pair<std::string, Part>>& parts) {
    if (!IsMap(node, what)) return;
    for (const YamlNode::Entry& entry : node.entries) {
      const auto part = std::ranges::find(parts, entry.key, &std::pair<std::string, Part>::first);
      if (part != parts.end()) {
        if (entry.value.kind != YamlNode::Kind::kRefused) (this->*part->second)(entry.value);
        continue;
      }
      std::vector<std::string> names;
      for (const auto& [name, read] : parts) names.push_back(name);
      const std::string near = DidYouMean(entry.key, names);
      Report(
          entry.key_source,
          fmt::format("unknown key \"{}\" of {}{}", entry.key, what,
                      near.empty() ? fmt::format("; there are {}", fmt::join(names, ", ")) : near));
    }
  }

  template <typename T>
  std::optional<T> Scalar(const ScalarType& type, const YamlNode& node, std::string_view key) {
    std::variant<ScalarValue, ValueError> value = ReadScalar(type, node);
    if (const auto* error = std::get_if<ValueError>(&value)) {
      Report(node.source, fmt::format("{} {}", key, error->message));
      return std::nullopt;
    }
    return std::get<T>(std::get<ScalarValue>(std::move(value)));
  }

  std::optional<uint32_t> Count(const YamlNode& node, std::string_view key, uint64_t max) {
    const auto count = Scalar<uint64_t>(CountType{1, max}, node, key);
    return count ? std::optional(static_cast<uint32_t>(*count)) : std::nullopt;
  }

  void ReadName(const YamlNode& node) {
    if (auto name = Scalar<std::string>(TextType{TextType::Form::kName}, node, "name")) {
      grid_.name = *std::move(name);
    }
  }

  void TakeBase(YamlNode base, const Source& source) {
    if (has_base_) Report(source, "\"base\" and \"run\" are the same thing; leave one of them out");
    has_base_ = true;
    grid_.base = std::move(base);
  }

  void ReadBase(const YamlNode& node) {
    const auto path = Scalar<std::string>(TextType{}, node, "base");
    if (!path) return TakeBase(node, node.source);
    grid_.base_path = (folder_ / *path).lexically_normal().string();
    const auto text = ReadText(grid_.base_path, node.source, diagnostics_);
    std::optional<YamlNode> base;
    if (text) base = ParseYaml(*text, grid_.base_path, diagnostics_);
    TakeBase(base.value_or(node), node.source);
  }

  void ReadRun(const YamlNode& node) {
    if (IsMap(node, "run")) TakeBase(node, node.source);
    has_base_ = true;
  }

  void ReadEngine(const YamlNode& node) {
    const auto name = Scalar<std::string>(ChoiceType{{"virtual", "processes"}}, node, "engine");
    if (name == "processes") grid_.engine = GridEngine::kProcesses;
  }

  void ReadWorld(const YamlNode& node) {
    if (IsMap(node, "world")) grid_.world = node;
  }

  std::optional<GridKey> Key(const YamlNode::Entry& entry) {
    std::variant<std::string, UnknownKey> path = WholeKey(entry.key);
    if (const auto* unknown = std::get_if<UnknownKey>(&path)) {
      Report(entry.key_source, unknown->message);
      return std::nullopt;
    }
    GridKey key = {std::get<std::string>(std::move(path)), entry.key_source};
    if (!taken_.insert(key.path).second) {
      Report(entry.key_source, fmt::format("{} has values already", key.path));
    }
    return key;
  }

  void ReadSettings(const YamlNode& node) {
    if (!IsMap(node, "set")) return;
    for (const YamlNode::Entry& entry : node.entries) {
      if (auto key = Key(entry)) grid_.settings.emplace_back(*std::move(key), entry.value);
    }
  }

  /// Reads key=value.
  void ReadOverride(const std::string& text) {
    YamlNode::Entry entry = {.key = text.substr(0, text.find('='))};
    entry.key_source = entry.value.source = {.file = "--set " + text};
    if (entry.key.size() == text.size()) {
      return Report(entry.key_source, "a setting is written as KEY=VALUE");
    }
    entry.value.kind = YamlNode::Kind::kScalar;
    entry.value.text = text.substr(entry.key.size() + 1);
    const std::variant<std::string, UnknownKey> path = WholeKey(entry.key);
    const auto is_it = [&path](const std::pair<GridKey, YamlNode>& setting) {
      return setting.first.path == std::get<std::string>(path);
    };
    if (path.index() == 0 && std::erase_if(grid_.settings, is_it) > 0) {
      taken_.erase(std::get<std::string>(path));
    }
    if (auto key = Key(entry)) grid_.settings.emplace_back(*std::move(key), entry.value);
  }

  /// Returns whether the values of an axis are there.
  bool IsAxis(const YamlNode::Entry& entry) {
    if (entry.value.kind == YamlNode::Kind::kRefused) return false;
    const bool is_list = entry.value.kind == YamlNode::Kind::kList && !entry.value.items.empty();
    if (is_list) return true;
    Report(entry.value.source,
           fmt::format("{} must be a list of values in brackets, not {}", entry.key,
                       entry.value.kind == YamlNode::Kind::kList ? "an empty one"
                                                                 : DescribeNode(entry.value)));
    return false;
  }

  void ReadZips(const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kList) return ReadZip(node);
    for (const YamlNode& zip : node.items) ReadZip(zip);
  }

  void ReadZip(const YamlNode& node) {
    if (!IsMap(node, "zip")) return;
    GridAxis axis;
    for (const YamlNode::Entry& entry : node.entries) {
      std::optional<GridKey> key = Key(entry);
      if (!IsAxis(entry) || !key) continue;
      const std::vector<YamlNode>& values = entry.value.items;
      if (axis.keys.empty()) axis.rows.resize(values.size());
      if (values.size() != axis.rows.size()) {
        Report(entry.value.source,
               fmt::format("{} has {} values, and {} has {}: a zip takes the first of each key, "
                           "then the second, and so on",
                           entry.key, values.size(), axis.keys.front().path, axis.rows.size()));
        continue;
      }
      axis.keys.push_back(*std::move(key));
      for (size_t i = 0; i < values.size(); ++i) axis.rows[i].push_back(values[i]);
    }
    if (!axis.keys.empty()) grid_.axes.push_back(std::move(axis));
  }

  void ReadProduct(const YamlNode& node) {
    if (!IsMap(node, "product")) return;
    for (const YamlNode::Entry& entry : node.entries) {
      std::optional<GridKey> key = Key(entry);
      if (!IsAxis(entry) || !key) continue;
      GridAxis axis = {.keys = {*std::move(key)}, .rows = {}};
      for (const YamlNode& value : entry.value.items) axis.rows.push_back({value});
      grid_.axes.push_back(std::move(axis));
    }
  }

  void ReadWhere(const YamlNode& node) {
    const std::vector<YamlNode> one = {node};
    for (const YamlNode& expression : node.kind == YamlNode::Kind::kList ? node.items : one) {
      if (Scalar<std::string>(TextType{}, expression, "where")) grid_.where.push_back(expression);
    }
  }

  void ReadSeeds(const YamlNode& node) {
    grid_.seeds_source = node.source;
    if (node.kind != YamlNode::Kind::kList) {
      const uint64_t count = Count(node, "seeds", kSeedsMax).value_or(1);
      for (uint64_t seed = 1; seed <= count; ++seed) grid_.seeds.push_back(seed);
      return;
    }
    for (const YamlNode& item : node.items) {
      if (const auto seed = Scalar<uint64_t>(CountType{}, item, "a seed")) {
        if (std::ranges::count(grid_.seeds, *seed) > 0) {
          Report(item.source, fmt::format("the seed {} is named twice", *seed));
        }
        grid_.seeds.push_back(*seed);
      }
    }
  }

  void ReadScale(const YamlNode& node) {
    grid_.scale = GridScale{.source = node.source};
    ReadKeys(node, "scale",
             {{"epochs", &GridReader::ReadScaleEpochs}, {"run", &GridReader::ReadScaleRun}});
  }
  void ReadScaleEpochs(const YamlNode& node) {
    grid_.scale->epochs = Count(node, "scale.epochs", kEpochsMax).value_or(1);
  }
  void ReadScaleRun(const YamlNode& node) {
    grid_.scale->run = Count(node, "scale.run", kEpochsMax).value_or(1);
  }

  void ReadBudget(const YamlNode& node) {
    ReadKeys(node, "budget",
             {{"cores", &GridReader::ReadCores},
              {"cores_per_cell", &GridReader::ReadCoresPerCell},
              {"memory", &GridReader::ReadMemory}});
  }
  void ReadCores(const YamlNode& node) { grid_.budget.cores = Count(node, "budget.cores", 4096); }
  void ReadCoresPerCell(const YamlNode& node) {
    grid_.budget.cores_per_cell = Count(node, "budget.cores_per_cell", 4096);
  }
  void ReadMemory(const YamlNode& node) {
    grid_.budget.memory_source = node.source;
    grid_.budget.memory = Scalar<uint64_t>(BytesType{.min = 1}, node, "budget.memory");
  }

  void ReadDivergence(const YamlNode& node) {
    const auto choice = Scalar<std::string>(ChoiceType{{"record", "fail"}}, node, "on_divergence");
    grid_.fails_on_divergence = choice == "fail";
  }

  void ReadStop(const YamlNode& node) {
    ReadKeys(node, "stop", {{"target_error", &GridReader::ReadTarget}});
  }
  void ReadTarget(const YamlNode& node) {
    grid_.target_source = node.source;
    grid_.target_error =
        Scalar<double>(NumberType{.max = 1, .is_min_excluded = true, .is_max_excluded = true}, node,
                       "stop.target_error");
  }

  void ReadReference(const YamlNode& node) {
    grid_.reference = GridReference{.source = node.source};
    if (node.kind != YamlNode::Kind::kMap) return ReadReferencePath(node);
    ReadKeys(node, "reference",
             {{"file", &GridReader::ReadReferencePath},
              {"match", &GridReader::ReadMatch},
              {"error", &GridReader::ReadErrorColumn},
              {"tolerance", &GridReader::ReadTolerance}});
    if (grid_.reference->path.empty()) Report(node.source, "reference.file is missing");
  }
  void ReadReferencePath(const YamlNode& node) {
    if (const auto path = Scalar<std::string>(TextType{}, node, "reference")) {
      grid_.reference->path = (folder_ / *path).string();
    }
  }
  void ReadMatch(const YamlNode& node) {
    if (!IsMap(node, "reference.match")) return;
    for (const YamlNode::Entry& entry : node.entries) {
      const auto name = Scalar<std::string>(TextType{}, entry.value, entry.key);
      if (!name) continue;
      std::variant<std::string, UnknownKey> key = WholeKey(*name);
      if (const auto* unknown = std::get_if<UnknownKey>(&key)) {
        Report(entry.value.source, unknown->message);
        continue;
      }
      grid_.reference->match[entry.key] = std::get<std::string>(std::move(key));
    }
  }
  void ReadErrorColumn(const YamlNode& node) {
    if (auto column = Scalar<std::string>(TextType{}, node, "reference.error")) {
      grid_.reference->error_column = *std::move(column);
    }
  }
  void ReadTolerance(const YamlNode& node) {
    grid_.reference->tolerance =
        Scalar<double>(NumberType{.is_min_excluded = true}, node, "reference.tolerance");
  }

  const fs::path folder_;
  DiagnosticList& diagnostics_;
  Grid grid_;
  bool has_base_ = false;
  std::set<std::string> taken_;  // The keys that have values.
};

}  // namespace

std::string_view EngineName(GridEngine engine) {
  return engine == GridEngine::kVirtual ? "virtual" : "processes";
}

std::string_view LastPart(std::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 is 0.
}

std::variant<std::string, UnknownKey> WholeKey(std::string_view name) {
  const bool is_of_world = name.starts_with(kWorld) && name.substr(kWorld.size()).starts_with('.');
  if (is_of_world || FindField(name) != nullptr) return std::string(name);
  std::map<std::ptrdiff_t, std::vector<std::string>> by_dots;
  std::vector<std::string> candidates;
  for (const Field& field : Fields()) {
    if (field.name() == name && !field.path.starts_with(kTesting)) {
      by_dots[std::ranges::count(field.path, '.')].push_back(field.path);
    }
    candidates.push_back(name.find('.') == std::string_view::npos ? field.name() : field.path);
  }
  const std::vector<std::string> paths =
      by_dots.empty() ? std::vector<std::string>() : by_dots.begin()->second;
  if (paths.size() == 1) return paths.front();
  if (paths.empty()) {
    return UnknownKey{fmt::format("there is no key \"{}\"{}", name, DidYouMean(name, candidates))};
  }
  return UnknownKey{
      fmt::format("\"{}\" may be {}; write the whole key", name, fmt::join(paths, " or "))};
}

std::variant<Grid, std::vector<Diagnostic>> ParseGrid(std::string_view text,
                                                      const std::string& path,
                                                      const std::vector<std::string>& overrides) {
  DiagnosticList diagnostics;
  const std::optional<YamlNode> root = ParseYaml(text, path, diagnostics);
  Grid grid;
  if (root) grid = GridReader(path, diagnostics).Read(*root, overrides);
  if (!diagnostics.empty()) return diagnostics.Sorted();
  return grid;
}

std::variant<Grid, std::vector<Diagnostic>> LoadGrid(const std::string& path,
                                                     const std::vector<std::string>& overrides) {
  DiagnosticList diagnostics;
  const absl::StatusOr<std::string> text = ReadYamlFile(path);
  if (text.ok()) return ParseGrid(*text, path, overrides);
  diagnostics.Report({.file = path}, std::string(text.status().message()));
  return diagnostics.Sorted();
}

}  // namespace slipstream

#include "deploy/psctl/lab/cells.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/config/field_table.h"
#include "common/config/run_config.h"
#include "common/config/run_text.h"
#include "common/config/suggestion.h"
#include "common/settings/same_rounds.h"
#include "deploy/lab/world_spec.h"
#include "deploy/psctl/config/run_plan.h"
#include "deploy/psctl/lab/expression.h"
#include "deploy/psctl/lab/world_text.h"

namespace slipstream {
namespace {

constexpr std::string_view kWorldPrefix = "world.";
constexpr std::string_view kSeed = "seed";

bool IsExpression(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar && node.text.starts_with('=');
}

/// Returns the text of a value for --set: a scalar as it stands.
std::string SetText(const YamlNode& node) {
  return node.kind == YamlNode::Kind::kScalar ? node.text : FlowText(node);
}

YamlNode ScalarNode(std::string text, Source source) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = std::move(text);
  node.source = std::move(source);
  return node;
}

/// Returns the place of a byte of an expression. `before` is the number of bytes of the scalar
/// before the expression.
Source PlaceIn(const YamlNode& node, size_t before, size_t offset) {
  Source source = node.source;
  source.column += static_cast<int>(before + offset) + (node.is_quoted ? 1 : 0);
  return source;
}

ExpressionValue ValueOfField(const Field& field, const RunSpec& spec) {
  const FieldValue value = field.get(spec);
  if (const auto* scalar = std::get_if<ScalarValue>(&value)) {
    if (const auto* count = std::get_if<uint64_t>(scalar)) return static_cast<double>(*count);
    if (const auto* number = std::get_if<double>(scalar)) return *number;
    if (const auto* truth = std::get_if<bool>(scalar)) return *truth;
    if (const auto* text = std::get_if<std::string>(scalar)) return *text;
  }
  return WriteField(field.type, value);
}

/// A cell before its settings are read: the values that the grid gives its keys.
class Assignment {
 public:
  Assignment(const Grid& grid, const RunSpec& base) : grid_(grid), base_(base) {}

  /// Sets the value of a key, unless that is nothing.
  void Add(const GridKey& key, const YamlNode& value) {
    if (value.kind != YamlNode::Kind::kNothing) values_.push_back({&key, value});
  }

  /// Replaces expressions by their values.
  void Resolve(DiagnosticList& diagnostics) {
    diagnostics_ = &diagnostics;
    for (Item& item : values_) Resolve(item);
  }

  /// Returns whether all conditions of the grid hold.
  bool Holds(DiagnosticList& diagnostics) {
    diagnostics_ = &diagnostics;
    return std::ranges::all_of(grid_.where, [this](const YamlNode& condition) {
      const std::optional<ExpressionValue> value = ValueOf(condition, 0);
      if (!value) return false;
      const bool* const truth = std::get_if<bool>(&*value);
      if (truth == nullptr) {
        diagnostics_->Report(condition.source, "where must be a condition, such as n <= workers");
      }
      return truth != nullptr && *truth;
    });
  }

  struct Item {
    const GridKey* key;
    YamlNode value;
    bool is_being_resolved = false;
  };
  const std::vector<Item>& items() const { return values_; }

 private:
  void Resolve(Item& item) {
    if (!IsExpression(item.value)) return;
    if (item.is_being_resolved) {
      diagnostics_->Report(item.value.source,
                           fmt::format("the value of {} depends on itself", item.key->path));
      item.value.kind = YamlNode::Kind::kRefused;
      return;
    }
    item.is_being_resolved = true;
    const std::optional<ExpressionValue> value = ValueOf(item.value, 1);
    item.is_being_resolved = false;
    if (value) {
      item.value = ScalarNode(ScalarOf(*value), item.value.source);
    } else {
      item.value.kind = YamlNode::Kind::kRefused;
    }
  }

  /// Returns the value of the expression in a scalar, behind its first `before` bytes.
  std::optional<ExpressionValue> ValueOf(const YamlNode& node, size_t before) {
    const std::string text = node.text.substr(before);  // Resolving may change the node.
    const auto value = Evaluate(text, [this](std::string_view name) { return ValueOfName(name); });
    if (const auto* error = std::get_if<ExpressionError>(&value)) {
      diagnostics_->Report(PlaceIn(node, before, error->offset), error->message);
      return std::nullopt;
    }
    return std::get<ExpressionValue>(value);
  }

  std::variant<ExpressionValue, NameError> ValueOfName(std::string_view name) {
    std::vector<Item*> found;
    for (Item& item : values_) {
      if (item.key->path == name) found = {&item};
      if (item.key->path == name) break;
      if (LastPart(item.key->path) == name) found.push_back(&item);
    }
    if (found.size() > 1) {
      return NameError{fmt::format("\"{}\" may be {} or {}; write the whole key", name,
                                   found[0]->key->path, found[1]->key->path)};
    }
    if (found.size() == 1) {
      Resolve(*found.front());
      const YamlNode& value = found.front()->value;
      if (value.kind == YamlNode::Kind::kScalar) return ValueOfScalar(value.text);
      return NameError{fmt::format("{} has no single value", name)};
    }
    if (name.starts_with(kWorldPrefix)) {
      const YamlNode* const node = FindIn(grid_.world, name.substr(kWorldPrefix.size()));
      if (node != nullptr && node->kind == YamlNode::Kind::kScalar) {
        return ValueOfScalar(node->text);
      }
      return NameError{fmt::format("there is no {}", name)};
    }
    const std::variant<std::string, UnknownKey> path = WholeKey(name);
    if (const auto* unknown = std::get_if<UnknownKey>(&path)) {
      return NameError{unknown->message};
    }
    return ValueOfField(*FindField(std::get<std::string>(path)), base_);
  }

  const Grid& grid_;
  const RunSpec& base_;
  std::vector<Item> values_;
  DiagnosticList* diagnostics_ = nullptr;
};

/// Returns the settings without what cannot change a result: the name, and an n of softsync that
/// rounds to the same number of gradients in an update as another. `keeps_workers`: none is lost,
/// after which the two n might round to different numbers.
RunSpec Canonical(RunSpec spec, bool keeps_workers) {
  spec.name = "cell";
  const uint32_t workers = spec.cluster.workers;
  const std::optional<uint32_t> n = LargerSameN(spec.consistency, workers);
  // Rounds of one gradient stay that, however few workers there are.
  const bool is_same = keeps_workers || spec.consistency.round_size(workers) == 1;
  if (n.has_value() && is_same) spec.consistency.parameters["n"] = *n;
  return spec;
}

std::string IdOf(const Cell& cell, GridEngine engine, bool keeps_workers) {
  const RunSpec canonical = Canonical(cell.settings, keeps_workers);
  const std::string text = fmt::format("{}\n{}\n{}\n{}", EngineName(engine), ToYaml(canonical),
                                       FingerprintText(canonical), cell.world);
  return fmt::format("{:016x}", XXH64(text.data(), text.size(), 0));
}

/// Makes schedules shorter by run/epochs.
void Shrink(const GridScale& scale, RunSpec& spec) {
  const double share = static_cast<double>(scale.run) / scale.epochs;
  spec.training.epochs = scale.run;
  spec.optimizer.schedule.warmup_epochs *= share;
  for (double& epoch : spec.optimizer.schedule.at_epochs) epoch *= share;
  for (PolicyStage& stage : spec.policies_before) {
    stage.until_epoch = std::max(1u, static_cast<uint32_t>(std::lround(stage.until_epoch * share)));
  }
}

class Expansion {
 public:
  explicit Expansion(const Grid& grid) : grid_(grid) {}

  std::variant<GridCells, std::vector<Diagnostic>> Run() {
    CheckAxes();
    const ConfigResult base = ReadRunConfig(grid_.base);
    if (const auto* errors = std::get_if<std::vector<Diagnostic>>(&base)) return *errors;
    base_ = std::get<RunSpec>(base);
    NameAxes();
    if (diagnostics_.empty()) VisitPlaces();
    if (!diagnostics_.empty()) return diagnostics_.Sorted();
    if (cells_.cells.empty()) {
      diagnostics_.Report(grid_.where.empty() ? Source{grid_.path} : grid_.where.front().source,
                          "no cell is left");
      return diagnostics_.Sorted();
    }
    return std::move(cells_);
  }

 private:
  void CheckAxes() {
    size_t count = std::max<size_t>(1, grid_.seeds.size());
    for (const GridAxis& axis : grid_.axes)
      count = std::min(kCellsMax + 1, count * axis.rows.size());
    if (count > kCellsMax) {
      diagnostics_.Report({grid_.path}, fmt::format("the grid has more than {} cells", kCellsMax));
    }
    for (const auto& [key, node] : grid_.settings) CheckKey(key);
    for (const GridAxis& axis : grid_.axes) {
      for (const GridKey& key : axis.keys) CheckKey(key);
    }
    if (grid_.engine == GridEngine::kProcesses && !grid_.world.entries.empty()) {
      diagnostics_.Report(grid_.world.source, kNoWorld);
    }
  }

  void CheckKey(const GridKey& key) {
    if (key.path == kSeed && !grid_.seeds.empty()) {
      diagnostics_.Report(key.source, "the seed has values by \"seeds\" already");
    }
    if (key.path.starts_with(kWorldPrefix) && grid_.engine == GridEngine::kProcesses) {
      diagnostics_.Report(key.source, kNoWorld);
    }
  }

  void NameAxes() {
    std::vector<std::string> paths;
    for (const GridAxis& axis : grid_.axes) {
      for (const GridKey& key : axis.keys) paths.push_back(key.path);
    }
    for (const std::string& path : paths) {
      const std::string last(LastPart(path));
      const auto others = std::ranges::count(paths, last, LastPart);
      cells_.axes.push_back(others == 1 ? last : path);
    }
  }

  /// Visits each combination of places on the axes; the last axis changes first.
  void VisitPlaces() {
    std::vector<size_t> places(grid_.axes.size());
    while (!diagnostics_.is_full()) {
      AddPoint(places);
      size_t axis = grid_.axes.size();
      while (axis > 0 && ++places[axis - 1] == grid_.axes[axis - 1].rows.size()) {
        places[--axis] = 0;
      }
      if (axis == 0) return;
    }
  }

  void AddPoint(const std::vector<size_t>& places) {
    const std::vector<uint64_t> own = {base_.seed};
    const bool has_seeds = !grid_.seeds.empty();
    const std::vector<uint64_t>& seeds = has_seeds ? grid_.seeds : own;
    bool has_cells = false;
    for (size_t i = 0; i < seeds.size(); ++i) {
      Assignment values(grid_, base_);
      if (has_seeds)
        values.Add(seed_key_, ScalarNode(std::to_string(seeds[i]), grid_.seeds_source));
      for (const auto& [key, node] : grid_.settings) values.Add(key, node);
      for (size_t axis = 0; axis < places.size(); ++axis) {
        const GridAxis& one = grid_.axes[axis];
        for (size_t k = 0; k < one.keys.size(); ++k)
          values.Add(one.keys[k], one.rows[places[axis]][k]);
      }
      DiagnosticList errors;
      values.Resolve(errors);
      const bool holds = errors.empty() && values.Holds(errors);
      if (!errors.empty()) return Pass(errors.Sorted());
      if (!holds) {
        ++cells_.left_out;
        continue;
      }
      std::optional<Cell> cell = MakeCell(values, places);
      if (!cell) return;
      cell->point = points_;
      cell->repetition = i;
      has_cells = Keep(*std::move(cell)) || has_cells;
    }
    if (has_cells) ++points_;
  }

  /// Adds the cell, unless another one means the same.
  bool Keep(Cell cell) {
    const auto [first, is_new] = by_id_.emplace(cell.id, cells_.cells.size());
    if (is_new) {
      cells_.cells.push_back(std::move(cell));
      return true;
    }
    ++cells_.merged;
    Cell& other = cells_.cells[first->second];
    if (cell.values != other.values) other.same.push_back(std::move(cell.values));
    return false;
  }

  std::optional<Cell> MakeCell(const Assignment& assignment, const std::vector<size_t>& places) {
    Cell cell;
    YamlNode world = grid_.world;
    Overrides overrides;
    std::map<std::string, Source> places_of;  // By the place that a report of the flag has.
    const auto set = [&](const std::string& path, const std::string& text, const Source& source) {
      overrides.set.push_back(path + "=" + text);
      places_of["--set " + overrides.set.back()] = source;
    };
    for (const Assignment::Item& item : assignment.items()) {
      const std::string& path = item.key->path;
      if (path.starts_with(kWorldPrefix)) {
        SetIn(world, std::string_view(path).substr(kWorldPrefix.size()), item.value);
      } else {
        set(path, SetText(item.value), item.value.source);
      }
    }
    if (grid_.target_error) {
      set("training.target_accuracy", fmt::format("{}", 1 - *grid_.target_error),
          grid_.target_source);
    }
    ConfigResult result = ReadRunConfig(grid_.base, overrides);
    if (std::holds_alternative<RunSpec>(result) && grid_.scale) result = Scaled(result);
    if (auto* errors = std::get_if<std::vector<Diagnostic>>(&result)) {
      for (Diagnostic& error : *errors) {
        const auto place = places_of.find(error.source.file);
        if (place != places_of.end()) error.source = place->second;
      }
      Pass(*errors);
      return std::nullopt;
    }
    cell.settings = std::get<RunSpec>(std::move(result));
    if (const absl::StatusOr<RunPlan> plan = PlanRun(cell.settings); !plan.ok()) {
      Pass({{.source = {grid_.path}, .message = std::string(plan.status().message())}});
      return std::nullopt;
    }
    cell.world = MapText(world);
    if (const auto read = ReadWorld(cell.world, grid_.path + ": world"); !read.ok()) {
      Pass({{.source = world.source, .message = std::string(read.status().message())}});
      return std::nullopt;
    }
    cell.values = ValuesOf(cell.settings, world, places);
    cell.id = IdOf(cell, grid_.engine, FindIn(world, "workers") == nullptr);
    return cell;
  }

  /// Returns the settings with shorter schedules, checked again.
  ConfigResult Scaled(const ConfigResult& whole) const {
    RunSpec spec = std::get<RunSpec>(whole);
    if (spec.training.epochs != grid_.scale->epochs) {
      return std::vector<Diagnostic>{
          {.source = grid_.scale->source,
           .message = fmt::format("scale.epochs is {} and training.epochs {}: both say for how "
                                  "many epochs the schedules are made",
                                  grid_.scale->epochs, spec.training.epochs)}};
    }
    Shrink(*grid_.scale, spec);
    ConfigResult result = ParseRunConfig(ToYaml(spec), grid_.path);
    if (auto* errors = std::get_if<std::vector<Diagnostic>>(&result)) {
      for (Diagnostic& error : *errors) error.source = grid_.scale->source;
    }
    return result;
  }

  CellValues ValuesOf(const RunSpec& spec, const YamlNode& world,
                      const std::vector<size_t>& places) const {
    CellValues values;
    for (size_t axis = 0; axis < places.size(); ++axis) {
      const GridAxis& one = grid_.axes[axis];
      for (size_t k = 0; k < one.keys.size(); ++k) {
        CellValue value = {
            .key = one.keys[k].path, .value = {}, .written = SetText(one.rows[places[axis]][k])};
        if (const Field* field = FindField(value.key)) {
          if (field->Applies(spec)) value.value = WriteField(field->type, field->get(spec));
        } else if (const YamlNode* node =
                       FindIn(world, std::string_view(value.key).substr(kWorldPrefix.size()))) {
          value.value = SetText(*node);
        }
        values.push_back(std::move(value));
      }
    }
    return values;
  }

  /// Reports errors of a cell that no other cell has had.
  void Pass(const std::vector<Diagnostic>& errors) {
    for (const Diagnostic& error : errors) {
      if (seen_.insert(error.ToString()).second) diagnostics_.Report(error.source, error.message);
    }
  }

  static constexpr char kNoWorld[] = "only engine: virtual has a world";

  const Grid& grid_;
  const GridKey seed_key_ = {.path = std::string(kSeed), .source = {}};
  RunSpec base_;
  DiagnosticList diagnostics_;
  std::set<std::string> seen_;
  std::map<std::string, size_t> by_id_;
  size_t points_ = 0;
  GridCells cells_;
};

}  // namespace

std::variant<GridCells, std::vector<Diagnostic>> ExpandGrid(const Grid& grid) {
  return Expansion(grid).Run();
}

std::string CountText(size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string CellLabel(const std::vector<std::string>& axes, const CellValues& values) {
  std::string label;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (values[i].value.empty()) continue;
    label += fmt::format("{}{}={}", label.empty() ? "" : ", ", axes[i], values[i].value);
  }
  return label.empty() ? "the only cell" : label;
}

}  // namespace slipstream

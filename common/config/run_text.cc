#include "common/config/run_text.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/config/field_table.h"
#include "common/config/layer_table.h"
#include "common/model/presets.h"

namespace slipstream {
namespace {

constexpr size_t kColumns = 100;

std::vector<std::string> Split(std::string_view path) {
  std::vector<std::string> parts;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    parts.emplace_back(path.substr(0, dot));
    path.remove_prefix(dot + 1);
  }
  parts.emplace_back(path);
  return parts;
}

/// Writes keys as nested sections. Keys of a section must come one after another. The head of a
/// section without a counting key is a comment, like its keys.
class SectionWriter {
 public:
  /// `counting` names the keys that are no comments; if it is empty, all are.
  explicit SectionWriter(std::vector<std::string> counting = {}) : counting_(std::move(counting)) {}

  /// Opens the sections of `path` that are not open yet, and returns the key's indentation.
  std::string Enter(const std::string& path, std::string_view line_before_section) {
    std::vector<std::string> sections = Split(path);
    sections.pop_back();
    size_t common = 0;
    while (common < std::min(sections.size(), open_.size()) && sections[common] == open_[common]) {
      ++common;
    }
    for (size_t i = common; i < sections.size(); ++i) {
      if (i == 0) text_ += line_before_section;
      const std::string section = fmt::format(
          "{}.",
          fmt::join(sections.begin(), sections.begin() + static_cast<ptrdiff_t>(i) + 1, "."));
      const bool counts =
          counting_.empty() || std::ranges::any_of(counting_, [&](const std::string& key) {
            return key.starts_with(section);
          });
      text_ += fmt::format("{}{}{}:\n", std::string(2 * i, ' '), counts ? "" : "# ", sections[i]);
    }
    open_ = sections;
    return std::string(2 * open_.size(), ' ');
  }

  void Line(std::string_view indent, std::string_view line) {
    text_ += fmt::format("{}{}\n", indent, line);
  }

  const std::string& text() const { return text_; }

 private:
  const std::vector<std::string> counting_;
  std::vector<std::string> open_;
  std::string text_;
};

/// Returns whether `field` is written. Of a net either the name or the layers are, as only one may
/// be read.
bool IsWritten(const Field& field, const RunSpec& spec) {
  const bool has_preset = !spec.model.preset.empty();
  if (!field.Applies(spec)) return false;
  if (field.path == "model.preset") return has_preset;
  if (field.path == "model.input" || field.path == "model.layers") return !has_preset;
  return true;
}

std::string ValueOf(const Field& field, const RunSpec& spec) {
  return WriteField(field.type, field.get(spec));
}

/// Breaks `text` into lines that fit the page with `prefix` before each.
std::vector<std::string> Wrap(std::string_view prefix, std::string_view text) {
  const size_t length_max = kColumns - prefix.size();
  std::vector<std::string> lines;
  while (text.size() > length_max) {
    size_t end = text.rfind(' ', length_max);
    if (end == std::string_view::npos) end = length_max;
    lines.push_back(fmt::format("{}{}", prefix, text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  lines.push_back(fmt::format("{}{}", prefix, text));
  return lines;
}

/// Returns whether the template has the key, and not only as a comment.
bool CountsInTemplate(const Field& field, const RunSpec& defaults) {
  return IsWritten(field, defaults) && !field.has_dependent_default;
}

void WriteTemplateField(const Field& field, const RunSpec& defaults, SectionWriter& writer) {
  const std::string indent = writer.Enter(field.path, "\n");
  std::string doc = field.doc;
  if (field.condition) {
    doc += fmt::format(" Only with {} {}.", field.condition->path,
                       fmt::join(field.condition->choices, " or "));
  }
  const std::string bounds = DescribeField(field.type);
  doc += fmt::format(" Must be {}.", bounds);
  for (const std::string& line : Wrap(indent + "# ", doc)) writer.Line("", line);
  if (CountsInTemplate(field, defaults)) {
    writer.Line(indent, fmt::format("{}: {}", field.name(), ValueOf(field, defaults)));
  } else {
    const std::string value = field.example.empty() ? ValueOf(field, defaults) : field.example;
    writer.Line(indent, fmt::format("# {}: {}", field.name(), value));
  }
}

}  // namespace

std::string ToYaml(const RunSpec& spec) {
  SectionWriter writer;
  for (const Field& field : Fields()) {
    if (!IsWritten(field, spec)) continue;
    const std::string indent = writer.Enter(field.path, "");
    if (!std::holds_alternative<LayersType>(field.type)) {
      writer.Line(indent, fmt::format("{}: {}", field.name(), ValueOf(field, spec)));
      continue;
    }
    writer.Line(indent, field.name() + ":");
    for (const LayerSpec& layer : spec.model.layers) {
      writer.Line(indent + "  - ", WriteLayer(layer));
    }
  }
  return writer.text();
}

std::string FingerprintText(const RunSpec& spec) {
  std::string text;
  for (const Field& field : Fields()) {
    if (field.locality != Field::Locality::kRun || !field.Applies(spec)) continue;
    text += fmt::format("{}: {}\n", field.path, ValueOf(field, spec));
  }
  return text;
}

uint64_t Fingerprint(const RunSpec& spec) {
  const std::string text = FingerprintText(spec);
  return XXH64(text.data(), text.size(), 0);
}

std::optional<std::string> FirstDifference(const RunSpec& a, const RunSpec& b) {
  // A key that decides whether another one applies comes before that one, so it is found first.
  for (const Field& field : Fields()) {
    if (field.locality != Field::Locality::kRun || !field.Applies(a) || !field.Applies(b)) continue;
    const std::string value_a = ValueOf(field, a);
    const std::string value_b = ValueOf(field, b);
    if (value_a != value_b) return fmt::format("{} is {} against {}", field.path, value_a, value_b);
  }
  return std::nullopt;
}

std::string ConfigTemplate() {
  RunSpec defaults;
  defaults.model = *FindPreset("lenet5");
  std::vector<std::string> counting;
  for (const Field& field : Fields()) {
    if (CountsInTemplate(field, defaults)) counting.push_back(field.path);
  }
  SectionWriter writer(std::move(counting));
  writer.Line(
      "", "# One run of Slipstream, for all servers and workers. The section `model` is required,");
  writer.Line(
      "",
      "# with a preset or with input and layers; other keys left out keep the values they have");
  writer.Line("", "# here. `psctl validate` checks a file.");
  writer.Line("", "");
  for (const Field& field : Fields()) WriteTemplateField(field, defaults, writer);
  return writer.text();
}

}  // namespace slipstream

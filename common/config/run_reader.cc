#include "common/config/run_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/check.h"
#include "common/base/utf8.h"
#include "common/config/field_table.h"
#include "common/config/suggestion.h"
#include "common/config/yaml_number.h"

namespace slipstream {
namespace {

constexpr std::string_view kEnvironmentPrefix = "PS_";

// Variables that psctl and ps_worker look for themselves, and one of procps' ps(1). All programs
// may be given one environment.
constexpr std::string_view kOfPrograms[] = {
    "PS_SERVER_BINARY", "PS_WORKER_BINARY", "PS_EVALUATE_BINARY", "PS_LAB_BINARY",
    "PS_COORDINATOR",   "PS_WORKER",        "PS_FORMAT",          "PS_PERSONALITY"};

// Keys that have no meaning any more. They are accepted, because saved models hold files that have
// them.
constexpr std::string_view kRetired[] = {"compute.threads"};

// The section that may be a list of such sections.
constexpr std::string_view kPolicies = "consistency";

std::string Join(std::string_view section, const std::string& key) {
  return section.empty() ? key : fmt::format("{}.{}", section, key);
}

/// Suggests a key for an unknown one: a near name in the section, or the same name elsewhere.
std::string SuggestKey(std::string_view section, const std::string& key) {
  const std::string near = DidYouMean(key, KeysOf(section));
  if (!near.empty()) return near;
  for (const Field& field : Fields()) {
    if (field.name() != key && field.path != key) continue;
    const size_t dot = field.path.rfind('.');
    if (dot == std::string::npos) {
      return fmt::format("; did you mean \"{}\" at the top level?", field.path);
    }
    return fmt::format("; did you mean \"{}\" in section {}?", field.name(),
                       field.path.substr(0, dot));
  }
  return "";
}

bool HasValue(const YamlNode::Entry& entry) { return entry.value.kind != YamlNode::Kind::kNothing; }

/// Returns a value that commas have cut into keys without values, of which `map.entries[place]` is
/// one; empty if no text stands before them.
std::string ValueCutAtCommas(const YamlNode& map, size_t place) {
  while (place > 0 && !HasValue(map.entries[place])) --place;
  if (map.entries[place].value.kind != YamlNode::Kind::kScalar) return "";
  std::string value = map.entries[place].value.text;
  while (++place < map.entries.size() && !HasValue(map.entries[place])) {
    value += "," + map.entries[place].key;
  }
  return value;
}

/// Returns the text with a point in the place of its comma.
std::string WithPoint(std::string text, size_t comma) { return text.replace(comma, 1, "."); }

/// Says what was probably meant by `map.entries[place]`, whose key is unknown.
std::string HintAt(std::string_view section, const YamlNode& map, size_t place) {
  const YamlNode::Entry& entry = map.entries[place];
  const bool has_blank = entry.key.find(' ') != std::string::npos;
  if (has_blank && !HasValue(entry)) return "; is a colon missing?";
  const std::string near = SuggestKey(section, entry.key);
  if (!near.empty() || HasValue(entry) || !map.is_flow) return near;
  const std::string value = ValueCutAtCommas(map, place);
  if (value.empty()) return "";
  if (const size_t comma = value.find(','); ReadYamlNumber(WithPoint(value, comma))) {
    return fmt::format("; between braces a comma ends a value: write {}", WithPoint(value, comma));
  }
  return fmt::format("; between braces a comma ends a value: quote it, \"{}\"", value);
}

/// Suggests a dotted path for an unknown one.
std::string SuggestPath(const std::string& path) {
  std::vector<std::string> paths;
  std::vector<std::string> names;
  for (const Field& field : Fields()) {
    paths.push_back(field.path);
    names.push_back(field.name());
  }
  const std::optional<std::string> name = Nearest(path, names);
  if (name && path.find('.') == std::string::npos) {
    return fmt::format("; did you mean \"{}\"?",
                       paths[std::ranges::find(names, *name) - names.begin()]);
  }
  return DidYouMean(path, paths);
}

void Take(const Field& field, Origin origin, const Source& key, const YamlNode& node,
          RunDraft& draft, DiagnosticList& diagnostics) {
  Given given = {.origin = origin, .key = key, .value = node.source, .items = {}};
  for (const YamlNode& item : node.items) given.items.push_back(item.source);
  const auto before = draft.given.find(field.path);
  const bool is_again = before != draft.given.end() && before->second.origin == origin;
  given.weaker = is_again ? before->second.weaker : field.get(draft.spec);
  if (const auto value = ReadField(field.path, field.type, node, diagnostics)) {
    field.set(draft.spec, *value);
    given.is_valid = true;
    given.changes = *value != given.weaker;
  }
  draft.given[field.path] = std::move(given);
}

void ReadSubsection(const std::string& path, const YamlNode::Entry& entry, RunDraft& draft,
                    DiagnosticList& diagnostics);

void ReadSection(std::string_view section, const YamlNode& map, RunDraft& draft,
                 DiagnosticList& diagnostics) {
  for (size_t place = 0; place < map.entries.size(); ++place) {
    const YamlNode::Entry& entry = map.entries[place];
    const std::string path = Join(section, entry.key);
    // A dot in a key would make two spellings of one path.
    const bool is_dotted = entry.key.find('.') != std::string::npos;
    const Field* field = is_dotted ? nullptr : FindField(path);
    if (field != nullptr) {
      const bool is_empty = entry.value.kind == YamlNode::Kind::kNothing;
      YamlNode value = entry.value;
      if (is_empty) value.source = entry.key_source;  // There is nothing else to point at.
      Take(*field, Origin::kFile, entry.key_source, value, draft, diagnostics);
    } else if (!is_dotted && std::ranges::count(kRetired, std::string_view(path)) > 0) {
      continue;
    } else if (is_dotted || !IsSection(path)) {
      // A hint searches all keys, and a peer may send any number of unknown ones.
      const std::string hint = diagnostics.is_full() ? "" : HintAt(section, map, place);
      diagnostics.Report(entry.key_source, fmt::format("unknown key \"{}\"{}", entry.key, hint));
    } else {
      draft.sections[path] = entry.key_source;
      ReadSubsection(path, entry, draft, diagnostics);
    }
  }
}

/// Reads a list of policies: the last item is the section of policies, and those before it are the
/// section's key "before".
void ReadPolicies(const YamlNode::Entry& entry, RunDraft& draft, DiagnosticList& diagnostics) {
  const std::string path(kPolicies);
  YamlNode before = entry.value;
  if (before.items.empty() || before.items.back().kind != YamlNode::Kind::kMap) {
    draft.unreadable_sections.insert(path);
    diagnostics.Report(entry.key_source,
                       "a list of policies must end with a map, as [{policy: hardsync, "
                       "until_epoch: 2}, {policy: async}]");
    return;
  }
  const YamlNode last = std::move(before.items.back());
  before.items.pop_back();
  const auto end = std::ranges::find(last.entries, "until_epoch", &YamlNode::Entry::key);
  if (end != last.entries.end()) {
    draft.unreadable_sections.insert(path);
    diagnostics.Report(end->key_source,
                       "the last policy has no until_epoch: it goes on until training ends");
    return;
  }
  const Field* field = FindField(path + ".before");
  PS_CHECK(field != nullptr);
  Take(*field, Origin::kFile, entry.key_source, before, draft, diagnostics);
  const auto again = std::ranges::find(last.entries, "before", &YamlNode::Entry::key);
  if (again != last.entries.end()) {
    diagnostics.Report(again->key_source, "the items before this one are its \"before\"");
    return;
  }
  ReadSection(path, last, draft, diagnostics);
}

void ReadSubsection(const std::string& path, const YamlNode::Entry& entry, RunDraft& draft,
                    DiagnosticList& diagnostics) {
  if (entry.value.kind == YamlNode::Kind::kMap) {
    ReadSection(path, entry.value, draft, diagnostics);
    return;
  }
  if (entry.value.kind == YamlNode::Kind::kList && path == kPolicies) {
    ReadPolicies(entry, draft, diagnostics);
    return;
  }
  draft.unreadable_sections.insert(path);
  if (entry.value.kind == YamlNode::Kind::kRefused) return;
  diagnostics.Report(entry.key_source,
                     fmt::format("{} is a section; it must be a map with keys of {}, not {}", path,
                                 fmt::join(KeysOf(path), ", "), DescribeNode(entry.value)));
}

void Relabel(YamlNode& node, const Source& source) {
  node.source = source;
  for (YamlNode& item : node.items) Relabel(item, source);
  for (YamlNode::Entry& entry : node.entries) {
    entry.key_source = source;
    Relabel(entry.value, source);
  }
}

/// Returns the value of an override as a tree. A scalar is the text as it stands, so that nothing
/// has to be quoted twice; a list may omit its brackets.
std::optional<YamlNode> ParseOverride(const Field& field, const std::string& text,
                                      const Source& source, DiagnosticList& diagnostics) {
  YamlNode node;
  if (std::holds_alternative<ScalarType>(field.type)) {
    node.kind = YamlNode::Kind::kScalar;
    node.source = source;
    node.text = text;
    return node;
  }
  DiagnosticList list_diagnostics;
  std::optional<YamlNode> list =
      ParseYaml(text.starts_with('[') ? text : "[" + text + "]", source.file, list_diagnostics);
  // Positions count within the value, where nobody looks for lines, so report the override's place.
  for (Diagnostic& diagnostic : list_diagnostics.Sorted()) {
    diagnostics.Report(source, std::move(diagnostic.message));
  }
  if (list) Relabel(*list, source);
  return list;
}

void TakeOverride(const Field& field, Origin origin, const std::string& text, const Source& source,
                  RunDraft& draft, DiagnosticList& diagnostics) {
  if (const std::optional<size_t> wrong = FirstNotUtf8(text)) {
    const auto byte = static_cast<unsigned char>(text[*wrong]);
    diagnostics.Report(source, fmt::format("not UTF-8 (byte 0x{:02X})", byte));
  } else if (const auto node = ParseOverride(field, text, source, diagnostics)) {
    return Take(field, origin, source, *node, draft, diagnostics);
  }
  draft.given[field.path] = {.origin = origin, .key = source, .value = source, .items = {}};
}

Source Label(std::string label) { return {.file = std::move(label)}; }

/// Returns the Service for which Kubernetes sets a variable of this name in every container of the
/// namespace; empty if the name is not of that form.
std::string ServiceOf(std::string_view variable) {
  size_t end = variable.find("_SERVICE_");
  if (end == std::string_view::npos) {
    constexpr std::string_view kPort = "_PORT";
    end = variable.find(kPort);
    if (end == std::string_view::npos) return "";
    const std::string_view rest = variable.substr(end + kPort.size());
    if (!rest.empty() && rest.front() != '_') return "";
  }
  std::string service(variable.substr(0, end));
  for (char& c : service) {
    if (c == '_') c = '-';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return service;
}

std::string HintForVariable(const std::string& variable) {
  const std::string service = ServiceOf(variable);
  if (!service.empty()) {
    return fmt::format(
        " (Kubernetes sets it for a Service named {}: name the service otherwise, or set "
        "enableServiceLinks: false)",
        service);
  }
  std::vector<std::string> names;
  for (const Field& field : Fields()) names.push_back(field.EnvironmentName());
  names.insert(names.end(), std::begin(kOfPrograms), std::end(kOfPrograms));
  const std::string near = DidYouMean(variable, names);
  if (!near.empty()) return near;
  // For example PS_DEVICE for PS_COMPUTE_DEVICE.
  const std::string end = variable.substr(kEnvironmentPrefix.size() - 1);
  const auto whole =
      std::ranges::find_if(names, [&end](const std::string& name) { return name.ends_with(end); });
  return whole == names.end() ? "" : fmt::format("; did you mean \"{}\"?", *whole);
}

Source LabelOfVariable(const std::string& name) { return Label("environment " + name); }

}  // namespace

void ReadFileTree(const YamlNode& root, RunDraft& draft, DiagnosticList& diagnostics) {
  if (root.kind == YamlNode::Kind::kRefused) return;
  if (root.kind != YamlNode::Kind::kMap) {
    diagnostics.Report(root.source,
                       fmt::format("the file must be a map of keys, not {}", DescribeNode(root)));
    return;
  }
  ReadSection("", root, draft, diagnostics);
}

void CheckVariableNames(const std::map<std::string, std::string>& environment,
                        DiagnosticList& diagnostics) {
  for (const auto& [name, text] : environment) {
    const bool is_ours = name.starts_with(kEnvironmentPrefix);
    if (!is_ours || std::ranges::count(kOfPrograms, std::string_view(name)) > 0) continue;
    if (std::ranges::count(Fields(), name, &Field::EnvironmentName) > 0) continue;
    diagnostics.Report(LabelOfVariable(name), "no key has this name" + HintForVariable(name));
  }
}

void ReadEnvironment(const std::map<std::string, std::string>& environment, RunDraft& draft,
                     DiagnosticList& diagnostics) {
  CheckVariableNames(environment, diagnostics);
  for (const auto& [name, text] : environment) {
    const auto found = std::ranges::find(Fields(), name, &Field::EnvironmentName);
    if (found == Fields().end()) continue;
    TakeOverride(*found, Origin::kEnvironment, text, LabelOfVariable(name), draft, diagnostics);
  }
}

void ReadFlags(const std::vector<std::string>& flags, RunDraft& draft,
               DiagnosticList& diagnostics) {
  for (const std::string& flag : flags) {
    const Source source = Label("--set " + flag);
    const size_t equals = flag.find('=');
    if (equals == std::string::npos || equals == 0) {
      diagnostics.Report(source,
                         fmt::format("must be key=value, as in training.epochs=3, and has no "
                                     "{}",
                                     equals == 0 ? "key" : "="));
      continue;
    }
    const std::string path = flag.substr(0, equals);
    const Field* field = FindField(path);
    if (field != nullptr) {
      TakeOverride(*field, Origin::kFlag, flag.substr(equals + 1), source, draft, diagnostics);
    } else if (IsSection(path)) {
      diagnostics.Report(source, fmt::format("{} is a section; set one of its keys: {}", path,
                                             fmt::join(KeysOf(path), ", ")));
    } else {
      diagnostics.Report(source, fmt::format("unknown key \"{}\"{}", path, SuggestPath(path)));
    }
  }
}

}  // namespace slipstream

#include "common/config/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "common/base/utf8.h"

namespace slipstream {
namespace {

using std::string_view_literals::operator""sv;

constexpr size_t kDepthMax = 32;

YamlNode NodeOf(YamlNode::Kind kind, Source source) {
  YamlNode node;
  node.kind = kind;
  node.source = std::move(source);
  return node;
}

/// Returns whether the text begins with the mark of UTF-16 or UTF-32, which yaml-cpp reads, too.
bool HasWideMark(std::string_view text) {
  return text.starts_with("\xFE\xFF"sv) || text.starts_with("\xFF\xFE"sv) ||
         text.starts_with("\0\0\xFE\xFF"sv);
}

/// Reports text that is not UTF-8. yaml-cpp takes any bytes, but messages between processes must be
/// UTF-8.
bool ReportNotUtf8(std::string_view text, const std::string& file, DiagnosticList& diagnostics) {
  if (HasWideMark(text)) return false;
  const std::optional<size_t> wrong = FirstNotUtf8(text);
  if (!wrong) return false;
  const std::string_view before = text.substr(0, *wrong);
  const size_t line_start = before.rfind('\n') + 1;  // 0 if there is no line before.
  const auto line = static_cast<int>(std::ranges::count(before, '\n')) + 1;
  const auto column = static_cast<int>(*wrong - line_start) + 1;
  diagnostics.Report({file, line, column},
                     fmt::format("not UTF-8 (byte 0x{:02X}): save the file as UTF-8",
                                 static_cast<unsigned char>(text[*wrong])));
  return true;
}

/// Returns plainer words for an error message of the library, or the message itself.
std::string_view PlainWords(std::string_view message) {
  const std::pair<std::string_view, std::string_view> plain[] = {
      {YAML::ErrorMsg::END_OF_MAP, "a line that is no \"key: value\""},
      {YAML::ErrorMsg::END_OF_MAP_FLOW, "a { that no } closes"},
      {YAML::ErrorMsg::END_OF_SEQ, "a line that is no \"- item\""},
      {YAML::ErrorMsg::END_OF_SEQ_FLOW, "a [ that no ] closes"},
      {YAML::ErrorMsg::UNKNOWN_ANCHOR,
       "an alias without an anchor; text that begins with * needs quotes"},
  };
  const auto* const found =
      std::ranges::find(plain, message, [](const auto& row) { return row.first; });
  return found == std::end(plain) ? message : found->second;
}

std::string_view Trimmed(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return "";
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

/// Returns whether a line ought to have a colon and has none.
bool LacksColon(std::string_view line) {
  constexpr std::string_view kNoKeyBegins = "-{}[],\"'";
  return !line.empty() && kNoKeyBegins.find(line.front()) == std::string_view::npos &&
         line.find(": ") == std::string_view::npos && !line.ends_with(':');
}

/// Returns a hint at the line without a colon that may have caused an error in `line`: the line
/// itself, or the last one before it that is not empty.
std::string ColonHint(std::string_view text, int line) {
  std::pair<int, std::string_view> last;  // The line's number and contents.
  for (int i = 1; i <= line && !text.empty(); ++i) {
    const size_t end = text.find('\n');
    const std::string_view contents = Trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const bool is_candidate = i < line ? !contents.empty() : LacksColon(contents);
    if (is_candidate) last = {i, contents};
  }
  if (!LacksColon(last.second)) return "";
  return fmt::format("; line {}, \"{}\", has no colon behind its key", last.first,
                     CutUtf8(last.second, 40));
}

/// Points at a tab in a line's indentation: it is easily taken for the spaces that YAML wants.
std::string TabHint(std::string_view text, int line) {
  for (int i = 1; i < line && !text.empty(); ++i) {
    const size_t end = text.find('\n');
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  const size_t indent = text.find_first_not_of(" \t");
  const bool has_tab = text.substr(0, indent).find('\t') != std::string_view::npos;
  return has_tab ? "; the line is indented with a tab, write spaces" : "";
}

/// Builds the tree from the parser's events. yaml-cpp's own node tree would have lost duplicate
/// keys, quotes and the places of anchors, and it follows aliases in circles.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, std::string file, DiagnosticList& diagnostics)
      : text_(text), file_(std::move(file)), diagnostics_(diagnostics) {}

  YamlNode TakeRoot() { return std::move(root_); }
  bool has_root() const { return has_root_; }
  Source SourceOf(const YAML::Mark& mark) const {
    return {file_, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
  }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    Add(NodeOf(YamlNode::Kind::kNothing, SourceOf(mark)));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    diagnostics_.Report(SourceOf(mark), "aliases are not allowed; write the value out");
    Add(NodeOf(YamlNode::Kind::kRefused, SourceOf(mark)));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    YamlNode node = NodeOf(YamlNode::Kind::kScalar, SourceOf(mark));
    node.text = value;
    node.is_quoted = tag == "!";  // The parser's tag for untagged scalars that are not plain.
    if (IsTagged(mark, tag, /*untagged_quoted=*/true)) node.kind = RefuseTag(mark);
    Add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(YamlNode::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Open(YamlNode::Kind::kMap, mark, tag, anchor);
    stack_.back().node.is_flow = style == YAML::EmitterStyle::Flow;
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    YamlNode node;
    bool is_refused = false;
    std::optional<YamlNode> key;          // In a map: a key that was read before its value.
    std::map<std::string, Source> first;  // The place of each key.
  };

  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    diagnostics_.Report(SourceOf(mark),
                        "anchors are not allowed; write the value where it is used");
  }

  YamlNode::Kind RefuseTag(const YAML::Mark& mark) {
    diagnostics_.Report(SourceOf(mark), "tags are not allowed; a key's type is fixed");
    return YamlNode::Kind::kRefused;
  }

  bool IsTagged(const YAML::Mark& mark, const std::string& tag, bool untagged_quoted) const {
    if (tag.empty() || tag == "?") return false;
    if (!untagged_quoted || tag != "!") return true;
    // A lone `!` gives the same event as quotes; only the text tells them apart.
    const auto position = static_cast<size_t>(std::max(mark.pos, 0));
    return position < text_.size() && text_[position] == '!';
  }

  void Open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    RefuseAnchor(mark, anchor);
    Frame frame;
    frame.node = NodeOf(kind, SourceOf(mark));
    if (IsTagged(mark, tag, /*untagged_quoted=*/false)) {
      frame.is_refused = RefuseTag(mark) == YamlNode::Kind::kRefused;
    }
    if (stack_.size() == kDepthMax) {
      throw YAML::ParserException(mark, fmt::format("more than {} levels", kDepthMax));
    }
    stack_.push_back(std::move(frame));
  }

  void Close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    if (frame.is_refused) frame.node.kind = YamlNode::Kind::kRefused;
    Add(std::move(frame.node));
  }

  void Add(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      has_root_ = true;
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node.kind == YamlNode::Kind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.key) {
      frame.key = std::move(node);
    } else {
      YamlNode key = std::move(*frame.key);
      frame.key.reset();
      AddEntry(frame, std::move(key), std::move(node));
    }
  }

  void AddEntry(Frame& frame, YamlNode key, YamlNode value) {
    if (key.kind == YamlNode::Kind::kRefused) return;
    if (key.kind != YamlNode::Kind::kScalar) {
      diagnostics_.Report(key.source, "a key must be text");
      return;
    }
    if (key.text == "<<" && !key.is_quoted) {
      diagnostics_.Report(key.source, "merge keys are not allowed; write the keys out");
      return;
    }
    const auto [first, is_new] = frame.first.emplace(key.text, key.source);
    if (!is_new) {
      diagnostics_.Report(key.source, fmt::format("duplicate key \"{}\"; the first is on line {}",
                                                  key.text, first->second.line));
      return;
    }
    frame.node.entries.push_back({std::move(key.text), std::move(key.source), std::move(value)});
  }

  const std::string_view text_;
  const std::string file_;
  DiagnosticList& diagnostics_;
  std::vector<Frame> stack_;
  YamlNode root_;
  bool has_root_ = false;
};

}  // namespace

std::optional<YamlNode> ParseYaml(std::string_view text, const std::string& file,
                                  DiagnosticList& diagnostics) {
  const Source start = {file, 1, 1};
  if (text.size() > kYamlBytesMax) {
    diagnostics.Report(start, fmt::format("the text is longer than {} bytes", kYamlBytesMax));
    return std::nullopt;
  }
  if (ReportNotUtf8(text, file, diagnostics)) return std::nullopt;
  TreeBuilder builder(text, file, diagnostics);
  // yaml-cpp throws on broken syntax, and the builder throws through it on deep nesting.
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    TreeBuilder rest("", file, diagnostics);
    if (builder.has_root() && parser.HandleNextDocument(rest)) {
      diagnostics.Report(rest.TakeRoot().source, "a second document is not allowed");
    }
  } catch (const YAML::Exception& error) {
    const Source source = builder.SourceOf(error.mark);
    diagnostics.Report(source,
                       fmt::format("not valid YAML: {}{}{}", PlainWords(error.msg),
                                   ColonHint(text, source.line), TabHint(text, source.line)));
    return std::nullopt;
  }
  YamlNode root = builder.TakeRoot();
  if (root.kind == YamlNode::Kind::kNothing) root = NodeOf(YamlNode::Kind::kMap, start);
  return root;
}

absl::StatusOr<std::string> ReadYamlFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kYamlBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  // Opening a directory succeeds, and only reading it fails.
  if (file.is_open() && !file.bad()) return text;
  const std::string reason = errno != 0 ? std::strerror(errno) : "it cannot be read";
  return absl::NotFoundError("cannot open the file: " + reason);
}

}  // namespace slipstream

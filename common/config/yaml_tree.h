#ifndef SLIPSTREAM_COMMON_CONFIG_YAML_TREE_H_
#define SLIPSTREAM_COMMON_CONFIG_YAML_TREE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/config/diagnostic.h"

namespace slipstream {

/// A value of a YAML document with its position. Scalars stay text: the field that a text belongs
/// to decides what it means, so that `0777`, `yes` or `.nan` are never guessed at.
struct YamlNode {
  enum class Kind {
    kNothing,  // `key:` without a value, `~` or `null`.
    kScalar,
    kMap,
    kList,
    kRefused,  // Reported already, so the value of its place is unknown.
  };
  struct Entry;

  Kind kind = Kind::kNothing;
  Source source;
  std::string text;        // The text of a scalar.
  bool is_quoted = false;  // For a scalar: in quotes or a block, therefore text and nothing else.
  bool is_flow = false;    // For a map: between braces.
  std::vector<Entry> entries;
  std::vector<YamlNode> items;
};

struct YamlNode::Entry {
  std::string key;
  Source key_source;
  YamlNode value;
};

inline constexpr size_t kYamlBytesMax = size_t{1} << 20;

/// Returns the text of the file at `path`, up to one byte more than ParseYaml takes, so that a
/// longer or endless file is refused there. NOT_FOUND, with the reason, if it cannot be read.
absl::StatusOr<std::string> ReadYamlFile(const std::string& path);

/// Reads one document of the strict subset that configuration files use: maps with unique text
/// keys, lists and scalars. Duplicate keys, anchors, aliases, merge keys, tags, other documents and
/// keys that are not text are reported; what can be read around them is still returned, so that the
/// rest is checked, too. Nothing is returned, with a report, if the text is longer than
/// kYamlBytesMax, is neither UTF-8 nor marked as UTF-16 or UTF-32, or has broken syntax. An empty
/// document is an empty map.
std::optional<YamlNode> ParseYaml(std::string_view text, const std::string& file,
                                  DiagnosticList& diagnostics);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_YAML_TREE_H_

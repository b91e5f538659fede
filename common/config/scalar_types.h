#ifndef SLIPSTREAM_COMMON_CONFIG_SCALAR_TYPES_H_
#define SLIPSTREAM_COMMON_CONFIG_SCALAR_TYPES_H_

#include <cstdint>
#include <limits>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "common/config/yaml_tree.h"

namespace slipstream {

/// The types that one scalar of a configuration may have. A type reads a scalar's text, prints a
/// value so that it reads back as the same, and describes its bounds in words.

/// A whole number in [min, max], in decimal digits.
struct CountType {
  uint64_t min = 0;
  uint64_t max = std::numeric_limits<uint64_t>::max();
};

/// A count of bytes, plain or in KiB, MiB or GiB.
struct BytesType {
  uint64_t min = 0;
  uint64_t max = std::numeric_limits<uint64_t>::max();
  uint64_t multiple_of = 1;

  /// Set if 0 is allowed as well, whatever the bounds.
  bool takes_zero = false;
};

/// A finite number between the bounds.
struct NumberType {
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
  bool is_min_excluded = false;
  bool is_max_excluded = false;
};

/// A number with a unit, which is ms, s, m or h; whole milliseconds in [min, max].
struct DurationType {
  absl::Duration min;
  absl::Duration max;
};

/// `true` or `false`.
struct FlagType {};

/// Text without control characters.
struct TextType {
  enum class Form {
    kAny,     // Up to kBytesMax bytes, possibly none: a path or an address.
    kName,    // 1 to 64 letters, digits, '.', '_' and '-'.
    kDevice,  // A device that DeviceChoice can read.
  };
  static constexpr size_t kBytesMax = 4096;
  Form form = Form::kAny;
};

/// One of the names.
struct ChoiceType {
  std::vector<std::string> names;
};

using ScalarType =
    std::variant<CountType, BytesType, NumberType, DurationType, FlagType, TextType, ChoiceType>;
using ScalarValue = std::variant<uint64_t, double, absl::Duration, bool, std::string>;

/// An error in a value, in words that go after the name of its key: `must be …`.
struct ValueError {
  std::string message;
};

/// Reads a scalar; a list, a map or nothing is an error. REQUIRES: the node was not refused.
std::variant<ScalarValue, ValueError> ReadScalar(const ScalarType& type, const YamlNode& node);

/// Returns what is wrong with `text` as it stands, for example that of a flag; empty if nothing is.
std::string ScalarError(const ScalarType& type, const std::string& text);

/// Returns the text that reads back as `value`, also within a list in brackets.
std::string WriteScalar(const ScalarType& type, const ScalarValue& value);

/// Describes the values that there are: `a whole number in [1, 65536]`.
std::string DescribeScalar(const ScalarType& type);

/// Returns `text` as a YAML scalar, in quotes unless it needs none.
std::string WriteText(const std::string& text);

/// Describes a node's value in a few words for an error: `a list`, `the text "5" in quotes`, `5s`.
std::string DescribeNode(const YamlNode& node);

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_CONFIG_SCALAR_TYPES_H_

#ifndef SLIPSTREAM_COMMON_SETTINGS_KNOWN_EXAMPLES_H_
#define SLIPSTREAM_COMMON_SETTINGS_KNOWN_EXAMPLES_H_

#include <cstdint>
#include <optional>

#include "common/model/net_shapes.h"
#include "common/settings/run_spec.h"

namespace slipstream {

/// The properties of every data set in a format, by which a model can be checked before a file is
/// there.
struct KnownExamples {
  /// Absent if examples are made in the shape that the model takes.
  std::optional<ExampleShape> shape;
  uint32_t classes = 0;
};

/// The least height and width of generated images.
inline constexpr uint32_t kGeneratedSideMin = 16;

/// Returns nothing for formats whose properties only the files tell.
constexpr std::optional<KnownExamples> FindKnownExamples(DataSpec::Format format) {
  switch (format) {
    case DataSpec::Format::kSynthetic:
      return KnownExamples{.shape = std::nullopt, .classes = 10};
    case DataSpec::Format::kIdx:
      return KnownExamples{ExampleShape{.channels = 1, .height = 28, .width = 28}, 10};
    case DataSpec::Format::kCifar10:
      return KnownExamples{ExampleShape{.channels = 3, .height = 32, .width = 32}, 10};
    case DataSpec::Format::kNpy:
    case DataSpec::Format::kCsv:
      break;
  }
  return std::nullopt;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_KNOWN_EXAMPLES_H_

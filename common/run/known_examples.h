#ifndef SLIPSTREAM_COMMON_RUN_KNOWN_EXAMPLES_H_
#define SLIPSTREAM_COMMON_RUN_KNOWN_EXAMPLES_H_

#include <cstdint>
#include <optional>

#include "common/model/net_shapes.h"
#include "common/run/run_spec.h"

namespace slipstream {

/// The properties of every data set in a format, by which a model can be checked before a file is
/// there.
struct KnownExamples {
  ExampleShape shape;
  uint32_t classes = 0;
};

/// Returns nothing for formats whose properties only the files tell.
constexpr std::optional<KnownExamples> FindKnownExamples(DataSpec::Format format) {
  switch (format) {
    case DataSpec::Format::kSynthetic:
    case DataSpec::Format::kIdx:
      return KnownExamples{{.channels = 1, .height = 28, .width = 28}, 10};
    case DataSpec::Format::kCifar10:
      return KnownExamples{{.channels = 3, .height = 32, .width = 32}, 10};
    case DataSpec::Format::kNpy:
    case DataSpec::Format::kCsv:
      break;
  }
  return std::nullopt;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RUN_KNOWN_EXAMPLES_H_

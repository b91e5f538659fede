#ifndef SLIPSTREAM_COMMON_BASE_PUSH_KIND_H_
#define SLIPSTREAM_COMMON_BASE_PUSH_KIND_H_

#include <cstdint>
#include <string_view>

namespace slipstream {

/// The meaning of a push's values. All pushes of a run are of one kind. The numbers are those of
/// proto/shard.proto.
enum class PushKind : uint8_t {
  /// The gradient of the push's mini-batch at the base weights, or the sum of those of several
  /// steps that a worker took from there.
  kGradient = 0,

  /// The base weights minus the weights that local steps have led to, or a share of that. Like a
  /// gradient, it points to where the loss rises, so update rules take it as one.
  kDelta = 1,

  /// Weights that take the place of the shard's: those of a program that trains by itself and
  /// publishes the result. They are computed from no version, so they are never stale.
  kValues = 2,
};

/// Returns the kind's name for messages to users.
constexpr std::string_view Name(PushKind kind) {
  switch (kind) {
    case PushKind::kGradient:
      return "a gradient";
    case PushKind::kDelta:
      return "a delta";
    case PushKind::kValues:
      return "whole weights";
  }
  return "unknown values";
}

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_BASE_PUSH_KIND_H_

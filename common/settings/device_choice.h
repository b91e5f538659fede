#ifndef SLIPSTREAM_COMMON_SETTINGS_DEVICE_CHOICE_H_
#define SLIPSTREAM_COMMON_SETTINGS_DEVICE_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slipstream {

/// The device that a worker computes gradients on, as compute.device says it.
struct DeviceChoice {
  enum class Kind : uint8_t {
    kAuto,  // A GPU if the worker can use one, else the processor.
    kCpu,
    kAnyCuda,  // A GPU; the workers of a machine share them out.
    kCuda,     // The GPUs of `indices`.
  };

  static constexpr uint32_t kIndexMax = 255;
  static constexpr size_t kIndicesMax = 16;

  Kind kind = Kind::kAuto;

  /// Set for kCuda: GPUs among those that CUDA_VISIBLE_DEVICES leaves, in [0, kIndexMax]. There is
  /// one, or up to kIndicesMax different ones that share each mini-batch.
  std::vector<uint32_t> indices;

  /// Parses a choice. Returns nothing unless `text` is auto, cpu, cuda, cuda:N, or cuda:N,M and so
  /// on.
  static std::optional<DeviceChoice> FromText(std::string_view text);

  std::string ToText() const;

  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_SETTINGS_DEVICE_CHOICE_H_

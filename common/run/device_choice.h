#ifndef SLIPSTREAM_COMMON_RUN_DEVICE_CHOICE_H_
#define SLIPSTREAM_COMMON_RUN_DEVICE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace slipstream {

/// What a worker computes gradients on, as compute.device says it.
struct DeviceChoice {
  enum class Kind : uint8_t {
    kAuto,  // A GPU if the worker can use one, else the processor.
    kCpu,
    kAnyCuda,  // A GPU; the workers of a machine share them out by their ids.
    kCuda,     // The GPU numbered `index`.
  };

  static constexpr uint32_t kIndexMax = 255;

  Kind kind = Kind::kAuto;

  /// Of kCuda: of those that CUDA_VISIBLE_DEVICES leaves. In [0, kIndexMax].
  uint32_t index = 0;

  /// Absent unless `text` is auto, cpu, cuda, or cuda:N.
  static std::optional<DeviceChoice> FromText(std::string_view text);

  std::string ToText() const;

  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_RUN_DEVICE_CHOICE_H_

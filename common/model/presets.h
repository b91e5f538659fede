#ifndef SLIPSTREAM_COMMON_MODEL_PRESETS_H_
#define SLIPSTREAM_COMMON_MODEL_PRESETS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "common/model/model_spec.h"

namespace slipstream {

/// Returns the net called `name` with its input shape and layers; nothing for an unknown name.
///   mlp          784-256-128-10, ReLU                                        235,146 parameters
///   lenet5       LeNet-5 with ReLU and max pooling, 28×28                      61,706 parameters
///   cifar_quick  Caffe's CIFAR-10 quick net without its middle dense layer     89,578 parameters
///   rudra_cifar  the same with response normalisation and normal initial weights, as Rudra's
///                authors trained it                                       89,578 parameters
///   vgg_small    six convolutions as VGG stacks them, 3×32×32               3,248,202 parameters
///   alexnet      AlexNet without groups, 3×224×224, in ten classes         71,953,802 parameters
std::optional<ModelSpec> FindPreset(std::string_view name);

std::vector<std::string_view> PresetNames();

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_MODEL_PRESETS_H_

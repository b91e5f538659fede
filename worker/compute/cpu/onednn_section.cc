#include "worker/compute/cpu/onednn_section.h"

#include <memory>

#include "common/base/check.h"

namespace slipstream {

void OneDnnSection::Prepare(uint32_t count) {
  programs_.Prepare(count, [&] {
    OneDnnProgram::Options options = options_;
    options.count = count;
    return std::make_unique<OneDnnProgram>(engine_, blocks_, options);
  });
}

void OneDnnSection::Forward(const Pass& pass, const float* input, float* output) {
  programs_.For(pass.count).Forward(stream_, pass, input, output);
}

void OneDnnSection::Backward(const Pass& pass, const float*, const float*, float* output_gradient,
                             float* input_gradient) {
  PS_CHECK((input_gradient != nullptr) == options_.wants_input_gradient);
  programs_.For(pass.count).Backward(stream_, pass, output_gradient, input_gradient);
}

}  // namespace slipstream

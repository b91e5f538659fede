#include "worker/compute/cpu/onednn_section.h"

#include <algorithm>

#include "common/base/check.h"

namespace slipstream {

void OneDnnSection::Prepare(uint32_t count) {
  const auto found = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const Program& program) { return program.count == count; });
  if (found != programs_.end()) {
    programs_.splice(programs_.begin(), programs_, found);
    return;
  }
  if (programs_.size() == kProgramsMax) programs_.pop_back();
  const OneDnnProgram::Options options = {count, trains_, wants_input_gradient_};
  programs_.push_front({count, std::make_unique<OneDnnProgram>(engine_, blocks_, options)});
}

void OneDnnSection::Forward(const Pass& pass, const float* input, float* output) {
  PS_CHECK(programs_.front().count == pass.count);
  programs_.front().program->Forward(stream_, pass, input, output);
}

void OneDnnSection::Backward(const Pass& pass, const float*, const float*, float* output_gradient,
                             float* input_gradient) {
  PS_CHECK((input_gradient != nullptr) == wants_input_gradient_);
  programs_.front().program->Backward(stream_, pass, output_gradient, input_gradient);
}

}  // namespace slipstream

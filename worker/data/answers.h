#ifndef SLIPSTREAM_WORKER_DATA_ANSWERS_H_
#define SLIPSTREAM_WORKER_DATA_ANSWERS_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "common/model/model_spec.h"

namespace slipstream {

/// The answers that a user's file may give for an example: a class where the loss uses classes,
/// else real values.

inline constexpr uint32_t kClassesMax = uint32_t{1} << 20;

/// Texts for messages.
inline constexpr const char* kClassExpected = "a class: a whole number from 0 to 1048575";
inline constexpr const char* kValueExpected = "a finite number that fp32 can hold";

inline bool IsClass(double value) {
  return value >= 0 && value < kClassesMax && value == std::floor(value);
}

/// False for NaN, infinities, and numbers that fp32 would turn into an infinity.
inline bool IsValue(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

inline bool IsAnswer(double value, ModelSpec::Loss loss) {
  return loss == ModelSpec::Loss::kCrossEntropy ? IsClass(value) : IsValue(value);
}

inline const char* AnswerExpected(ModelSpec::Loss loss) {
  return loss == ModelSpec::Loss::kCrossEntropy ? kClassExpected : kValueExpected;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_ANSWERS_H_

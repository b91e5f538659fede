#ifndef SLIPSTREAM_WORKER_DATA_ANSWERS_H_
#define SLIPSTREAM_WORKER_DATA_ANSWERS_H_

#include <cmath>
#include <cstdint>
#include <limits>

#include "common/model/model_spec.h"

namespace slipstream {

/// What a user's file may say of an example: a class where the loss knows classes, else real
/// values.

inline constexpr uint32_t kClassesMax = uint32_t{1} << 20;

/// For messages.
inline constexpr const char* kClassExpected = "a class: a whole number from 0 to 1048575";
inline constexpr const char* kValueExpected = "a finite number that fp32 can hold";

inline bool IsClass(double value) {
  return value >= 0 && value < kClassesMax && value == std::floor(value);
}

/// False of NaN, infinities, and what fp32 would turn into one.
inline bool IsValue(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

inline bool IsAnswer(double value, ModelSpec::Loss loss) {
  return loss == ModelSpec::Loss::kCrossEntropy ? IsClass(value) : IsValue(value);
}

inline const char* AnswerExpected(ModelSpec::Loss loss) {
  return loss == ModelSpec::Loss::kCrossEntropy ? kClassExpected : kValueExpected;
}

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_DATA_ANSWERS_H_

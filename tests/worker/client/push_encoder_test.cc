#include "worker/client/push_encoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "common/base/philox.h"
#include "common/wire/value_encoding.h"

namespace slipstream {
namespace {

constexpr size_t kValues = 3000;
constexpr size_t kChunk = 1024;

std::vector<float> RandomGradient(uint64_t seed) {
  RandomStream random(seed, 22);
  std::vector<float> values(kValues);
  for (float& value : values) value = random.Uniform(-1, 1);
  return values;
}

/// What arrives of a gradient that is sent from its last chunk to its first.
std::vector<float> Sent(PushEncoder& encoder, const std::vector<float>& gradient) {
  std::vector<float> sent(kValues);
  for (size_t end = kValues; end > 0;) {
    const size_t begin = (end - 1) / kChunk * kChunk;
    Decode(encoder.encoding(), {encoder.Encode(gradient, begin, end)},
           std::span(sent).subspan(begin, end - begin));
    end = begin;
  }
  return sent;
}

TEST(PushEncoderTest, ARepetitionHasTheSameBytesWhateverBecomesOfTheGradient) {
  for (const Encoding encoding : {Encoding::kBf16, Encoding::kFp16}) {
    SCOPED_TRACE(RowOf(encoding).name);
    PushEncoder encoder(encoding, kValues);
    std::vector<float> gradient = RandomGradient(1);
    encoder.Begin();
    const std::vector<float> sent = Sent(encoder, gradient);
    std::ranges::fill(gradient, 5.0f);

    EXPECT_EQ(Sent(encoder, gradient), sent);
  }
}

}  // namespace
}  // namespace slipstream

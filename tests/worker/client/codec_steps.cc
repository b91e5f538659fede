// Pushes gradients of several workers through an encoding with its error feedback, for a test that
// compares it with another implementation.
//
//   codec_steps CODEC VALUES WORKERS
//
// It reads rounds from the standard input until that ends, and answers each. A round has, for each
// worker, a byte that says whether its push counts (1) or is refused (0), and then its VALUES
// gradients; the answer has the sum, as a shard makes it in fp32 and in the workers' order, of the
// pushes that count. Numbers are little-endian float32.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "common/kernels/fold.h"
#include "common/wire/value_encoding.h"
#include "worker/client/push_encoder.h"

namespace slipstream {
namespace {

template <typename T>
bool Read(std::span<T> values) {
  return std::fread(values.data(), sizeof(T), values.size(), stdin) == values.size();
}

PushReply ReplyOf(bool counts) {
  PushReply reply;
  reply.outcome = counts ? PushOutcome::kApplied : PushOutcome::kTooStale;
  return reply;
}

int Run(Encoding encoding, size_t values, size_t workers) {
  std::vector<PushEncoder> encoders;
  for (size_t i = 0; i < workers; ++i) encoders.emplace_back(encoding, values);
  std::vector<float> gradient(values);
  std::vector<float> arrived(values);
  for (;;) {
    std::vector<float> sum(values);
    for (PushEncoder& encoder : encoders) {
      uint8_t counts = 0;
      if (!Read(std::span(&counts, 1))) return 0;
      if (!Read(std::span(gradient))) return 1;
      encoder.Begin();
      const LentBytes bytes = encoder.Encode(gradient, 0, values);
      Decode(encoding, {bytes.bytes}, arrived);
      encoder.OnOutcome(ReplyOf(counts != 0));
      if (counts != 0) FoldGradient(sum, {std::as_bytes(std::span(arrived))}, 1.0f, false);
    }
    std::fwrite(sum.data(), sizeof(float), sum.size(), stdout);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  using namespace slipstream;
  const std::string name = argc == 4 ? argv[1] : "";
  const auto row = std::ranges::find(kEncodingRows, name, &EncodingRow::name);
  if (row == kEncodingRows.end() || row->kind == Encoding::kFp32) {
    std::fputs("usage: codec_steps CODEC VALUES WORKERS\n", stderr);
    return 2;
  }
  return Run(row->kind, std::stoul(argv[2]), std::stoul(argv[3]));
}

// Compares the kernels of updates and of the wire with memcpy: the bytes per second that a kernel
// must read and write, against a memcpy that reads and writes as many.
//
// Names are KERNEL/GRADIENT/BYTES. GRADIENT is `aligned` if the gradient lies in one piece, `cut`
// if it lies in pieces that begin anywhere, even inside a value (as it is received), and `-` if
// there is none. BYTES is the size of the weights. The memcpy for a kernel is called
// memcpy:PASSES/-/BYTES, where PASSES counts the arrays of that size that are read or written; an
// array of 16-bit values counts as half.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/kernels/finite.h"
#include "common/kernels/fold.h"
#include "common/kernels/half_decode.h"
#include "common/kernels/half_encode.h"
#include "common/kernels/rules/update_rule.h"
#include "common/kernels/segments.h"
#include "server/storage/buffer_pool.h"

namespace slipstream::benchmarks {
namespace {

constexpr size_t kPieceBytes = (size_t{1} << 20) + 3;

/// The rate is so small that no value leaves the range of ordinary numbers.
constexpr float kRate = 1e-9f;

std::unique_ptr<FloatBuffer> Filled(size_t values, float value) {
  std::unique_ptr<FloatBuffer> buffer = FloatBuffer::TryMake(values);
  if (buffer == nullptr) throw std::bad_alloc();
  std::ranges::fill(buffer->values(), value);
  return buffer;
}

/// Returns `bytes` of `payload`, in one piece or, if `is_cut`, in pieces as they are received.
Segments Pieces(const std::vector<std::byte>& payload, size_t bytes, bool is_cut) {
  Segments pieces;
  const ByteSegment all = ByteSegment(payload).subspan(is_cut ? 1 : 0, bytes);
  const size_t piece = is_cut ? kPieceBytes : bytes;
  for (size_t at = 0; at < bytes; at += piece) {
    pieces.push_back(all.subspan(at, std::min(piece, bytes - at)));
  }
  return pieces;
}

/// Returns `value` repeated `values` times, from the first byte on or, if cut, from the second.
template <typename Value>
std::vector<std::byte> Payload(size_t values, Value value, bool is_cut) {
  std::vector<std::byte> payload(values * sizeof value + 1);
  std::byte* const begin = payload.data() + (is_cut ? 1 : 0);
  for (size_t i = 0; i < values; ++i) std::memcpy(begin + i * sizeof value, &value, sizeof value);
  return payload;
}

/// All arrays that kernels work on, of one size, as a shard keeps them. They all begin on a page
/// boundary, so loads may have to wait for stores to the same offset in another page.
struct Arrays {
  Arrays(size_t values, bool is_cut)
      : weights(Filled(values, 0.5f)),
        weights_out(Filled(values, 0)),
        velocity(Filled(values, 0.25f)),
        velocity_out(Filled(values, 0)),
        square(Filled(values, 1)),
        square_out(Filled(values, 0)),
        sum(Filled(values, 0.125f)),
        gradient(Payload(values, 1.0f, is_cut)),
        pieces(Pieces(gradient, values * sizeof(float), is_cut)),
        halves(Payload(values, uint16_t{0x3c01}, is_cut)),
        half_pieces(Pieces(halves, values * sizeof(uint16_t), is_cut)),
        halves_out(values) {}

  const std::unique_ptr<FloatBuffer> weights;
  const std::unique_ptr<FloatBuffer> weights_out;
  const std::unique_ptr<FloatBuffer> velocity;
  const std::unique_ptr<FloatBuffer> velocity_out;
  const std::unique_ptr<FloatBuffer> square;
  const std::unique_ptr<FloatBuffer> square_out;
  const std::unique_ptr<FloatBuffer> sum;
  const std::vector<std::byte> gradient;
  const Segments pieces;                // Pieces of the gradient.
  const std::vector<std::byte> halves;  // A gradient of 16-bit values.
  const Segments half_pieces;
  std::vector<uint16_t> halves_out;
};

struct Kernel {
  std::string name;

  /// The number of arrays of the weights' size that the kernel has to read or write.
  double passes;
  std::function<void(Arrays&)> run;
  bool takes_gradient = true;
};

/// Returns a sum and a last gradient. As in a shard, the sum lies in the buffer of the new weights.
CombinedGradient WithSum(const Arrays& arrays) {
  return {.sum = arrays.weights_out->values(), .last = &arrays.pieces, .inverse_divisor = 0.5f};
}

/// Adds the two kernels of a rule: with a single gradient, and with a sum and the last gradient.
void AddRule(const RuleRow& row, std::vector<Kernel>& kernels) {
  OptimizerSpec spec;
  spec.kind = row.kind;
  const std::shared_ptr<const UpdateRule> rule = MakeUpdateRule(spec);
  const auto update = [rule, &row](Arrays& a, const CombinedGradient& gradient) {
    UpdateArrays arrays = {.weights_in = a.weights->values(),
                           .weights_out = a.weights_out->values()};
    if (row.state_arrays > 0) arrays.states[0] = {a.velocity->values(), a.velocity_out->values()};
    if (row.state_arrays > 1) arrays.states[1] = {a.square->values(), a.square_out->values()};
    rule->Update(arrays, gradient, {.rate = kRate}, rule->Next(rule->InitialScalars()),
                 StoresFor(a.weights->values().size_bytes()));
  };
  const std::string name(row.name);
  const double passes = 3 + 2.0 * row.state_arrays;
  kernels.push_back(
      {name + "-single", passes, [update](Arrays& a) { update(a, {.last = &a.pieces}); }});
  kernels.push_back({name + "-sum", passes + 1, [update](Arrays& a) { update(a, WithSum(a)); }});
}

std::vector<Kernel> Kernels() {
  std::vector<Kernel> kernels = {
      {"finite", 1, [](Arrays& a) { benchmark::DoNotOptimize(AllFinite(a.pieces)); }},
      {"fold", 3, [](Arrays& a) { FoldGradient(a.sum->values(), a.pieces, kRate, false); }},
      {"encode-bf16", 1.5, [](Arrays& a) { EncodeBf16(a.weights->values(), a.halves_out); }, false},
      {"encode-fp16", 1.5, [](Arrays& a) { EncodeFp16(a.weights->values(), a.halves_out); }, false},
      {"decode-bf16", 1.5, [](Arrays& a) { DecodeBf16(a.half_pieces, a.weights_out->values()); }},
      {"decode-fp16", 1.5, [](Arrays& a) { DecodeFp16(a.half_pieces, a.weights_out->values()); }},
  };
  for (const RuleRow& row : kRuleRows) AddRule(row, kernels);
  return kernels;
}

void CountBytes(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}

size_t BytesOf(double passes, size_t bytes) {
  return static_cast<size_t>(passes * static_cast<double>(bytes));
}

void MeasureKernel(benchmark::State& state, const Kernel& kernel, bool is_cut, size_t bytes) {
  Arrays arrays(bytes / sizeof(float), is_cut);
  for (auto _ : state) {
    kernel.run(arrays);
    benchmark::ClobberMemory();
  }
  CountBytes(state, BytesOf(kernel.passes, bytes));
}

void MeasureMemcpy(benchmark::State& state, size_t moved) {
  const std::unique_ptr<FloatBuffer> from = Filled(moved / 2 / sizeof(float), 1);
  const std::unique_ptr<FloatBuffer> to = Filled(moved / 2 / sizeof(float), 0);
  for (auto _ : state) {
    std::memcpy(to->values().data(), from->values().data(), from->values().size_bytes());
    benchmark::ClobberMemory();
  }
  CountBytes(state, moved);
}

void Register(size_t bytes) {
  const std::string size = std::to_string(bytes);
  std::set<double> passes;
  for (const Kernel& kernel : Kernels()) {
    for (const bool is_cut : {false, true}) {
      if (is_cut && !kernel.takes_gradient) continue;
      const char* const gradient = !kernel.takes_gradient ? "/-/" : is_cut ? "/cut/" : "/aligned/";
      const std::string name = kernel.name + gradient + size;
      benchmark::RegisterBenchmark(name.c_str(), MeasureKernel, kernel, is_cut, bytes);
    }
    passes.insert(kernel.passes);
  }
  for (const double count : passes) {
    std::ostringstream name;
    name << "memcpy:" << count << "/-/" << size;
    benchmark::RegisterBenchmark(name.str().c_str(), MeasureMemcpy, BytesOf(count, bytes));
  }
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) {
  // A net of LeNet-5's size, a shard that fits into the last-level cache, and a shard that does
  // not.
  for (const int kibibytes : {256, 1 << 10, 64 << 10}) {
    slipstream::benchmarks::Register(static_cast<size_t>(kibibytes) << 10);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

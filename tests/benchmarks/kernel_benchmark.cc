// The update path's kernels beside memcpy: what a kernel must read and write, in bytes per second,
// against a memcpy that reads and writes as many.
//
// Names are KERNEL/GRADIENT/BYTES: the gradient lies `aligned` in one piece, or `cut` as it is
// received, in pieces that begin anywhere, also inside a value; BYTES are the weights'. The memcpy
// of a kernel is called memcpy:PASSES/-/BYTES, where PASSES counts the arrays of that size that are
// read or written.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "common/kernels/finite.h"
#include "common/kernels/segments.h"
#include "common/kernels/update.h"
#include "server/storage/buffer_pool.h"

namespace slipstream::benchmarks {
namespace {

constexpr size_t kPieceBytes = (size_t{1} << 20) + 3;

/// So small that nothing grows out of the range of ordinary numbers.
constexpr float kRate = 1e-9f;

std::unique_ptr<FloatBuffer> Filled(size_t values, float value) {
  std::unique_ptr<FloatBuffer> buffer = FloatBuffer::TryMake(values);
  if (buffer == nullptr) throw std::bad_alloc();
  std::ranges::fill(buffer->values(), value);
  return buffer;
}

/// All that kernels work on, of one size, as a shard keeps it: arrays begin on pages, and so alike,
/// which costs loads that follow stores to the same place of another page.
struct Arrays {
  Arrays(size_t values, bool is_cut)
      : weights(Filled(values, 0.5f)),
        weights_out(Filled(values, 0)),
        velocity(Filled(values, 0.25f)),
        velocity_out(Filled(values, 0)),
        sum(Filled(values, 0.125f)),
        gradient(values * sizeof(float) + 1) {
    // Of ordinary numbers also where they are cut: subnormal ones take twenty times as long.
    const float one = 1.0f;
    const ByteSegment all = ByteSegment(gradient).subspan(is_cut ? 1 : 0, values * sizeof one);
    std::byte* const begin = gradient.data() + (is_cut ? 1 : 0);
    for (size_t i = 0; i < values; ++i) std::memcpy(begin + i * sizeof one, &one, sizeof one);
    const size_t piece = is_cut ? kPieceBytes : all.size();
    for (size_t at = 0; at < all.size(); at += piece) {
      pieces.push_back(all.subspan(at, std::min(piece, all.size() - at)));
    }
  }

  const std::unique_ptr<FloatBuffer> weights;
  const std::unique_ptr<FloatBuffer> weights_out;
  const std::unique_ptr<FloatBuffer> velocity;
  const std::unique_ptr<FloatBuffer> velocity_out;
  const std::unique_ptr<FloatBuffer> sum;
  std::vector<std::byte> gradient;
  Segments pieces;  // Of the gradient.
};

struct Kernel {
  std::string name;

  /// Arrays of the weights' size that it has to read or write.
  int passes;
  std::function<void(Arrays&)> run;
};

CombinedGradient WithSum(const Arrays& arrays) {
  return {.sum = arrays.sum->values(), .last = &arrays.pieces, .inverse_divisor = 0.5f};
}

void Sgd(Arrays& arrays, const CombinedGradient& gradient) {
  SgdUpdate(arrays.weights->values(), arrays.weights_out->values(), gradient, kRate, 0,
            StoresFor(arrays.weights->values().size_bytes()));
}

void Momentum(Arrays& arrays, const CombinedGradient& gradient) {
  MomentumUpdate(arrays.weights->values(), arrays.weights_out->values(), arrays.velocity->values(),
                 arrays.velocity_out->values(), gradient, kRate, 0.9f, 0,
                 StoresFor(arrays.weights->values().size_bytes()));
}

std::vector<Kernel> Kernels() {
  return {
      {"finite", 1, [](Arrays& a) { benchmark::DoNotOptimize(AllFinite(a.pieces)); }},
      {"fold", 3, [](Arrays& a) { FoldGradient(a.sum->values(), a.pieces, kRate, false); }},
      {"sgd-single", 3, [](Arrays& a) { Sgd(a, {.last = &a.pieces}); }},
      {"sgd-sum", 4, [](Arrays& a) { Sgd(a, WithSum(a)); }},
      {"momentum-single", 5, [](Arrays& a) { Momentum(a, {.last = &a.pieces}); }},
      {"momentum-sum", 6, [](Arrays& a) { Momentum(a, WithSum(a)); }},
  };
}

void CountBytes(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}

void MeasureKernel(benchmark::State& state, const Kernel& kernel, bool is_cut, size_t bytes) {
  Arrays arrays(bytes / sizeof(float), is_cut);
  for (auto _ : state) {
    kernel.run(arrays);
    benchmark::ClobberMemory();
  }
  CountBytes(state, bytes * static_cast<size_t>(kernel.passes));
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
  std::set<int> passes;
  for (const Kernel& kernel : Kernels()) {
    for (const bool is_cut : {false, true}) {
      const std::string name = kernel.name + (is_cut ? "/cut/" : "/aligned/") + size;
      benchmark::RegisterBenchmark(name.c_str(), MeasureKernel, kernel, is_cut, bytes);
    }
    passes.insert(kernel.passes);
  }
  for (const int count : passes) {
    const std::string name = "memcpy:" + std::to_string(count) + "/-/" + size;
    benchmark::RegisterBenchmark(name.c_str(), MeasureMemcpy, bytes * static_cast<size_t>(count));
  }
}

}  // namespace
}  // namespace slipstream::benchmarks

int main(int argc, char** argv) {
  // A net of the size of LeNet-5, a shard in the last cache, and shards in memory.
  for (const int kibibytes : {256, 1 << 10, 64 << 10}) {
    slipstream::benchmarks::Register(static_cast<size_t>(kibibytes) << 10);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

#include <cstddef>

#include "worker/compute/cuda/divisor.h"
#include "worker/compute/cuda/gather_kernels.h"
#include "worker/compute/cuda/gather_math.h"
#include "worker/compute/cuda/launch.cuh"

namespace slipstream::cuda {
namespace {

template <typename Index>
__global__ void GatherRowsKernel(const uint32_t* rows, size_t example_words,
                                 const uint32_t* examples, Divisor words_of_example,
                                 uint32_t* gathered_examples, size_t answer_words,
                                 const uint32_t* answers, Divisor words_of_answer,
                                 uint32_t* gathered_answers) {
  ForEach(example_words + answer_words, [=](size_t i) {
    if (i < example_words) {
      gathered_examples[i] = GatheredWord(examples, words_of_example, rows, static_cast<Index>(i));
      return;
    }
    const size_t at = i - example_words;
    gathered_answers[at] = GatheredWord(answers, words_of_answer, rows, static_cast<Index>(at));
  });
}

}  // namespace

absl::Status GatherRows(cudaStream_t stream, const uint32_t* rows, uint32_t count,
                        const GatheredTable& examples, const GatheredTable& answers) {
  const size_t example_words = size_t{count} * examples.row_words;
  const size_t answer_words = size_t{count} * answers.row_words;
  const size_t words = example_words + answer_words;
  return Launch("GatherRows", stream, BlocksFor(words), kThreads,
                IsNarrow(words) ? GatherRowsKernel<uint32_t> : GatherRowsKernel<size_t>, rows,
                example_words, examples.table, Divisor(examples.row_words), examples.gathered,
                answer_words, answers.table, Divisor(answers.row_words), answers.gathered);
}

}  // namespace slipstream::cuda

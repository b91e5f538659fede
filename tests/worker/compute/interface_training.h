#ifndef SLIPSTREAM_TESTS_WORKER_COMPUTE_INTERFACE_TRAINING_H_
#define SLIPSTREAM_TESTS_WORKER_COMPUTE_INTERFACE_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/model/model_spec.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// Requirements on every device, checked through the interface alone. Each device's tests call
/// them.

/// Trains a few steps, handing over new weights range by range and taking gradients as they are
/// reported, with an evaluation after each step. Returns the losses of steps and evaluations in
/// turn, and then the final weights.
std::vector<float> Train(Device& device, const ModelSpec& model);

/// Trains the same steps without evaluations. Each step begins before its weights are there, and
/// another thread hands them over meanwhile. Checks that gradients come from the end of the arena
/// to its beginning.
std::vector<float> TrainOverlapped(Device& device, const ModelSpec& model);

/// Removes the evaluations' losses from the result of Train.
std::vector<float> WithoutEvaluations(std::vector<float> history);

/// Expects that a step on `count` examples which begins without the weights of the last layer waits
/// for them, and gives the same result as with all weights there.
void ExpectWaitingStepComputesTheSame(Device& device, const ModelSpec& model, size_t count);

/// Expects that a step whose weights are revoked fails with CANCELLED. Begun anew with the same
/// weights, it gives the usual result.
void ExpectRevokedStepStartsOver(Device& device, const ModelSpec& model);

/// Expects that a step whose weights are abandoned fails with CANCELLED and leaves the previous
/// step's gradients unchanged, even if it is the first step of its size.
void ExpectAbandonedStepEnds(Device& device, const ModelSpec& model);

/// Expects that each step gives the same result as without offers. In an order drawn from `seed`,
/// batches are offered while the previous step runs, used, never used, or used by steps that start
/// over.
/// REQUIRES: the device's plans have space for coming batches.
void ExpectOfferedBatchesChangeNothing(Device& device, const ModelSpec& model, uint64_t seed);

/// Expects that each step on kept examples gives the same result as on their values, and so do
/// steps of plans that keep other examples later. In an order drawn from `seed`, batches name
/// examples that two plans keep, some of them twice, in turn with batches of values, and also in
/// steps that start over. Rows that are not kept are refused.
/// REQUIRES: the device's plans keep examples.
void ExpectKeptExamplesChangeNothing(Device& device, const ModelSpec& model, uint64_t seed);

/// Expects that gradients can lie in memory of the caller's, and are the same as elsewhere.
void ExpectGradientsInSharedMemory(Device& device, const ModelSpec& model);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_COMPUTE_INTERFACE_TRAINING_H_

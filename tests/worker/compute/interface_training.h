#ifndef SLIPSTREAM_TESTS_WORKER_COMPUTE_INTERFACE_TRAINING_H_
#define SLIPSTREAM_TESTS_WORKER_COMPUTE_INTERFACE_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/model/model_spec.h"
#include "worker/compute/plan.h"

namespace slipstream {

/// What every device must do, told by nothing but the interface; the tests of each device call it.

/// Trains a few steps, handing over new weights range by range and taking gradients as they are
/// reported, with an evaluation after each step. The losses of steps and evaluations in turn, and
/// the weights at the end.
std::vector<float> Train(Device& device, const ModelSpec& model);

/// The same without evaluations, but each step begins before its weights, which another thread
/// hands over meanwhile. Notes that gradients come from the end of the arena to its beginning.
std::vector<float> TrainOverlapped(Device& device, const ModelSpec& model);

/// What Train returns, without the evaluations' losses.
std::vector<float> WithoutEvaluations(std::vector<float> history);

/// A step on `count` examples begins without the weights of the last layer, waits for them, and
/// gives what it would have given with all of them there.
void ExpectWaitingStepComputesTheSame(Device& device, const ModelSpec& model, size_t count);

/// A step whose weights are revoked fails with CANCELLED and gives, begun anew with what they were,
/// what it would have given.
void ExpectRevokedStepStartsOver(Device& device, const ModelSpec& model);

/// A step whose weights will not come fails with CANCELLED, and leaves the gradients of the one
/// before as they were, also where it is the first of its size.
void ExpectAbandonedStepEnds(Device& device, const ModelSpec& model);

/// Batches are offered while the step before runs, are taken, are never taken, and are those of
/// steps that start over, in an order drawn from `seed`: each step gives what it gives without.
/// REQUIRES: the device's plans have space for coming batches.
void ExpectOfferedBatchesChangeNothing(Device& device, const ModelSpec& model, uint64_t seed);

/// Batches name examples that two plans keep, some of them twice, in turn with others and also
/// where steps start over, in an order drawn from `seed`: each step gives what it gives of values,
/// and so does one of plans that keep other examples later. What is not kept is refused. REQUIRES:
/// the device's plans keep examples.
void ExpectKeptExamplesChangeNothing(Device& device, const ModelSpec& model, uint64_t seed);

/// Gradients lie in memory of the caller's and are what they would be elsewhere.
void ExpectGradientsInSharedMemory(Device& device, const ModelSpec& model);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_WORKER_COMPUTE_INTERFACE_TRAINING_H_

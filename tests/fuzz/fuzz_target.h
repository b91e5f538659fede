#ifndef SLIPSTREAM_TESTS_FUZZ_FUZZ_TARGET_H_
#define SLIPSTREAM_TESTS_FUZZ_FUZZ_TARGET_H_

#include <span>
#include <string_view>

namespace slipstream {

/// A parser, and properties that hold for every input. A violation ends the process (by PS_CHECK or
/// a sanitizer).
struct FuzzTarget {
  std::string_view name;
  void (*run)(std::string_view input);
};

/// Returns all targets, in order of their names.
std::span<const FuzzTarget> FuzzTargets();

/// Returns the target of that name, or null if there is none.
const FuzzTarget* FindFuzzTarget(std::string_view name);

// kPartEnd separates the parts of inputs with several parts; see fuzz_input.h.

// chunk_fuzz.cc: messages of the data plane that carry values, cut into slices in different ways.
void FuzzPushChunk(std::string_view input);
void FuzzWeightsChunk(std::string_view input);
void FuzzInitializeChunk(std::string_view input);
void FuzzExchangeChunk(std::string_view input);

// control_fuzz.cc: messages that protobuf has parsed. The first byte of `reports` selects the
// message.
void FuzzPullRequest(std::string_view input);
void FuzzOrders(std::string_view input);
void FuzzLayout(std::string_view input);
void FuzzReports(std::string_view input);

// stream_fuzz.cc: sequences of chunks, each described by a few bytes.
void FuzzPushFraming(std::string_view input);
void FuzzWeightsArrival(std::string_view input);

// local_fuzz.cc: notes of a local socket with files, and all actions of a worker on shared memory.
void FuzzLocalNotes(std::string_view input);
void FuzzSharedMemoryChannel(std::string_view input);

// text_fuzz.cc: settings followed by overrides, manifests of checkpoints without their checksum,
// and names of peers.
void FuzzRunConfig(std::string_view input);
void FuzzCheckpointManifest(std::string_view input);
void FuzzPeerName(std::string_view input);
void FuzzServerAddress(std::string_view input);
void FuzzWireText(std::string_view input);

// file_fuzz.cc: files of data and of weights. For npy and idx, the input holds examples and then
// labels.
void FuzzNpy(std::string_view input);
void FuzzCsv(std::string_view input);
void FuzzIdx(std::string_view input);
void FuzzCifar10(std::string_view input);
void FuzzGzip(std::string_view input);
void FuzzModelFile(std::string_view input);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_FUZZ_FUZZ_TARGET_H_

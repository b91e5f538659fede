#ifndef SLIPSTREAM_TESTS_FUZZ_FUZZ_TARGET_H_
#define SLIPSTREAM_TESTS_FUZZ_FUZZ_TARGET_H_

#include <span>
#include <string_view>

namespace slipstream {

/// A parser, and what holds of it for every input. It ends the process (PS_CHECK, or a sanitizer)
/// where that does not hold.
struct FuzzTarget {
  std::string_view name;
  void (*run)(std::string_view input);
};

/// All of them, in order of their names.
std::span<const FuzzTarget> FuzzTargets();

/// Null if there is none of that name.
const FuzzTarget* FindFuzzTarget(std::string_view name);

// Inputs of several parts are divided by kPartEnd, see fuzz_input.h.

// chunk_fuzz.cc: a message of the data plane that carries values, however it is cut into slices.
void FuzzPushChunk(std::string_view input);
void FuzzWeightsChunk(std::string_view input);
void FuzzInitializeChunk(std::string_view input);
void FuzzExchangeChunk(std::string_view input);

// control_fuzz.cc: messages that protobuf has parsed. `reports` begins with a byte that says which.
void FuzzPullRequest(std::string_view input);
void FuzzOrders(std::string_view input);
void FuzzLayout(std::string_view input);
void FuzzReports(std::string_view input);

// stream_fuzz.cc: sequences of chunks, as bytes that tell what each is.
void FuzzPushFraming(std::string_view input);
void FuzzWeightsArrival(std::string_view input);

// local_fuzz.cc: notes of a local socket with files, and a worker's whole side of shared memory.
void FuzzLocalNotes(std::string_view input);
void FuzzSharedPath(std::string_view input);

// text_fuzz.cc: settings with overrides behind them, and what names a peer.
void FuzzRunConfig(std::string_view input);
void FuzzPeerName(std::string_view input);
void FuzzServerAddress(std::string_view input);
void FuzzWireText(std::string_view input);

// file_fuzz.cc: files of data and of weights. Of npy and idx the examples, then the labels.
void FuzzNpy(std::string_view input);
void FuzzCsv(std::string_view input);
void FuzzIdx(std::string_view input);
void FuzzCifar10(std::string_view input);
void FuzzGzip(std::string_view input);
void FuzzModelFile(std::string_view input);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_FUZZ_FUZZ_TARGET_H_

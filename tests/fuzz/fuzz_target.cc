#include "tests/fuzz/fuzz_target.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>

namespace slipstream {
namespace {

constexpr FuzzTarget kTargets[] = {
    {"checkpoint_manifest", FuzzCheckpointManifest},
    {"cifar10", FuzzCifar10},
    {"csv", FuzzCsv},
    {"exchange_chunk", FuzzExchangeChunk},
    {"gzip", FuzzGzip},
    {"idx", FuzzIdx},
    {"initialize_chunk", FuzzInitializeChunk},
    {"layout", FuzzLayout},
    {"local_notes", FuzzLocalNotes},
    {"model_file", FuzzModelFile},
    {"npy", FuzzNpy},
    {"orders", FuzzOrders},
    {"peer_name", FuzzPeerName},
    {"pull_request", FuzzPullRequest},
    {"push_chunk", FuzzPushChunk},
    {"push_framing", FuzzPushFraming},
    {"reports", FuzzReports},
    {"run_config", FuzzRunConfig},
    {"server_address", FuzzServerAddress},
    {"shared_memory_channel", FuzzSharedMemoryChannel},
    {"weights_arrival", FuzzWeightsArrival},
    {"weights_chunk", FuzzWeightsChunk},
    {"wire_text", FuzzWireText},
};

// Without this, protobuf prints a line for each text that is not UTF-8.
[[maybe_unused]] google::protobuf::LogHandler* const kLogBefore =
    google::protobuf::SetLogHandler(nullptr);

static_assert(std::ranges::is_sorted(kTargets, {}, &FuzzTarget::name));

}  // namespace

std::span<const FuzzTarget> FuzzTargets() { return kTargets; }

const FuzzTarget* FindFuzzTarget(std::string_view name) {
  const auto* const found = std::ranges::find(kTargets, name, &FuzzTarget::name);
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace slipstream

// Writes the seeds of corpora that our encoders can make: write_seeds DIRECTORY. Each parser gets a
// folder in DIRECTORY. The other seeds were written by hand.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/local/local_notes.h"
#include "common/model_file/model_header.h"
#include "common/wire/chunk_wire.h"
#include "common/wire/control_wire.h"
#include "common/wire/shard_wire.h"
#include "proto/coordinator.pb.h"
#include "server/control_plane/orders_wire.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/worker/data/gzip.h"
#include "tests/worker/data/npy_array.h"

namespace slipstream {
namespace {

namespace fs = std::filesystem;

const Identity kIdentity{0x1234, WorkerId{2}, Incarnation{3}};

/// Writes each target's seeds to its folder below `folder`.
class Corpus {
 public:
  explicit Corpus(fs::path folder) : folder_(std::move(folder)) {}

  void Add(const std::string& target, const std::string& name, std::string_view bytes) const {
    fs::create_directories(folder_ / target);
    std::ofstream file(folder_ / target / name, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }

  void Add(const std::string& target, const std::string& name,
           const grpc::ByteBuffer& message) const {
    grpc::Slice bytes;
    if (!message.DumpToSingleSlice(&bytes).ok()) return;
    Add(target, name, std::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()));
  }

 private:
  const fs::path folder_;
};

template <typename Number>
std::string Raw(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

/// Returns a note as it lies in memory, without the text and the files that follow it.
std::string Note(LocalNote::Kind kind, uint64_t number) {
  return Raw(static_cast<uint32_t>(kind)) + Raw(uint32_t{0}) + Raw(number);
}

LentValues Lent(size_t count) {
  const auto values = std::make_shared<std::vector<float>>(count, 0.5f);
  return {*values, values};
}

PushHeader FullPushHeader() {
  PushHeader header;
  header.identity = kIdentity;
  header.sequence = Sequence{7};
  header.shard_map = 0xabcdef;
  header.base = Version{5};
  header.count = 24;
  header.examples = 32;
  header.batches.push_back({8, 2});
  header.pull = true;
  header.chunk_bytes = 4096;
  header.slot = 1;
  header.clock = WorkerClock{9};
  header.holds_base = true;
  header.weights_encoding = Encoding::kBf16;
  return header;
}

void AddPushes(const Corpus& corpus) {
  const PushHeader header = FullPushHeader();
  for (const EncodingRow& row : kEncodingRows) {
    corpus.Add("push_chunk", std::string(row.name) + ".bin",
               EncodePushChunk(header, 0, Lent(24), row.kind));
  }
  corpus.Add("push_chunk", "later_chunk.bin", EncodePushChunk(std::nullopt, 8, Lent(4)));
  corpus.Add("push_chunk", "sealed.bin",
             EncodePushChunk(std::nullopt, 0, Lent(4), Encoding::kFp32,
                             {.loss = 0.5f, .clip = 0.25f, .absent = TensorSet("\5")}));
  corpus.Add("push_chunk", "shared.bin", EncodePushChunk(header, 0, SharedValues{4096, 24}));
  corpus.Add("push_chunk", "request.bin", EncodeRequest({SharedMemoryRequest::Step::kAttach}));
}

void AddAnswers(const Corpus& corpus) {
  const WeightsHeader header{Version{6}, 4, RoundWork{RoundWork::Kind::kCompute, {8, 3}}};
  PushReply reply;
  reply.outcome = PushOutcome::kDuplicate;
  reply.first_outcome = PushOutcome::kApplied;
  reply.version = Version{6};
  reply.message = "größer";
  for (const EncodingRow& row : kEncodingRows) {
    if (!row.carries_weights) continue;
    const std::string name = std::string(row.name) + ".bin";
    corpus.Add("weights_chunk", name, EncodeWeightsChunk(header, 0, Lent(4), row.kind));
    corpus.Add("exchange_chunk", name, EncodeExchangeChunk(reply, header, 0, Lent(4), row.kind));
  }
  corpus.Add("exchange_chunk", "shared.bin", EncodeExchangeChunk(reply, header, {1, 2}));
  corpus.Add("exchange_chunk", "reply.bin", EncodeReply({.socket = "slipstream-0", .refusal = ""}));
  corpus.Add("initialize_chunk", "first.bin",
             EncodeInitializeChunk(InitializeHeader{kIdentity, 1, 2, 4}, 0, Lent(4)));
  corpus.Add("initialize_chunk", "later.bin", EncodeInitializeChunk(std::nullopt, 4, Lent(2)));
}

TensorLayout SmallLayout() {
  TensorLayout layout;
  (void)layout.Append("0.weight", {40, 3});
  (void)layout.Append("0.bias", {40});
  (void)layout.Append("1.weight", {2, 40});
  return layout;
}

void AddControl(const Corpus& corpus) {
  PullRequest pull;
  pull.identity = kIdentity;
  pull.trains = true;
  pull.sequence = Sequence{4};
  pull.chunk_bytes = 8192;
  corpus.Add("pull_request", "training.bin", ToWire(pull).SerializeAsString());
  corpus.Add("pull_request", "reader.bin", ToWire(PullRequest{}).SerializeAsString());

  ServerOrders orders;
  orders.number = 3;
  orders.phase = Phase::kTraining;
  orders.view = {ViewNumber{2},
                 {{WorkerId{0}, Incarnation{1}, true}, {WorkerId{1}, Incarnation{2}, false}}};
  corpus.Add("orders", "before_model.bin", ToWire(orders).SerializeAsString());
  orders.model = ModelOrders{.layout = SmallLayout(),
                             .shard_map = ShardMap::Cut(SmallLayout(), 2).value(),
                             .batches_total = 100,
                             .batches_per_epoch = 50,
                             .examples_per_epoch = 1600};
  orders.grant = 1;
  orders.initializer = kIdentity;
  corpus.Add("orders", "model.bin", ToWire(orders).SerializeAsString());

  v1::PrepareModelRequest prepare;
  *prepare.mutable_identity() = ToWire(kIdentity);
  *prepare.mutable_layout() = ToWire(SmallLayout());
  corpus.Add("layout", "small.bin", prepare.SerializeAsString());
}

void AddReports(const Corpus& corpus) {
  v1::SyncServerRequest server;
  server.set_shard(1);
  server.set_address("localhost:7071");
  server.mutable_progress()->set_version(4);
  v1::NewestPush& push = *server.mutable_progress()->add_newest_pushes();
  push.set_batch_end(9);
  push.set_clock(3);
  corpus.Add("reports", "server.bin", Raw(uint8_t{0}) + server.SerializeAsString());

  v1::HeartbeatRequest heartbeat;
  *heartbeat.mutable_identity() = ToWire(kIdentity);
  heartbeat.set_train_loss(0.5);
  heartbeat.set_train_accuracy(0.75);
  heartbeat.mutable_nonfinite()->set_what("loss is nan");
  heartbeat.add_progress()->set_batches_done(3);
  v1::StepTimes& step = *heartbeat.add_recent_steps();
  step.set_step(8);
  step.add_lanes()->set_push_begin(1.5);
  corpus.Add("reports", "heartbeat.bin", Raw(uint8_t{1}) + heartbeat.SerializeAsString());

  v1::ReportRequest report;
  report.mutable_result()->set_test_accuracy(0.5);
  report.mutable_result()->add_versions(7);
  corpus.Add("reports", "evaluation.bin", Raw(uint8_t{2}) + report.SerializeAsString());
}

/// Returns a step of stream_fuzz.cc.
std::string PushStep(uint8_t flags, uint16_t announced, uint16_t offset, uint16_t first,
                     uint16_t count) {
  const bool has_header = (flags & 1) != 0;
  return Raw(flags) + (has_header ? Raw(announced) : "") + Raw(offset) + Raw(first) + Raw(count);
}

void AddStreams(const Corpus& corpus) {
  corpus.Add("push_framing", "in_order.bin",
             PushStep(1, 100, 0, 0, 60) + PushStep(0, 0, 60, 60, 40) + PushStep(1, 0, 0, 0, 0));
  corpus.Add("push_framing", "backwards_and_shared.bin",
             PushStep(1, 3000, 2000, 9, 1000) + PushStep(2, 0, 1000, 7, 1000) +
                 PushStep(4, 0, 0, 4000, 1000));
  corpus.Add(
      "push_framing", "refused.bin",
      PushStep(1 | 8, 100, 0, 0, 60) + PushStep(0, 0, 60, 0, 40) + PushStep(1 | 16, 5, 0, 0, 5));
  corpus.Add("push_framing", "twice.bin", PushStep(1, 100, 0, 0, 60) + PushStep(0, 0, 59, 0, 41));
  // Flags: 1 starts a try, 2 the values are taken back, 4 there is a header, 8 unchanged. The upper
  // two bits are the version.
  using namespace std::string_literals;
  corpus.Add("weights_arrival", "one_try.bin",
             "\x08"s + "\x45\x08\x00\x04"s + "\x40\x04\x04"s + "\xcc\x08\x00\x00"s);
  corpus.Add("weights_arrival", "unchanged.bin", "\x08"s + "\xcd\x08\x00\x00"s);
  corpus.Add("weights_arrival", "another_version.bin",
             "\x08"s + "\x45\x08\x00\x04"s + "\x85\x08\x00\x08"s);
  corpus.Add("weights_arrival", "taken_back.bin",
             "\x08"s + "\x47\x08\x00\x04"s + "\x45\x08\x00\x08"s);
}

void AddLocal(const Corpus& corpus) {
  const std::string push = [] {
    grpc::Slice bytes;
    (void)EncodePushChunk(FullPushHeader(), 0, SharedValues{0, 16}).DumpToSingleSlice(&bytes);
    return std::string(bytes.begin(), bytes.end());
  }();
  const std::string message = Note(LocalNote::Kind::kMessage, push.size()) + push;
  corpus.Add("local_notes", "several.bin",
             Raw(uint8_t{1}) + Note(LocalNote::Kind::kArena, 0) + std::string(kPartEnd) +
                 Raw(uint8_t{0}) + message + std::string(kPartEnd) + Raw(uint8_t{2}) + message);
  // The fields are: the file's kind, size and seals; the note's kind and files; the actions that
  // follow.
  const auto attach = [](uint8_t kind, uint32_t size) {
    return Raw(kind) + Raw(size) + Raw(uint8_t{0x0f}) + Raw(uint8_t{7}) + Raw(uint8_t{1});
  };
  corpus.Add("shared_memory_channel", "attached.bin",
             attach(2, 65'536) + Raw(uint8_t{0}) + Raw(uint64_t{4096}) + Raw(uint64_t{16}) +
                 Raw(uint8_t{2}) + Raw(static_cast<uint16_t>(push.size())) + push +
                 Raw(uint8_t{5}) + Raw(static_cast<uint16_t>(message.size())) + message);
  corpus.Add("shared_memory_channel", "file_of_other_makers.bin", attach(4, 65'536));
  corpus.Add("shared_memory_channel", "file_with_holes.bin", attach(5, 65'536));
}

std::string BigEndian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

void AddFiles(const Corpus& corpus) {
  const std::string end(kPartEnd);
  corpus.Add("npy", "floats.npy",
             NpyArray<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6}) + end +
                 NpyArray<int64_t>("<i8", "(3,)", {0, 1, 0}));
  corpus.Add("npy", "images.npy",
             NpyArray<uint8_t>("|u1", "(1, 1, 2, 2)", {1, 2, 3, 4}) + end +
                 NpyArray<double>("<f8", "(1, 2)", {0.5, -1}));
  corpus.Add("idx", "two_images.idx",
             BigEndian(0x803) + BigEndian(2) + BigEndian(2) + BigEndian(2) + "abcdefgh" + end +
                 BigEndian(0x801) + BigEndian(2) + std::string("\1\2"));
  corpus.Add("cifar10", "one.bin", std::string(1, '\3') + std::string(3072, 'x'));
  std::vector<uint8_t> packed = Gzip({'a', 'b', 'c', 'a', 'b', 'c'});
  const std::string member(packed.begin(), packed.end());
  corpus.Add("gzip", "one_member.gz", member);
  corpus.Add("gzip", "two_members.gz", member + member);
  packed = Gzip(std::vector<uint8_t>(100'000, 0));
  corpus.Add("gzip", "bomb.gz", std::string(packed.begin(), packed.end()));
  const TensorLayout layout = SmallLayout();
  for (const bool has_metadata : {false, true}) {
    const std::string header = EncodeModelHeader(
        layout,
        has_metadata ? ModelMetadata{{"weights_sha256", "0"}, {"run", "demo"}} : ModelMetadata());
    corpus.Add("model_file", has_metadata ? "metadata.safetensors" : "plain.safetensors",
               Raw(uint64_t{header.size()}) + header + std::string(layout.parameters() * 4, '\0'));
  }
}

}  // namespace
}  // namespace slipstream

int main(int argc, char** argv) {
  if (argc != 2) {
    (void)std::fprintf(stderr, "usage: write_seeds DIRECTORY\n");
    return 2;
  }
  const slipstream::Corpus corpus(argv[1]);
  slipstream::AddPushes(corpus);
  slipstream::AddAnswers(corpus);
  slipstream::AddControl(corpus);
  slipstream::AddReports(corpus);
  slipstream::AddStreams(corpus);
  slipstream::AddLocal(corpus);
  slipstream::AddFiles(corpus);
  return 0;
}

#include "tests/support/fake_shard.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace slipstream {
namespace {

void Append(const std::string& bytes, std::vector<float>& values) {
  const size_t before = values.size();
  values.resize(before + bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data() + before, bytes.data(), bytes.size());
}

void AppendInt8(const std::string& bytes, std::vector<float>& values) {
  constexpr size_t kBlockBytes = 4 + 1024;
  for (size_t begin = 0; begin < bytes.size(); begin += kBlockBytes) {
    float scale = 0;
    std::memcpy(&scale, &bytes[begin], sizeof(scale));
    for (size_t i = begin + 4; i < std::min(begin + kBlockBytes, bytes.size()); ++i) {
      values.push_back(static_cast<float>(static_cast<int8_t>(bytes[i])) * scale);
    }
  }
}

std::vector<float> Decoded(const v1::PushChunk& chunk) {
  std::vector<float> values;
  if (chunk.encoding() == v1::INT8) {
    AppendInt8(chunk.values(), values);
    return values;
  }
  if (chunk.encoding() == v1::FP32) {
    Append(chunk.values(), values);
    return values;
  }
  PS_CHECK(chunk.encoding() == v1::BF16);
  std::string bytes;
  for (size_t i = 0; i < chunk.values().size(); i += 2) {
    bytes += std::string(2, '\0') + chunk.values().substr(i, 2);
  }
  Append(bytes, values);
  return values;
}

std::string Encoded(const float* values, size_t count, v1::Encoding encoding) {
  const std::string bytes(reinterpret_cast<const char*>(values), count * sizeof(float));
  if (encoding == v1::FP32) return bytes;
  PS_CHECK(encoding == v1::BF16);
  std::string upper;
  for (size_t i = 0; i < bytes.size(); i += 4) upper += bytes.substr(i + 2, 2);
  return upper;
}

}  // namespace

FakeShard::FakeShard(size_t count, uint64_t shard_map) : shard_map_(shard_map), weights_(count) {
  history_[0] = weights_;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  builder.SetMaxReceiveMessageSize(-1);
  server_ = builder.BuildAndStart();
  PS_CHECK(server_ != nullptr);
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeShard::~FakeShard() { Stop(); }

void FakeShard::Stop() { server_->Shutdown(std::chrono::system_clock::now()); }

void FakeShard::AddFault(Fault fault) {
  MutexLock lock(mutex_);
  faults_.push_back(fault);
}

void FakeShard::RefuseNext(v1::PushOutcome outcome) {
  MutexLock lock(mutex_);
  refusal_ = outcome;
}

void FakeShard::NameWork(std::function<v1::RoundWork(uint64_t)> work) {
  MutexLock lock(mutex_);
  work_ = std::move(work);
}

void FakeShard::GoOn() {
  MutexLock lock(mutex_);
  may_go_on_ = true;
  published_.NotifyAll();
}

void FakeShard::AwaitGoOn(const grpc::ServerContext& context) {
  MutexLock lock(mutex_);
  while (!may_go_on_ && !context.IsCancelled()) {
    published_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
  }
}

void FakeShard::MoveOn() {
  MutexLock lock(mutex_);
  for (float& weight : weights_) weight += 0.25f;
  history_[++version_] = weights_;
}

void FakeShard::SetVersion(uint64_t version) {
  MutexLock lock(mutex_);
  version_ = version;
  published_.NotifyAll();
}

void FakeShard::ReturnTo(uint64_t version) {
  MutexLock lock(mutex_);
  ++generation_;
  version_ = version;
  weights_ = history_.at(version);
  last_sequence_ = 0;
  published_.NotifyAll();
}

void FakeShard::Drain() {
  MutexLock lock(mutex_);
  is_drained_ = true;
  published_.NotifyAll();
}

std::vector<float> FakeShard::weights() const {
  MutexLock lock(mutex_);
  return weights_;
}

std::vector<float> FakeShard::weights_of(uint64_t version) const {
  MutexLock lock(mutex_);
  return history_.at(version);
}

uint64_t FakeShard::version() const {
  MutexLock lock(mutex_);
  return version_;
}

std::vector<FakeShard::Push> FakeShard::taken() const {
  MutexLock lock(mutex_);
  return taken_;
}

int FakeShard::received() const {
  MutexLock lock(mutex_);
  return received_;
}

uint64_t FakeShard::values_received() const {
  MutexLock lock(mutex_);
  return values_received_;
}

std::vector<v1::PullRequest> FakeShard::pulls() const {
  MutexLock lock(mutex_);
  return pulls_;
}

grpc::Status FakeShard::Initialize(grpc::ServerContext*,
                                   grpc::ServerReader<v1::InitializeRequest>* reader,
                                   v1::InitializeReply*) {
  std::vector<float> values;
  v1::InitializeRequest request;
  uint64_t count = 0;
  while (reader->Read(&request)) {
    if (request.has_header()) count = request.header().count();
    if (request.offset() != values.size()) return {grpc::INVALID_ARGUMENT, "offset"};
    Append(request.values(), values);
  }
  MutexLock lock(mutex_);
  if (count != weights_.size() || values.size() != count) return {grpc::INVALID_ARGUMENT, "count"};
  weights_ = std::move(values);
  history_[version_] = weights_;
  return grpc::Status::OK;
}

v1::WeightsHeader FakeShard::Header() const {
  v1::WeightsHeader header;
  header.set_version(version_);
  header.set_generation(generation_);
  if (is_in_step_) header.mutable_stamp()->set_number(version_);
  header.set_count(weights_.size());
  if (work_) *header.mutable_work() = work_(version_);
  return header;
}

template <typename Message, typename Write>
void FakeShard::WriteWeights(Message first, uint32_t chunk_bytes, v1::Encoding encoding,
                             const std::vector<float>& weights, const Write& write) {
  const size_t step = chunk_bytes / sizeof(float);
  Message message = std::move(first);
  for (size_t offset = 0; offset < weights.size(); offset += step) {
    const size_t count = std::min(step, weights.size() - offset);
    message.set_offset(offset);
    message.set_encoding(encoding);
    message.set_values(Encoded(weights.data() + offset, count, encoding));
    write(message);
    message.Clear();
  }
}

grpc::Status FakeShard::Pull(grpc::ServerContext* context, const v1::PullRequest* request,
                             grpc::ServerWriter<v1::WeightsChunk>* writer) {
  v1::WeightsChunk first;
  std::vector<float> weights;
  {
    MutexLock lock(mutex_);
    pulls_.push_back(*request);
    if (request->shard_map() != shard_map_) return {grpc::FAILED_PRECONDITION, "shard map"};
    if (request->min_generation() > generation_) return {grpc::UNAVAILABLE, "RETRY_LATER"};
    const auto is_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return version_ >= request->min_version() || generation_ > request->min_generation() ||
             is_drained_;
    };
    while (!is_there() && !context->IsCancelled()) {
      published_.WaitUntil(mutex_, std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
    }
    *first.mutable_header() = Header();
    weights = weights_;
  }
  if (moves_on_within_pull_.exchange(false)) {
    first.set_values(weights.data(), request->chunk_bytes());
    writer->Write(first);
    MoveOn();
    return {grpc::UNAVAILABLE, "broken"};
  }
  WriteWeights(first, request->chunk_bytes(), request->weights_encoding(), weights,
               [&](const v1::WeightsChunk& chunk) { writer->Write(chunk); });
  return grpc::Status::OK;
}

grpc::Status FakeShard::Exchange(grpc::ServerContext* context, Stream* stream) {
  Push push;
  size_t left = 0;
  v1::PushChunk chunk;
  while (stream->Read(&chunk)) {
    grpc::Status status = Receive(chunk, push, left);
    if (status.ok() && left == 0) status = Answer(context, std::move(push), stream);
    if (!status.ok()) return status;
  }
  return grpc::Status::OK;
}

grpc::Status FakeShard::Receive(const v1::PushChunk& chunk, Push& push, size_t& left) {
  if (chunk.has_header()) {
    push = {chunk.header(), std::vector<float>(chunk.header().count())};
    left = push.values.size();
  }
  const std::vector<float> values = Decoded(chunk);
  const size_t count = values.size();
  if (chunk.offset() + count > push.values.size()) return {grpc::INVALID_ARGUMENT, "offset"};
  std::ranges::copy(values, push.values.begin() + static_cast<std::ptrdiff_t>(chunk.offset()));
  push.offsets.push_back(chunk.offset());
  if (chunk.has_clip()) push.clip = chunk.clip();
  if (!chunk.absent().empty()) push.absent = TensorSet(chunk.absent());
  left -= count;
  MutexLock lock(mutex_);
  values_received_ += count;
  return grpc::Status::OK;
}

v1::PushReply FakeShard::Take(Push push) {
  v1::PushReply reply;
  if (push.header.generation() < generation_) {
    reply.set_outcome(v1::TOO_STALE);
  } else if (push.header.sequence() <= last_sequence_) {
    reply.set_outcome(v1::DUPLICATE);
    reply.set_first_outcome(v1::APPLIED);
  } else if (push.header.sequence() > last_sequence_ + 1) {
    reply.set_outcome(v1::OUT_OF_SEQUENCE);
  } else {
    last_sequence_ = push.header.sequence();
    for (size_t i = 0; i < push.values.size(); ++i) weights_[i] -= push.values[i];
    history_[++version_] = weights_;
    published_.NotifyAll();
    taken_.push_back(std::move(push));
    reply.set_outcome(v1::APPLIED);
  }
  reply.set_version(version_);
  reply.set_generation(generation_);
  return reply;
}

grpc::Status FakeShard::Answer(grpc::ServerContext* context, Push push, Stream* stream) {
  const v1::PushHeader header = push.header;
  v1::ExchangeReply reply;
  std::vector<float> weights;
  std::optional<Fault> fault;
  {
    MutexLock lock(mutex_);
    ++received_;
    if (!faults_.empty()) {
      fault = faults_.front();
      faults_.pop_front();
    }
    if (fault == Fault::kBreakBeforeTaking) return {grpc::UNAVAILABLE, "broken"};
    if (fault == Fault::kRefuseForLackOfMemory) return {grpc::RESOURCE_EXHAUSTED, "no memory"};
    if (fault == Fault::kRetryLater) {
      reply.mutable_push()->set_outcome(v1::RETRY_LATER);
      reply.mutable_push()->set_retry_after_ms(1);
    } else if (refusal_) {
      reply.mutable_push()->set_outcome(*std::exchange(refusal_, std::nullopt));
    } else {
      *reply.mutable_push() = Take(std::move(push));
    }
    if (fault == Fault::kBreakAfterTaking) return {grpc::UNAVAILABLE, "broken"};
    if (header.pull() && reply.push().outcome() < v1::FENCED) {
      *reply.mutable_header() = Header();
      weights = weights_;
    }
  }
  if (fault == Fault::kAnswerNever) {
    v1::PushChunk ignored;
    while (!context->IsCancelled() && stream->Read(&ignored)) continue;
    return grpc::Status::CANCELLED;
  }
  const bool breaks = fault == Fault::kBreakWithinWeights || fault == Fault::kMoveOnWithinWeights ||
                      fault == Fault::kFenceWithinWeights || fault == Fault::kReturnWithinWeights;
  if (breaks && !weights.empty()) {
    const size_t first = header.chunk_bytes() / sizeof(float);
    reply.set_values(weights.data(), first * sizeof(float));
    stream->Write(reply);
    if (fault == Fault::kMoveOnWithinWeights) MoveOn();
    if (fault == Fault::kFenceWithinWeights) RefuseNext(v1::FENCED);
    if (fault == Fault::kReturnWithinWeights) ReturnTo(0);
    return {grpc::UNAVAILABLE, "broken"};
  }
  if (weights.empty()) {
    stream->Write(reply);
  } else {
    WriteWeights(reply, header.chunk_bytes(), header.weights_encoding(), weights,
                 [&](const v1::ExchangeReply& message) {
                   stream->Write(message);
                   const bool is_first = message.has_push();
                   if (is_first && fault == Fault::kPauseWithinWeights) AwaitGoOn(*context);
                 });
  }
  return grpc::Status::OK;
}

}  // namespace slipstream

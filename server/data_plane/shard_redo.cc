// The part of Shard that goes on, in another process, from a checkpoint and from the events that
// were recorded behind it.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/core/run_stages.h"
#include "server/core/shard/shard_options.h"
#include "server/core/shard/shard_return.h"
#include "server/core/shard/shard_state_fault.h"
#include "server/data_plane/shard.h"

namespace slipstream {
namespace {

absl::Status NoSuchEvent(const char* why) {
  return absl::DataLossError(fmt::format("no shard in this state records this event: {}", why));
}

absl::Status Unreadable() { return NoSuchEvent("its bytes make no sense"); }

/// Names what does not fit in the jobs that were unfinished when a log went on behind the save:
/// they make the versions that were decided and not published.
std::string JobsFault(const ShardSave& saved) {
  Version made = saved.state.versions.published();
  uint64_t bytes = saved.state.intake.bytes_queued();
  for (const UnfinishedJob& job : saved.unfinished) {
    if (job.payload_bytes > bytes) return "its jobs have more bytes than the shard had taken";
    bytes -= job.payload_bytes;
    if (!job.version.has_value()) continue;
    if (*job.version != Next(made)) {
      return fmt::format("a job makes version {} behind version {}", Value(*job.version),
                         Value(made));
    }
    made = *job.version;
  }
  if (made == saved.state.versions.decided()) return "";
  return fmt::format("its jobs end with version {}, and {} is decided", Value(made),
                     Value(saved.state.versions.decided()));
}

}  // namespace

std::string Shard::FaultOf(const ShardSave& saved, uint64_t values) const {
  const ShardMachine::Options options = ShardOptionsOf(options_.run, options_.shard);
  if (std::string fault = slipstream::FaultOf(saved.state, options); !fault.empty()) return fault;
  if (saved.state.run.plan->count != values) {
    return fmt::format("it is of {} values, and the shard has {}", saved.state.run.plan->count,
                       values);
  }
  if (saved.log == 0) return "";  // Its calls and jobs ended with its process.
  if (std::string fault = JobsFault(saved); !fault.empty()) return fault;
  if (!keeps_bases_) return "";
  for (const Version base : saved.state.members.VersionsGiven()) {
    if (base == saved.state.versions.decided() || saved.bases.contains(base)) continue;
    return fmt::format("a worker computes from version {}, whose weights it does not have",
                       Value(base));
  }
  return "";
}

void Shard::BeginRedo(ShardSave saved, ArrayBuffers arrays) {
  redone_from_ = saved.state.versions.decided();
  training_state_->Restore(std::move(arrays), saved.values);
  machine_.Restore(std::move(saved.state));
  for (auto& [version, weights] : saved.bases) kept_[version] = NewKept(std::move(weights));
  kept_[*redone_from_] = NewKept(training_state_->newest());
  if (keeps_bases_) {
    for (const Version version : machine_.BasesKept()) bases_[version] = kept_.at(version).weights;
  }
  for (const UnfinishedJob& job : saved.unfinished) jobs_.emplace_back(*training_state_, job);
}

absl::Status Shard::Redo(std::string_view event,
                         std::vector<std::shared_ptr<const ReceivedValues>> payload) {
  ArchiveReader archive(event);
  ShardEvent kind{};
  archive(kind);
  if (!archive.ok()) return Unreadable();
  switch (kind) {
    case ShardEvent::kOrders:
      return RedoOrders(archive);
    case ShardEvent::kCoordinatorAsked:
      return RedoAs(archive, &Shard::OnCoordinatorAsked);
    case ShardEvent::kCoordinatorAnswered:
      return RedoAs(archive, &Shard::OnCoordinatorAnswered);
    case ShardEvent::kInitialWeights:
      return NoSuchEvent("initial weights were put in place, which the log does not have");
    case ShardEvent::kPull:
      return RedoAs(archive, &Shard::TakePull);
    case ShardEvent::kPullDone:
      return RedoPullDone(archive);
    case ShardEvent::kPushHeader:
      return RedoAs(archive, &Shard::TakePushHeader);
    case ShardEvent::kDraftDropped:
      return RedoAs(archive, &Shard::TakeDroppedDraft);
    case ShardEvent::kPush:
      return RedoPush(archive, std::move(payload));
    case ShardEvent::kPushAbandoned:
      return RedoAbandonedPush(archive);
    case ShardEvent::kCancelled:
      return RedoAs(archive, &Shard::Cancel);
    case ShardEvent::kJobDone:
      return RedoJob(archive);
    case ShardEvent::kProcessEnd:
      return RedoAs(archive, &Shard::TakeProcessEnd);
  }
  return NoSuchEvent("its kind is unknown");
}

template <typename Result, typename... Arguments>
absl::Status Shard::RedoAs(ArchiveReader& archive, Result (Shard::*take)(Arguments...)) {
  std::tuple<std::remove_cvref_t<Arguments>...> arguments;
  std::apply([&archive](auto&... each) { archive(each...); }, arguments);
  if (!archive.is_complete()) return Unreadable();
  std::apply([this, take](const auto&... each) { (this->*take)(each...); }, arguments);
  return absl::OkStatus();
}

absl::Status Shard::RedoOrders(ArchiveReader& archive) {
  ServerOrders orders;
  archive(orders);
  if (!archive.is_complete()) return Unreadable();
  // A stage that does not begin at once begins when the shard has drained.
  std::vector<RunStage> stages = orders.stages;
  if (stages.empty()) stages = machine_.state().run.stages;
  if (stages.empty()) stages = StagesOf(options_.run);
  const bool is_open = machine_.round().contributions() > 0;
  for (size_t i = machine_.stage() + 1; is_open && i <= orders.stage && i < stages.size(); ++i) {
    if (stages[i].begins_at_once) continue;
    return NoSuchEvent("a stage began while gradients were in the open round");
  }
  TakeOrders(orders);
  return absl::OkStatus();
}

absl::Status Shard::RedoAbandonedPush(ArchiveReader& archive) {
  PushId push{};
  PushHeader header;
  archive(push, header);
  if (!archive.is_complete()) return Unreadable();
  if (!HasTaken(header)) return NoSuchEvent("a push was given up that nobody has begun");
  TakeAbandonedPush(push, header);
  return absl::OkStatus();
}

bool Shard::HasTaken(const PushHeader& header) const {
  return header.count <= machine_.bytes_queued() / sizeof(float);
}

absl::Status Shard::RedoPullDone(ArchiveReader& archive) {
  CallId call{};
  Reader reader;
  archive(call, reader);
  if (!archive.is_complete()) return Unreadable();
  const bool is_under_way = reader.has_value()
                                ? machine_.members().PullsOf(reader->first, reader->second) > 0
                                : machine_.state().reader_pulls.Contains(call);
  if (!is_under_way) return NoSuchEvent("a pull ended that is not under way");
  FinishPull(call, reader);
  return absl::OkStatus();
}

absl::Status Shard::RedoPush(ArchiveReader& archive,
                             std::vector<std::shared_ptr<const ReceivedValues>> payload) {
  CallId call{};
  ShardMachine::PushFacts facts;
  archive(call, facts);
  if (!archive.is_complete() || facts.values_received != facts.header.count) return Unreadable();
  if (!HasTaken(facts.header)) return NoSuchEvent("a push was complete that nobody has begun");
  PushAssembly push(std::move(facts), std::move(payload));
  return TakePush(call, push).status();
}

absl::Status Shard::RedoJob(ArchiveReader& archive) {
  if (!archive.is_complete()) return Unreadable();
  if (jobs_.empty()) return NoSuchEvent("a job was done that nobody has ordered");
  DoFirstJob();
  return absl::OkStatus();
}

void Shard::DoFirstJob() {
  ShardJob job = TakeFirstJob();
  job.Run();
  FinishJob(std::move(job));
}

void Shard::EndRedo() {
  // Nobody waits any more. In particular, no weights are given that the checkpoint does not have.
  const std::vector<PendingCall> waiting = machine_.state().waiting.all();
  for (const PendingCall& call : waiting) Cancel(call.call);
  // The versions of these jobs came with the checkpoint.
  while (!jobs_.empty() && jobs_.front().was_done_before()) DoFirstJob();
  EndedProcess end = {.oldest_kept = OldestWithWeights(), .bytes_held = 0, .saved = redone_from_};
  for (const auto& [push, payload] : held_) end.bytes_held += payload.bytes;
  for (const ShardJob& job : jobs_) end.bytes_held += job.payload_bytes();
  redone_from_.reset();
  redone_save_.reset();
  is_returning_ = false;
  TakeProcessEnd(end);
}

Version Shard::OldestWithWeights() const {
  auto oldest = kept_.find(machine_.published());
  while (oldest != kept_.begin()) {
    const auto before = std::prev(oldest);
    if (Next(before->first) != oldest->first || before->second.weights == nullptr) break;
    oldest = before;
  }
  return std::max(oldest->first, machine_.oldest_kept());
}

void Shard::TakeProcessEnd(const EndedProcess& end) {
  ShardOutput output = machine_.OnProcessEnd(end);
  kept_.erase(kept_.begin(), kept_.lower_bound(machine_.oldest_kept()));
  Record(ShardEvent::kProcessEnd, end);
  Absorb(std::move(output));
}

}  // namespace slipstream

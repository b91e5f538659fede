#ifndef SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_REDO_FIXTURE_H_
#define SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_REDO_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/archive.h"
#include "server/data_plane/shard.h"
#include "tests/server/data_plane/first_orders.h"

namespace slipstream {

/// Keeps the events of a shard, as its log does.
class EventList final : public ShardRecorder {
 public:
  struct Event {
    std::string event;
    std::vector<std::shared_ptr<const ReceivedValues>> payload;
  };

  void Record(std::string event,
              std::vector<std::shared_ptr<const ReceivedValues>> payload) override {
    if (begins_.empty()) return;
    events_.push_back({std::move(event), std::move(payload)});
  }
  uint64_t BeginSegment() override {
    begins_.push_back(events_.size());
    return begins_.size();
  }

  size_t size() const { return events_.size(); }

  /// Returns the number of events before a segment.
  size_t BeginOf(uint64_t segment) const { return begins_.at(segment - 1); }

  /// Returns the events from a segment on.
  std::span<const Event> From(uint64_t segment) const {
    return std::span(events_).subspan(BeginOf(segment));
  }

  /// Forgets the events behind the first `events`, as a crash does.
  void CutTo(size_t events) {
    events_.resize(events);
    for (size_t& begin : begins_) begin = std::min(begin, events);
  }

 private:
  std::vector<Event> events_;
  std::vector<size_t> begins_;
};

/// A save as it lies on a disk.
struct SavedShard {
  explicit SavedShard(const ShardSave& save)
      : state(EncodeSave(save)), version(save.state.versions.decided()), log(save.log) {
    for (const auto& [name, values] : save.values.arrays) arrays.push_back(Copy(values));
    for (const auto& [base, weights] : save.bases) bases[base] = Copy(weights);
  }

  static std::vector<float> Copy(const Weights& weights) {
    return {weights->values().begin(), weights->values().end()};
  }

  std::string state;
  std::vector<std::vector<float>> arrays;
  std::map<Version, std::vector<float>> bases;
  Version version{};
  uint64_t log = 0;
};

/// The run of which the shard is the only one.
struct RecordedRun {
  static constexpr uint64_t kRun = 5;
  static constexpr size_t kCount = 40;
  static constexpr uint64_t kGrant = 1;

  static Identity IdentityOf(const Member& member) {
    return {kRun, member.worker, member.incarnation};
  }

  /// Returns the orders that the shard gets first.
  static ServerOrders OrdersFor(uint32_t members) {
    return FirstOrders(kRun, kCount, members, kGrant);
  }

  static absl::Status GiveInitialWeights(const ServerOrders& orders, std::span<const float> values,
                                         Shard& shard) {
    const InitializeHeader header = {orders.initializer, orders.grant,
                                     orders.model->shard_map.fingerprint(), kCount};
    const auto buffer = shard.BeginInitialize(header);
    if (!buffer.ok()) return buffer.status();
    std::ranges::copy(values, (*buffer)->values().begin());
    Weights weights = *buffer;
    return shard.FinishInitialize(header, weights);
  }

  /// Returns a complete push, whose values came in two chunks. `begun` admitted it.
  static PushAssembly PushOf(const PushHeader& header, const std::vector<float>& values,
                             const BegunPush& begun) {
    PushAssembly push(header, begun.push, begun.draft);
    const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
    Add(values.size() / 2, {middle, values.end()}, push);
    Add(0, {values.begin(), middle}, push);
    return push;
  }

 private:
  static void Add(uint64_t offset, std::span<const float> values, PushAssembly& push) {
    ReceivedValues::Buffer buffer = ReceivedValues::MakeBuffer(values.size());
    std::ranges::copy(values, buffer.to.begin());
    EXPECT_TRUE(push.Add(offset, std::move(buffer.values)).ok());
  }
};

/// Begins to redo a log from the save, in a shard that knows nothing yet.
inline void BeginRedo(const SavedShard& saved, const ModelOrders& model, Shard& shard) {
  ArrayBuffers arrays = shard.NewArrays(model);
  ASSERT_EQ(arrays.size(), saved.arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    std::ranges::copy(saved.arrays[i], arrays[i].second->values().begin());
  }
  absl::StatusOr<ShardSave> save = DecodeSave(saved.state);
  ASSERT_TRUE(save.ok()) << save.status();
  ASSERT_EQ(save->log, saved.log);
  ASSERT_EQ(save->bases.size(), saved.bases.size());
  for (auto& [version, weights] : save->bases) {
    const std::shared_ptr<FloatBuffer> buffer = shard.training_state()->NewWeights();
    std::ranges::copy(saved.bases.at(version), buffer->values().begin());
    weights = buffer;
  }
  shard.BeginRedo(*std::move(save), std::move(arrays));
}

/// Tells the shard the events.
inline void Redo(std::span<const EventList::Event> events, Shard& shard) {
  for (size_t i = 0; i < events.size(); ++i) {
    const absl::Status redone = shard.Redo(events[i].event, events[i].payload);
    ASSERT_TRUE(redone.ok()) << "event " << i << ": " << redone;
  }
}

inline bool AreSameBits(const Weights& a, const Weights& b) {
  return a->values().size() == b->values().size() &&
         std::memcmp(a->values().data(), b->values().data(), a->values().size_bytes()) == 0;
}

/// Expects the same of both: the state, the weights, and what later updates depend on.
inline void ExpectSame(Shard& a, Shard& b) {
  const auto state_of = [](const Shard& shard) {
    ArchiveWriter writer;
    writer(shard.machine().state(), shard.machine().round().contributions(),
           shard.machine().round().bases(), shard.machine().round().examples());
    return writer.Take();
  };
  ASSERT_EQ(state_of(a), state_of(b));
  ASSERT_EQ(a.payloads_held(), b.payloads_held());
  ASSERT_TRUE(AreSameBits(a.weights(), b.weights()));
  const SavedValues values = a.training_state()->Save();
  const SavedValues same = b.training_state()->Save();
  ASSERT_EQ(values.updates, same.updates);
  ASSERT_EQ(values.scalars, same.scalars);
  for (size_t i = 0; i < values.arrays.size(); ++i) {
    ASSERT_TRUE(AreSameBits(values.arrays[i].second, same.arrays[i].second))
        << values.arrays[i].first;
  }
  ASSERT_EQ(a.bases().size(), b.bases().size());
  for (const auto& [version, weights] : a.bases()) {
    ASSERT_TRUE(b.bases().contains(version));
    ASSERT_TRUE(AreSameBits(weights, b.bases().at(version))) << Value(version);
  }
}

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SERVER_DATA_PLANE_SHARD_REDO_FIXTURE_H_

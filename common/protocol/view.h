#ifndef SLIPSTREAM_COMMON_PROTOCOL_VIEW_H_
#define SLIPSTREAM_COMMON_PROTOCOL_VIEW_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/ids.h"

namespace slipstream {

/// The phases of a run, in order; a run may fail in any of them. The numbers are those of
/// proto/status.proto.
enum class Phase : uint8_t {
  kWaitingForServers = 1,
  kWaitingForWorkers = 2,
  kInitializing = 3,
  kTraining = 4,
  /// No work is left; open rounds close with what they hold.
  kDraining = 5,
  /// The final weights are being measured.
  kEvaluating = 6,
  kFinished = 7,
  kFailed = 8,
};

/// Returns the name that it has in the messages, in status and in the log.
constexpr std::string_view Name(Phase phase) {
  switch (phase) {
    case Phase::kWaitingForServers:
      return "WAITING_FOR_SERVERS";
    case Phase::kWaitingForWorkers:
      return "WAITING_FOR_WORKERS";
    case Phase::kInitializing:
      return "INITIALIZING";
    case Phase::kTraining:
      return "TRAINING";
    case Phase::kDraining:
      return "DRAINING";
    case Phase::kEvaluating:
      return "EVALUATING";
    case Phase::kFinished:
      return "FINISHED";
    case Phase::kFailed:
      return "FAILED";
  }
  return "UNKNOWN";
}

struct Member {
  WorkerId worker{};
  Incarnation incarnation{};

  /// Founding members, and those that have the place of a lost member, owe every hardsync round
  /// from the first one of theirs on; others owe rounds from their first pull on.
  bool founding = false;

  friend bool operator==(const Member&, const Member&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.worker, self.incarnation, self.founding);
  }
};

/// A numbered set of members, made by the coordinator. Every shard sees the same views, in order.
struct View {
  ViewNumber number{};

  /// The members in order of worker ids, each once.
  std::vector<Member> members;

  const Member* Find(WorkerId worker) const {
    for (const Member& member : members) {
      if (member.worker == worker) return &member;
    }
    return nullptr;
  }

  friend bool operator==(const View&, const View&) = default;

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.number, self.members);
  }
};

}  // namespace slipstream

#endif  // SLIPSTREAM_COMMON_PROTOCOL_VIEW_H_

#ifndef SLIPSTREAM_SERVER_CORE_SHARD_PUSH_INTAKE_H_
#define SLIPSTREAM_SERVER_CORE_SHARD_PUSH_INTAKE_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "server/core/shard/round.h"
#include "server/core/shard/shard_output.h"

namespace slipstream {

/// The pushes that a shard has admitted: their names, the payload bytes that arrive or are held,
/// and the update that is being made of one push while it arrives.
///
/// Not thread-safe: one owner.
class PushIntake {
 public:
  /// Invariant: a draft is based on the version decided, which is published, and the open round is
  /// empty.
  struct Draft {
    PushId push{};
    Forecast forecast;

    template <typename Archive, typename Self>
    static void Parts(Archive& archive, Self& self) {
      archive(self.push, self.forecast);
    }
  };

  /// Returns a name for a push with a payload of so many bytes.
  PushId Admit(uint64_t bytes) {
    bytes_queued_ += bytes;
    return PushId{next_push_++};
  }

  /// Notes that payload bytes are free again.
  void Release(uint64_t bytes) {
    PS_CHECK(bytes <= bytes_queued_);
    bytes_queued_ -= bytes;
  }
  uint64_t bytes_queued() const { return bytes_queued_; }

  const std::optional<Draft>& draft() const { return draft_; }
  void BeginDraft(PushId push, const Forecast& forecast) { draft_ = {push, forecast}; }
  std::optional<Draft> TakeDraft() { return std::exchange(draft_, std::nullopt); }

  /// Ends the draft if it is one of this push, or of any other one.
  void EndDraftOf(PushId push) {
    if (draft_.has_value() && draft_->push == push) draft_.reset();
  }
  void EndDraftBeside(PushId push) {
    if (draft_.has_value() && draft_->push != push) draft_.reset();
  }

  /// Notes that the process has ended. `bytes_held`: the payload bytes that outlast it.
  void EndProcess(uint64_t bytes_held) {
    draft_.reset();
    bytes_queued_ = bytes_held;
  }

  template <typename Archive, typename Self>
  static void Parts(Archive& archive, Self& self) {
    archive(self.next_push_, self.bytes_queued_, self.draft_);
  }

 private:
  uint64_t next_push_ = 1;
  uint64_t bytes_queued_ = 0;
  std::optional<Draft> draft_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_SHARD_PUSH_INTAKE_H_

#ifndef SLIPSTREAM_SERVER_CORE_COORDINATOR_READERS_H_
#define SLIPSTREAM_SERVER_CORE_COORDINATOR_READERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/orders.h"

namespace slipstream {

/// The report of a reader about itself.
struct ReaderReport {
  /// A random number, one per reader, that is not 0.
  uint64_t instance = 0;

  /// Where the report came from, in whatever form; empty if nobody has to be bounded there.
  std::string address;

  /// For people: the host, and what the reader is.
  std::string host;
  std::string name;

  /// The version of shard 0 that the reader holds, if any, and the publisher's label of it.
  std::optional<Version> held;
  uint64_t label = 0;

  /// The newest version of shard 0 that the reader has heard of.
  Version newest{};

  /// The most versions that the reader wants to lag behind; empty if it does not matter.
  std::optional<uint64_t> lag_max;

  /// The numbers of states that it has taken, and of those that it began to take and lost because
  /// the shards did not keep them; the bytes of values that came, and those of a second.
  uint64_t taken = 0;
  uint64_t lost = 0;
  uint64_t bytes = 0;
  double bytes_per_second = 0;

  /// The lag when a state was taken: the sum and the most over all.
  uint64_t lag_sum = 0;
  uint64_t lag_highest = 0;

  bool leaves = false;
};

/// The readers of a run, who push nothing, and how far each is behind. A reader is there from its
/// first report until it leaves, or until it has been silent for longer than its lease.
///
/// Not thread-safe: one owner, which serialises calls.
class Readers {
 public:
  static constexpr size_t kReadersMax = 1024;

  /// The most that come from one address, so that others find a place.
  static constexpr size_t kReadersOfAddressMax = 256;
  static constexpr size_t kTextBytesMax = 256;

  /// How long a reader that fell silent is still listed.
  static constexpr absl::Duration kGoneListed = absl::Minutes(1);

  struct Reader {
    ReaderReport report;
    absl::Time last_heard;
    bool is_live = true;

    /// Since when it has been known, while the reader held its version, that there is a newer one;
    /// empty if there is none.
    std::optional<absl::Time> behind_since;

    /// The newest version when the reader came.
    Version newest_before{};
  };

  /// `are_awaited`: workers wait for readers that would otherwise lag behind by more than they
  /// want to.
  explicit Readers(absl::Duration lease, bool are_awaited = false)
      : lease_(lease), are_awaited_(are_awaited) {}

  /// Takes a report, and returns the number by which people know the reader, from 0; of one that
  /// leaves and is not known, the number has no meaning. Fails with INVALID_ARGUMENT, naming the
  /// field, or RESOURCE_EXHAUSTED if there are too many.
  absl::StatusOr<uint64_t> OnReport(const ReaderReport& report, absl::Time now);

  /// Notes that shard 0 has published this version, and perhaps newer ones.
  void OnNewest(Version version, absl::Time now);

  /// Notes that shard 0 has gone back to this version.
  void OnReturn(Version version) { newest_ = version; }

  /// Notes who has been silent for too long, and forgets who has been gone for a while.
  void Tick(absl::Time now);

  /// Does not count `gap` as silence: for so long this process could hear nobody.
  void Forgive(absl::Duration gap);

  /// Returns how many versions a reader is behind, by what shard 0 has reported and the reader
  /// itself has heard; 0 while it holds none. A reader's word counts for itself alone.
  uint64_t LagOf(const Reader& reader) const;

  Version newest() const { return newest_; }

  /// Returns the live readers that workers wait for, at most for as many versions each.
  LagLimits Awaited() const;

  /// Returns whether workers wait for this one, where they wait for any, by what is known of its
  /// lag. Before it holds a version, it counts as holding the one that was there when it came.
  bool IsAwaited(const Reader& reader) const;

  /// Returns whether any reader is there.
  bool any_live() const;

  /// Returns the numbers of at most `count` readers: those that are there before those that are
  /// gone, and among them those that are furthest behind.
  std::vector<uint64_t> MostBehind(size_t count) const;

  /// All readers that are there or were lately, by number.
  const std::map<uint64_t, Reader>& readers() const { return readers_; }

 private:
  void NoteLag(Reader& reader, absl::Time now) const;
  absl::Status MakePlace(const std::string& address);

  /// Forgets a reader that is gone, of this address or of any if it is empty. Returns whether there
  /// was one.
  bool ForgetOneThatIsGone(const std::string& address);

  // Constant after construction.
  const absl::Duration lease_;
  const bool are_awaited_;

  std::map<uint64_t, Reader> readers_;
  std::map<uint64_t, uint64_t> numbers_;  // By instance.
  uint64_t next_ = 0;
  Version newest_{};
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CORE_COORDINATOR_READERS_H_

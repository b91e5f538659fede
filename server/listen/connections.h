#ifndef SLIPSTREAM_SERVER_LISTEN_CONNECTIONS_H_
#define SLIPSTREAM_SERVER_LISTEN_CONNECTIONS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/log_line.h"
#include "common/base/mutex.h"
#include "common/files/file_descriptor.h"
#include "server/listen/audit_log.h"
#include "server/listen/peer_name.h"

namespace slipstream {

class Caller;

/// Keeps the TCP connections of a server and who uses each of them, so that the cost of strangers
/// is bounded and members find a place, however many strangers connect.
///
/// A connection is a *stranger's* until a call over it is a *member's*, which takes part in the
/// run, or a *guest's*, which only reads. Strangers have few places, and further connections wait
/// to be accepted. A connection whose peer does not say in time who it is, is closed. Guests have
/// more places, and members their own. A peer that is not a member may send only so many bytes and
/// make only so many calls, or its connection is closed, too. A member's is closed if far more came
/// over it than the messages that were taken from it. Caller says how a peer's claims are checked.
///
/// Connections that came another way, for instance through a local socket, are unknown here and
/// unbounded.
///
/// Thread-safe: guarded by its own mutex. Must outlive its callers and the loop that accepts.
class Connections {
 public:
  struct Options {
    /// The most strangers at a time. Each costs at most some 2 MiB, with all the calls that it may
    /// have open.
    size_t strangers_max = 64;

    /// The most connections that get a place within `newcomer_time`, not counting those that have
    /// said who they are. A worker says so within milliseconds. The limit bounds how many attackers
    /// can flood before the first flood is noticed.
    size_t newcomers_max = 16;
    absl::Duration newcomer_time = absl::Milliseconds(500);

    /// The most strangers, and the most guests, while there is an alarm: for `alarm_time` after a
    /// connection that was not a member's has overdone it. Either it was closed because it sent too
    /// much or made too many calls, or it went as a stranger after it had sent more than
    /// `bytes_of_stranger`. Guests that are there already stay. An alarm comes too late for the
    /// flood that raised it, and limits those that follow.
    size_t others_max_in_alarm = 8;
    absl::Duration alarm_time = absl::Minutes(1);
    uint64_t bytes_of_stranger = uint64_t{4} << 10;

    /// How long a connection or a call may take to say who it is for before it is ended.
    absl::Duration introduction_time = absl::Seconds(5);

    /// The same while strangers have all their places and others wait.
    absl::Duration pressed_time = absl::Seconds(2);

    /// How long a stranger's place is taken at least, unless it says who it is: so no more than 64
    /// a second fail in their handshakes. For each byte that came over the connection, the place is
    /// taken for `place_time_of_byte` more, up to `place_time_max`. So the number of bytes that all
    /// strangers send in a second is bounded, and by it the number of frames and calls. A guest
    /// that was closed because it sent or asked for too much takes a place in the same way.
    absl::Duration place_time = absl::Seconds(1);
    absl::Duration place_time_of_byte = absl::Microseconds(2500);
    absl::Duration place_time_max = absl::Seconds(5);

    size_t guests_max = 96;

    /// How long a guest's connection may be without a call before it is closed and its place is
    /// free.
    absl::Duration guest_idle_time = absl::Minutes(1);
    size_t connections_of_member_max = 16;

    /// The most calls that a connection may have open if it is not a member's.
    size_t calls_of_others_max = 32;

    /// The calls that such a connection may make at once, and in each second. A stranger's may make
    /// fewer, as one of its first calls says who it is.
    double calls_at_once = 100;
    double calls_at_once_of_stranger = 16;
    double calls_per_second = 20;

    /// The most bytes that may have come over a connection when its turn comes, if it had to wait:
    /// a client that has not heard from the server yet has little to say. A connection over which
    /// more has come is closed and takes no place.
    uint64_t bytes_while_waiting = uint64_t{4} << 10;

    /// The bytes that such a connection may send at once, in each second, and for each byte that it
    /// is sent, because a reader has to acknowledge what it reads. A guest, who asks for little and
    /// has made its handshake, may send fewer at once.
    uint64_t bytes_at_once = uint64_t{16} << 10;
    uint64_t bytes_at_once_of_guest = uint64_t{4} << 10;
    uint64_t bytes_per_second = uint64_t{4} << 10;
    double bytes_for_each_sent = 1.0 / 16;

    /// How long, and by how much, a stranger may exceed that: bytes are counted as the kernel takes
    /// them, and an introduction among them is understood only once gRPC has read it.
    absl::Duration bytes_grace_time = absl::Milliseconds(50);
    uint64_t bytes_grace = uint64_t{48} << 10;

    /// The bytes that a member may send at once, and ExpectMessages adds to that. Those
    /// of messages that were taken do not count, nor their share of `bytes_for_each_sent` and
    /// `bytes_around_message` for each, which are the headers and what else goes with a call.
    uint64_t bytes_at_once_of_member = uint64_t{16} << 20;
    uint64_t bytes_around_message = uint64_t{64} << 10;

    /// The bytes that a member may send while it has no call under way: so many, and a quarter of
    /// those of the messages taken before, up to the second number, as there may be bytes of a call
    /// that the server has ended, and gRPC lets more of them come the more there were before. And
    /// for how long more may come: a busy server sees the call in front of them late. The address
    /// of a member that exceeds this or the bound above, or makes more calls without a message than
    /// others may make calls, has no further connections of members for `alarm_time`.
    uint64_t bytes_without_call = uint64_t{1} << 20;
    uint64_t bytes_without_call_max = uint64_t{8} << 20;
    absl::Duration time_without_call = absl::Milliseconds(500);

    std::function<absl::Time()> now;
  };

  /// Fails if the system has no file for it.
  static absl::StatusOr<std::unique_ptr<Connections>> Make(Options options);

  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // For the loop that accepts:

  /// Returns whether another connection may be accepted.
  bool HasPlace();

  /// Notes a connection that was accepted; to be called before gRPC gets it. Fails, and the
  /// connection is to be closed, if the system has no file for it (RESOURCE_EXHAUSTED), or if it
  /// has sent too much while it waited (PERMISSION_DENIED, which Tend logs).
  absl::Status Add(const FileDescriptor& connection, bool has_waited);

  /// Notes which connections have gone, and ends those that are overdue or send too much. To be
  /// called whenever `events` is readable, and again after the time that it returns. One thread
  /// calls it, and runs the callbacks of calls that it ends.
  absl::Duration Tend();
  int events() const { return events_.get(); }

  /// Lets each member have so many more bytes on their way: an honest one sends gradients, of which
  /// gRPC may hold all that was not asked for yet.
  void ExpectMessages(uint64_t bytes);

  /// The log of who was let in over these connections, and who was not.
  AuditLog& audit() { return audit_; }

  struct Counts {
    size_t strangers = 0;
    size_t guests = 0;
    size_t of_members = 0;

    /// How many were closed so far, by why: "silent", "calls", "bytes" and "member".
    std::map<std::string, uint64_t> closed;
  };
  Counts counts();

 private:
  friend class Caller;

  enum class Who : uint8_t { kStranger, kGuest, kMember };

  /// The reasons why connections are closed.
  enum class Reason : uint8_t { kSilent, kCalls, kBytes, kMember };
  static constexpr size_t kReasons = 4;

  /// The bytes that came and went over a connection, as the kernel counts them.
  struct Traffic {
    uint64_t received = 0;
    uint64_t sent = 0;  // And acknowledged.
  };

  /// The used part of an allowance of a connection, which fills up again at some rate.
  struct Used {
    double amount = 0;
    absl::Time since;

    void Add(double more, double refilled, absl::Time now) {
      amount = std::max(amount - refilled, 0.0) + more;
      since = now;
    }
  };

  struct Connection {
    FileDescriptor socket;  // A duplicate of gRPC's, to shut it down from here.
    PeerName name;
    absl::Time accepted;
    Who who = Who::kStranger;
    uint64_t member = 0;  // The member's number, if it is a member's.
    size_t calls = 0;
    absl::Time last_call;    // When a call last began or ended.
    Used calls_made;         // But those of a member that have said who it is.
    Used bytes_sent;         // By the peer, as of `traffic`.
    double bytes_taken = 0;  // From a member in messages since then, with what goes beside them.
    uint64_t messages_bytes = 0;
    // The bytes that a member without a call has sent so far.
    Used bytes_without_call;
    absl::Time within_bound;  // The last time when these were no more than it may send so.
    absl::Time looked_at;
    Traffic traffic;
    absl::Time sends_too_much_since = absl::InfiniteFuture();
    bool has_overdone_it = false;
    bool is_shut_down = false;
  };

  /// The connections that were closed for one reason and have not been logged yet.
  struct Closed {
    uint64_t in_all = 0;  // Those that were logged, too.
    size_t count = 0;
    std::string one_of;
    absl::Time told = absl::InfinitePast();
  };
  using Table = std::map<uint64_t, Connection>;  // By number, in the order of acceptance.

  Connections(Options options, FileDescriptor events, FileDescriptor wake);

  // For Caller:
  uint64_t Enter(Caller& caller, std::string_view peer);  // Returns 0 if unknown.
  void Leave(Caller& caller);
  bool MayCall(uint64_t connection);
  void Introduce(Caller& caller, Who who, uint64_t member);
  void Take(uint64_t connection, size_t bytes);

  bool HasPlace(Who who, uint64_t member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasPlaceLocked(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreePlaces(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Uncount(uint64_t number, const Connection& connection) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(Table::iterator place) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration PlaceTime(const Connection& connection) const;
  void RemoveGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Ends both directions: gRPC sees the end of what it reads and of what it writes, and epoll the
  /// end of both. Throws away what has come and was not read yet.
  void ShutDown(Connection& connection, Reason reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteClosed(const PeerName& name, Reason reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutDownStrangers(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutDownIdleGuests(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Closes connections that have sent too much.
  void ShutDownFloods(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookForFlood(Connection& connection, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Traffic TrafficOf(const FileDescriptor& connection);
  void CountBytes(Connection& connection, absl::Time now) const;
  uint64_t BytesAtOnce(const Connection& connection) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasSentTooMuch(const Connection& connection, uint64_t grace) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtMember(Connection& member, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ShutOut(Connection& member, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RaiseAlarm(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountCall(Connection& connection, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  /// Returns log lines about the connections closed lately, one for each reason.
  std::vector<LogLine> TakeLines(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndSilentCalls(absl::Time now);

  // Constant after construction.
  const Options options_;
  const FileDescriptor events_;  // An epoll that tells which sockets are gone, and of `wake_`.
  const FileDescriptor wake_;    // An eventfd, written when there is a place again.

  AuditLog audit_;
  Mutex mutex_;
  Table connections_ ABSL_GUARDED_BY(mutex_);
  std::map<PeerName, uint64_t> by_name_ ABSL_GUARDED_BY(mutex_);  // The newest of each name.
  uint64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::set<uint64_t> strangers_ ABSL_GUARDED_BY(mutex_);  // The oldest first.
  std::set<uint64_t> guests_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, size_t> of_members_ ABSL_GUARDED_BY(mutex_);
  // When those that came lately came, by number, unless they have said who they are.
  std::map<uint64_t, absl::Time> newcomers_ ABSL_GUARDED_BY(mutex_);
  // When the places that gone strangers still keep become free.
  std::multiset<absl::Time> places_kept_ ABSL_GUARDED_BY(mutex_);
  absl::Time alarm_ends_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  // Until when no further connection from an address is a member's.
  std::map<std::string, absl::Time> shut_out_ ABSL_GUARDED_BY(mutex_);
  absl::Time members_looked_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  uint64_t bytes_expected_ ABSL_GUARDED_BY(mutex_) = 0;
  // Callers still unknown, oldest first.
  std::list<Caller*> silent_ ABSL_GUARDED_BY(mutex_);
  std::array<Closed, kReasons> closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_LISTEN_CONNECTIONS_H_

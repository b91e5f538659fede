#include "server/listen/connections.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include "common/base/check.h"
#include "common/base/duration_text.h"
#include "common/base/log_line.h"
#include "common/log/log.h"
#include "server/listen/caller.h"
#include "server/listen/end_call.h"

namespace slipstream {
namespace {

constexpr uint64_t kWake = 0;  // No connection has this number.

constexpr absl::Duration kTellInterval = absl::Seconds(10);

// How often members' connections are looked at: less often than others', as a member may send more.
constexpr absl::Duration kLookInterval = absl::Milliseconds(50);

constexpr size_t kDiscarded = size_t{1} << 20;  // Bytes at once; TCP needs no room for them.

}  // namespace

absl::StatusOr<std::unique_ptr<Connections>> Connections::Make(Options options) {
  FileDescriptor events(epoll_create1(EPOLL_CLOEXEC));
  FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!events.is_open() || !wake.is_open()) {
    return absl::ResourceExhaustedError("cannot make an epoll and an eventfd");
  }
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kWake}};
  PS_CHECK(epoll_ctl(events.get(), EPOLL_CTL_ADD, wake.get(), &event) == 0);
  return std::unique_ptr<Connections>(
      new Connections(std::move(options), std::move(events), std::move(wake)));
}

Connections::Connections(Options options, FileDescriptor events, FileDescriptor wake)
    : options_(std::move(options)), events_(std::move(events)), wake_(std::move(wake)) {}

Connections::~Connections() { PS_CHECK(silent_.empty()); }

bool Connections::HasPlace() {
  MutexLock lock(mutex_);
  const absl::Time now = options_.now();
  FreePlaces(now);
  return HasPlaceLocked(now) && newcomers_.size() < options_.newcomers_max;
}

void Connections::FreePlaces(absl::Time now) {
  places_kept_.erase(places_kept_.begin(), places_kept_.upper_bound(now));
  std::erase_if(shut_out_, [now](const auto& each) { return each.second <= now; });
  while (!newcomers_.empty() && now - newcomers_.begin()->second >= options_.newcomer_time) {
    newcomers_.erase(newcomers_.begin());
  }
}

bool Connections::HasPlaceLocked(absl::Time now) const {
  const size_t in_alarm = std::min(options_.others_max_in_alarm, options_.strangers_max);
  const size_t places = now < alarm_ends_ ? in_alarm : options_.strangers_max;
  return strangers_.size() + places_kept_.size() < places;
}

absl::Status Connections::Add(const FileDescriptor& connection, bool has_waited) {
  MutexLock lock(mutex_);
  if (has_waited && TrafficOf(connection).received > options_.bytes_while_waiting) {
    NoteClosed(PeerNameOf(connection), Reason::kBytes);
    return absl::PermissionDeniedError("it has sent too much");
  }
  const uint64_t number = next_number_++;
  Connection added = {.socket = FileDescriptor(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0)),
                      .name = PeerNameOf(connection),
                      .accepted = options_.now()};
  added.calls_made.since = added.bytes_sent.since = added.accepted;
  // Even without any event asked for, epoll tells that both directions have ended.
  epoll_event event = {.events = 0, .data = {.u64 = number}};
  if (!added.socket.is_open() ||
      epoll_ctl(events_.get(), EPOLL_CTL_ADD, added.socket.get(), &event) != 0) {
    return absl::ResourceExhaustedError("no connection more can be watched");
  }
  newcomers_.emplace(number, added.accepted);
  const auto place = connections_.emplace(number, std::move(added)).first;
  by_name_[place->second.name] = number;
  strangers_.insert(number);
  return absl::OkStatus();
}

absl::Duration Connections::Tend() {
  const absl::Time now = options_.now();
  std::vector<LogLine> lines;
  bool has_others = false;
  {
    MutexLock lock(mutex_);
    RemoveGone();
    FreePlaces(now);
    ShutDownStrangers(now);
    ShutDownFloods(now);
    ShutDownIdleGuests(now);
    lines = TakeLines(now);
    has_others = !strangers_.empty() || !guests_.empty();
  }
  for (const LogLine& line : lines) Log(spdlog::level::warn, line);
  EndSilentCalls(now);
  // In so short a time, peers that are not members cannot do much.
  return has_others ? absl::Milliseconds(5) : kLookInterval;
}

std::vector<LogLine> Connections::TakeLines(absl::Time now) {
  static constexpr std::array<const char*, kReasons> kReasonTexts = {
      "nobody has said in time who they are for", "no member makes so many calls",
      "no member sends so much",
      "a member sends more than messages; no further one is taken from its address for a while"};
  std::vector<LogLine> lines;
  for (size_t i = 0; i < kReasons; ++i) {
    Closed& closed = closed_[i];
    if (closed.count == 0 || now - closed.told < kTellInterval) continue;
    lines.emplace_back("closed connections", std::vector<LogField>{{"count", closed.count},
                                                                   {"one_of", closed.one_of},
                                                                   {"reason", kReasonTexts[i]}});
    closed = {.in_all = closed.in_all, .count = 0, .one_of = "", .told = now};
  }
  return lines;
}

Connections::Counts Connections::counts() {
  static constexpr std::array<const char*, kReasons> kReasonNames = {"silent", "calls", "bytes",
                                                                     "member"};
  MutexLock lock(mutex_);
  Counts counts = {.strangers = strangers_.size(),
                   .guests = guests_.size(),
                   .of_members = connections_.size() - strangers_.size() - guests_.size()};
  for (size_t i = 0; i < kReasons; ++i) counts.closed[kReasonNames[i]] = closed_[i].in_all;
  return counts;
}

void Connections::RemoveGone() {
  for (;;) {
    epoll_event gone[64];
    const int count = epoll_wait(events_.get(), gone, std::size(gone), 0);
    for (int i = 0; i < count; ++i) {
      const uint64_t number = gone[i].data.u64;  // A copy, as the field is not aligned.
      if (number == kWake) {
        uint64_t times = 0;
        (void)!read(wake_.get(), &times, sizeof(times));
        continue;
      }
      const auto place = connections_.find(number);
      if (place != connections_.end()) Remove(place);
    }
    if (count < static_cast<int>(std::size(gone))) return;
  }
}

void Connections::Remove(Table::iterator place) {
  auto& [number, connection] = *place;
  const absl::Time now = options_.now();
  // gRPC may have closed the connection first, because of what it sent.
  CountBytes(connection, now);
  if (connection.who == Who::kMember) {
    if (HasSentTooMuch(connection, 0)) ShutOut(connection, now);
  } else {
    const bool has_overdone_it = connection.has_overdone_it || HasSentTooMuch(connection, 0) ||
                                 (connection.who == Who::kStranger &&
                                  connection.traffic.received > options_.bytes_of_stranger);
    if (has_overdone_it) RaiseAlarm(now);
    const absl::Time since = has_overdone_it ? now : connection.accepted;
    const absl::Time kept_until = since + PlaceTime(connection);
    const bool keeps = connection.who == Who::kStranger || has_overdone_it;
    if (keeps && kept_until > now) places_kept_.insert(kept_until);
  }
  Uncount(number, connection);
  const auto named = by_name_.find(connection.name);
  if (named != by_name_.end() && named->second == number) by_name_.erase(named);
  // Closing this descriptor does not take the socket out: gRPC may still have it open.
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  connections_.erase(place);
}

void Connections::ShutOut(Connection& member, absl::Time now) {
  shut_out_[member.name.first] = now + options_.alarm_time;
  ShutDown(member, Reason::kMember);
}

void Connections::RaiseAlarm(absl::Time now) {
  // The few places that are left now are not to be those that others kept before.
  if (now >= alarm_ends_) places_kept_.clear();
  alarm_ends_ = now + options_.alarm_time;
}

absl::Duration Connections::PlaceTime(const Connection& connection) const {
  const absl::Duration for_bytes = options_.place_time_of_byte * connection.traffic.received;
  return std::min(options_.place_time + for_bytes, options_.place_time_max);
}

void Connections::Uncount(uint64_t number, const Connection& connection) {
  switch (connection.who) {
    case Who::kStranger:
      strangers_.erase(number);
      return;
    case Who::kGuest:
      guests_.erase(number);
      return;
    case Who::kMember: {
      const auto of_member = of_members_.find(connection.member);
      if (--of_member->second == 0) of_members_.erase(of_member);
    }
  }
}

void Connections::ShutDown(Connection& connection, Reason reason) {
  connection.has_overdone_it |= reason != Reason::kSilent;
  if (std::exchange(connection.is_shut_down, true)) return;
  shutdown(connection.socket.get(), SHUT_RDWR);
  // Only so much can have come that this ends.
  while (recv(connection.socket.get(), nullptr, kDiscarded, MSG_TRUNC | MSG_DONTWAIT) > 0) {
  }
  NoteClosed(connection.name, reason);
}

void Connections::NoteClosed(const PeerName& name, Reason reason) {
  Closed& closed = closed_[static_cast<size_t>(reason)];
  ++closed.in_all;
  ++closed.count;
  closed.one_of = TextOf(name);
}

void Connections::ShutDownStrangers(absl::Time now) {
  const absl::Duration time =
      HasPlaceLocked(now) ? options_.introduction_time : options_.pressed_time;
  for (const uint64_t number : strangers_) {
    Connection& stranger = connections_.at(number);
    if (now - stranger.accepted < time) return;
    ShutDown(stranger, Reason::kSilent);
  }
}

void Connections::ShutDownIdleGuests(absl::Time now) {
  for (const uint64_t number : guests_) {
    Connection& connection = connections_.at(number);
    if (connection.calls > 0 || now - connection.last_call < options_.guest_idle_time) continue;
    connection.is_shut_down = true;  // It was only idle, so no log line.
    shutdown(connection.socket.get(), SHUT_RDWR);
  }
}

void Connections::ShutDownFloods(absl::Time now) {
  for (const uint64_t number : strangers_) LookForFlood(connections_.at(number), now);
  for (const uint64_t number : guests_) LookForFlood(connections_.at(number), now);
  if (now - members_looked_at_ < kLookInterval) return;
  members_looked_at_ = now;
  for (auto& [_, connection] : connections_) {
    if (connection.who == Who::kMember) LookAtMember(connection, now);
  }
}

void Connections::LookAtMember(Connection& member, absl::Time now) {
  if (member.is_shut_down) return;
  const uint64_t before = member.traffic.received;
  CountBytes(member, now);
  Used& sent = member.bytes_without_call;
  // The bytes of a call that has ended since the last look are not without a call.
  if (member.calls > 0 || member.last_call >= member.looked_at) {
    sent = {.amount = 0, .since = now};
  } else {
    const double seconds = absl::ToDoubleSeconds(now - sent.since);
    sent.Add(static_cast<double>(member.traffic.received - before),
             static_cast<double>(options_.bytes_per_second) * seconds, now);
  }
  member.looked_at = now;
  const uint64_t bound = std::min(options_.bytes_without_call + member.messages_bytes / 4,
                                  options_.bytes_without_call_max);
  if (sent.amount <= static_cast<double>(bound)) member.within_bound = now;
  const bool lacks_call = now - member.within_bound >= options_.time_without_call;
  if (lacks_call || HasSentTooMuch(member, 0)) ShutOut(member, now);
}

void Connections::LookForFlood(Connection& connection, absl::Time now) {
  CountBytes(connection, now);
  if (!HasSentTooMuch(connection, 0)) {
    connection.sends_too_much_since = absl::InfiniteFuture();
    return;
  }
  connection.sends_too_much_since = std::min(connection.sends_too_much_since, now);
  const bool is_grace_over = connection.who == Who::kGuest ||
                             now - connection.sends_too_much_since >= options_.bytes_grace_time;
  if (is_grace_over || HasSentTooMuch(connection, options_.bytes_grace)) {
    ShutDown(connection, Reason::kBytes);
  }
}

/// Returns nothing if the kernel does not tell.
Connections::Traffic Connections::TrafficOf(const FileDescriptor& connection) {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  const bool is_told =
      getsockopt(connection.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
      length >= offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received);
  if (!is_told) return {};
  return {.received = info.tcpi_bytes_received, .sent = info.tcpi_bytes_acked};
}

void Connections::CountBytes(Connection& connection, absl::Time now) const {
  const Traffic before = connection.traffic;
  const Traffic so_far = TrafficOf(connection.socket);
  connection.traffic = {.received = std::max(before.received, so_far.received),
                        .sent = std::max(before.sent, so_far.sent)};
  const auto received = static_cast<double>(connection.traffic.received - before.received);
  const auto sent = static_cast<double>(connection.traffic.sent - before.sent);
  const double seconds = absl::ToDoubleSeconds(now - connection.bytes_sent.since);
  const double refilled = static_cast<double>(options_.bytes_per_second) * seconds +
                          options_.bytes_for_each_sent * sent;
  if (connection.who == Who::kMember) {
    // The messages that were taken had come before, or came now.
    const double taken = std::exchange(connection.bytes_taken, 0);
    connection.bytes_sent.Add(0, 0, now);
    connection.bytes_sent.amount =
        std::max(connection.bytes_sent.amount + received - taken - refilled, 0.0);
    return;
  }
  connection.bytes_sent.Add(received, refilled, now);
}

uint64_t Connections::BytesAtOnce(const Connection& connection) const {
  switch (connection.who) {
    case Who::kStranger:
      return options_.bytes_at_once;
    case Who::kGuest:
      return options_.bytes_at_once_of_guest;
    case Who::kMember:
      return options_.bytes_at_once_of_member + bytes_expected_;
  }
  return 0;
}

bool Connections::HasSentTooMuch(const Connection& connection, uint64_t grace) const {
  return connection.bytes_sent.amount > static_cast<double>(BytesAtOnce(connection) + grace);
}

void Connections::ExpectMessages(uint64_t bytes) {
  MutexLock lock(mutex_);
  bytes_expected_ = bytes;
}

void Connections::Take(uint64_t connection, size_t bytes) {
  MutexLock lock(mutex_);
  const auto place = connections_.find(connection);
  if (place == connections_.end() || place->second.who != Who::kMember) return;
  place->second.messages_bytes += bytes;
  place->second.bytes_taken += static_cast<double>(bytes) * (1 + options_.bytes_for_each_sent) +
                               static_cast<double>(options_.bytes_around_message);
}

void Connections::CountCall(Connection& connection, absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(now - connection.calls_made.since);
  connection.calls_made.Add(1, options_.calls_per_second * seconds, now);
  const double at_once = connection.who == Who::kStranger ? options_.calls_at_once_of_stranger
                                                          : options_.calls_at_once;
  if (connection.calls_made.amount <= at_once) return;
  if (connection.who == Who::kMember) return ShutOut(connection, now);
  ShutDown(connection, Reason::kCalls);
}

void Connections::EndSilentCalls(absl::Time now) {
  std::vector<grpc_call*> overdue;
  {
    MutexLock lock(mutex_);
    while (!silent_.empty() && now - silent_.front()->began_ >= options_.introduction_time) {
      Caller* const caller = silent_.front();
      grpc_call_ref(caller->call_);
      overdue.push_back(caller->call_);
      caller->silent_.reset();  // Each call is ended once.
      silent_.pop_front();
    }
  }
  const std::string reason = "SILENT: the call has not said within " +
                             DurationText(options_.introduction_time) + " who it is for";
  for (grpc_call* const call : overdue) {
    EndCall(call, reason, spdlog::level::debug);
    grpc_call_unref(call);
  }
}

uint64_t Connections::Enter(Caller& caller, std::string_view peer) {
  const PeerName name = PeerNameOf(peer);
  if (name.first.empty()) return 0;
  MutexLock lock(mutex_);
  const auto number = by_name_.find(name);
  if (number == by_name_.end()) return 0;
  Connection& connection = connections_.at(number->second);
  ++connection.calls;
  connection.last_call = caller.began_ = options_.now();
  CountCall(connection, caller.began_);
  caller.silent_ = silent_.insert(silent_.end(), &caller);
  return number->second;
}

void Connections::Leave(Caller& caller) {
  MutexLock lock(mutex_);
  if (caller.silent_.has_value()) silent_.erase(*caller.silent_);
  const auto place = connections_.find(caller.connection_);
  if (place == connections_.end()) return;
  --place->second.calls;
  place->second.last_call = options_.now();
}

bool Connections::MayCall(uint64_t connection) {
  MutexLock lock(mutex_);
  const auto place = connections_.find(connection);
  return place == connections_.end() || place->second.who == Who::kMember ||
         place->second.calls <= options_.calls_of_others_max;
}

void Connections::Introduce(Caller& caller, Who who, uint64_t member) {
  MutexLock lock(mutex_);
  const bool was_silent = caller.silent_.has_value();
  if (was_silent) {
    silent_.erase(*caller.silent_);
    caller.silent_.reset();
  }
  const auto place = connections_.find(caller.connection_);
  if (place == connections_.end()) return;
  Connection& connection = place->second;
  if (was_silent && connection.who == Who::kMember) --connection.calls_made.amount;
  if (connection.who >= who || !HasPlace(who, member)) return;
  if (who == Who::kMember && shut_out_.contains(connection.name.first)) return;
  const bool had_place = HasPlaceLocked(options_.now());
  Uncount(caller.connection_, connection);
  newcomers_.erase(caller.connection_);
  connection.who = who;
  connection.member = member;
  if (who == Who::kGuest) {
    guests_.insert(caller.connection_);
    CountBytes(connection, options_.now());
    connection.bytes_sent.amount = 0;  // Its handshake does not count any more.
  }
  if (who == Who::kMember) ++of_members_[member];
  if (had_place) return;
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

bool Connections::HasPlace(Who who, uint64_t member) const {
  if (who == Who::kGuest) {
    const bool is_alarm = options_.now() < alarm_ends_;
    return guests_.size() < (is_alarm ? std::min(options_.others_max_in_alarm, options_.guests_max)
                                      : options_.guests_max);
  }
  const auto of_member = of_members_.find(member);
  return of_member == of_members_.end() || of_member->second < options_.connections_of_member_max;
}

}  // namespace slipstream

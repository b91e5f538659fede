#include "server/listen/connections.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <iterator>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "server/listen/caller.h"
#include "server/listen/end_call.h"

namespace slipstream {
namespace {

constexpr uint64_t kWake = 0;  // No connection has this number.

/// Sixteen bytes for both kinds of address: IPv4 as IPv6 maps it.
std::string MappedPrefix() { return std::string(10, '\0') + "\xff\xff"; }

std::string MappedIpv4(const void* address) {
  return MappedPrefix() + std::string(static_cast<const char*>(address), sizeof(in_addr));
}

/// gRPC's "%5B::1%5D" is "[::1]".
std::string WithoutPercents(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned char byte = 0;
    const bool is_coded = text[i] == '%' && i + 2 < text.size() &&
                          std::from_chars(&text[i + 1], &text[i + 3], byte, 16).ptr == &text[i + 3];
    plain += is_coded ? static_cast<char>(byte) : text[i];
    if (is_coded) i += 2;
  }
  return plain;
}

/// As it is written where an address and a port belong: "192.0.2.1:7070", "[2001:db8::1]:7070".
std::string TextOf(const std::string& address, uint16_t port) {
  if (address.size() != sizeof(in6_addr)) return "?";
  const std::string prefix = MappedPrefix();
  const bool is_ipv4 = address.starts_with(prefix);
  char text[INET6_ADDRSTRLEN] = "?";
  inet_ntop(is_ipv4 ? AF_INET : AF_INET6, address.data() + (is_ipv4 ? prefix.size() : 0), text,
            sizeof(text));
  return is_ipv4 ? fmt::format("{}:{}", text, port) : fmt::format("[{}]:{}", text, port);
}

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

bool Connections::HasRoom() {
  MutexLock lock(mutex_);
  const absl::Time now = options_.now();
  while (!places_kept_.empty() && places_kept_.front() <= now) places_kept_.pop_front();
  return HasRoomLocked();
}

bool Connections::HasRoomLocked() const {
  return strangers_ + places_kept_.size() < options_.strangers_max;
}

absl::Status Connections::Add(const FileDescriptor& connection) {
  FileDescriptor socket(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
  MutexLock lock(mutex_);
  const uint64_t number = next_number_++;
  // Without any event asked for, epoll tells that both directions have ended.
  epoll_event event = {.events = 0, .data = {.u64 = number}};
  if (!socket.is_open() || epoll_ctl(events_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    return absl::ResourceExhaustedError("no connection more can be watched");
  }
  PeerName name = NameOf(connection);
  by_name_[name] = number;
  connections_.emplace(
      number,
      Connection{.socket = std::move(socket), .name = std::move(name), .accepted = options_.now()});
  ++strangers_;
  unknown_since_.push_back(number);
  return absl::OkStatus();
}

void Connections::Tend() {
  const absl::Time now = options_.now();
  std::pair<size_t, std::string> closed;
  {
    MutexLock lock(mutex_);
    RemoveGone();
    closed = ShutDownStrangers(now);
    ShutDownIdleGuests(now);
  }
  if (closed.first > 0) {
    spdlog::warn(
        "closed connections count={} reason=\"nobody has said within {} who they are for\" "
        "one_of={}",
        closed.first, absl::FormatDuration(options_.introduction_time), closed.second);
  }
  EndSilentCalls(now);
}

Connections::Counts Connections::counts() {
  MutexLock lock(mutex_);
  return {.strangers = strangers_,
          .guests = guests_.size(),
          .of_members = connections_.size() - strangers_ - guests_.size()};
}

void Connections::RemoveGone() {
  for (;;) {
    epoll_event gone[64];
    const int count = epoll_wait(events_.get(), gone, std::size(gone), 0);
    for (int i = 0; i < count; ++i) {
      if (gone[i].data.u64 == kWake) {
        uint64_t times = 0;
        (void)!read(wake_.get(), &times, sizeof(times));
        continue;
      }
      const auto place = connections_.find(gone[i].data.u64);
      if (place != connections_.end()) Remove(place);
    }
    if (count < static_cast<int>(std::size(gone))) return;
  }
}

void Connections::Remove(Table::iterator place) {
  const auto& [number, connection] = *place;
  const absl::Time kept_until = connection.accepted + options_.place_time;
  if (connection.who == Who::kStranger && kept_until > options_.now()) {
    places_kept_.push_back(kept_until);
  }
  Uncount(number, connection);
  const auto named = by_name_.find(connection.name);
  if (named != by_name_.end() && named->second == number) by_name_.erase(named);
  // Closing does not take it out: gRPC may still have the same socket open.
  epoll_ctl(events_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  connections_.erase(place);
}

void Connections::Uncount(uint64_t number, const Connection& connection) {
  switch (connection.who) {
    case Who::kStranger:
      --strangers_;
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

std::pair<size_t, std::string> Connections::ShutDownStrangers(absl::Time now) {
  std::pair<size_t, std::string> closed;
  for (; !unknown_since_.empty(); unknown_since_.pop_front()) {
    const auto place = connections_.find(unknown_since_.front());
    if (place == connections_.end() || place->second.who != Who::kStranger) continue;
    if (now - place->second.accepted < options_.introduction_time) return closed;
    // gRPC sees the end of what it reads and of what it writes, and epoll the end of both.
    shutdown(place->second.socket.get(), SHUT_RDWR);
    ++closed.first;
    closed.second = TextOf(place->second.name.first, place->second.name.second);
  }
  return closed;
}

void Connections::ShutDownIdleGuests(absl::Time now) {
  for (const uint64_t number : guests_) {
    const Connection& connection = connections_.at(number);
    const bool is_idle = connection.calls == 0;
    if (is_idle && now - connection.last_call >= options_.guest_idle_time) {
      shutdown(connection.socket.get(), SHUT_RDWR);
    }
  }
}

void Connections::EndSilentCalls(absl::Time now) {
  std::vector<grpc_call*> overdue;
  {
    MutexLock lock(mutex_);
    while (!silent_.empty() && now - silent_.front()->began_ >= options_.introduction_time) {
      Caller* const caller = silent_.front();
      grpc_call_ref(caller->call_);
      overdue.push_back(caller->call_);
      caller->silent_.reset();  // Once.
      silent_.pop_front();
    }
  }
  const std::string reason = "SILENT: the call has not said within " +
                             absl::FormatDuration(options_.introduction_time) + " who it is for";
  for (grpc_call* const call : overdue) {
    EndCall(call, reason, spdlog::level::debug);
    grpc_call_unref(call);
  }
}

Connections::PeerName Connections::NameOf(const FileDescriptor& connection) {
  sockaddr_storage peer = {};
  socklen_t length = sizeof(peer);
  if (getpeername(connection.get(), reinterpret_cast<sockaddr*>(&peer), &length) != 0) return {};
  if (peer.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(peer);
    return {MappedIpv4(&ipv4.sin_addr), ntohs(ipv4.sin_port)};
  }
  if (peer.ss_family != AF_INET6) return {};
  const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(peer);
  return {std::string(reinterpret_cast<const char*>(&ipv6.sin6_addr), sizeof(ipv6.sin6_addr)),
          ntohs(ipv6.sin6_port)};
}

Connections::PeerName Connections::NameOf(std::string_view peer) {
  const bool is_ipv4 = peer.starts_with("ipv4:");
  if (!is_ipv4 && !peer.starts_with("ipv6:")) return {};
  const std::string text = WithoutPercents(peer.substr(5));
  const size_t colon = text.rfind(':');
  uint16_t port = 0;
  if (colon == std::string::npos ||
      std::from_chars(&text[colon + 1], text.data() + text.size(), port).ec != std::errc()) {
    return {};
  }
  in6_addr address = {};
  if (is_ipv4) {
    if (inet_pton(AF_INET, text.substr(0, colon).c_str(), &address) != 1) return {};
    return {MappedIpv4(&address), port};
  }
  // "[fe80::1%eth0]": the zone is not part of the address.
  const size_t end = std::min(text.find('%'), text.find(']'));
  if (text.front() != '[' || end == std::string::npos) return {};
  if (inet_pton(AF_INET6, text.substr(1, end - 1).c_str(), &address) != 1) return {};
  return {std::string(reinterpret_cast<const char*>(&address), sizeof(address)), port};
}

uint64_t Connections::Enter(Caller& caller, std::string_view peer) {
  const PeerName name = NameOf(peer);
  if (name.first.empty()) return 0;
  MutexLock lock(mutex_);
  const auto number = by_name_.find(name);
  if (number == by_name_.end()) return 0;
  Connection& connection = connections_.at(number->second);
  ++connection.calls;
  connection.last_call = caller.began_ = options_.now();
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
  if (caller.silent_.has_value()) {
    silent_.erase(*caller.silent_);
    caller.silent_.reset();
  }
  const auto place = connections_.find(caller.connection_);
  if (place == connections_.end() || place->second.who >= who || !HasPlace(who, member)) return;
  Connection& connection = place->second;
  const bool had_room = HasRoomLocked();
  Uncount(caller.connection_, connection);
  connection.who = who;
  connection.member = member;
  if (who == Who::kGuest) guests_.insert(caller.connection_);
  if (who == Who::kMember) ++of_members_[member];
  if (had_room) return;
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

bool Connections::HasPlace(Who who, uint64_t member) const {
  if (who == Who::kGuest) return guests_.size() < options_.guests_max;
  const auto of_member = of_members_.find(member);
  return of_member == of_members_.end() || of_member->second < options_.connections_of_member_max;
}

}  // namespace slipstream

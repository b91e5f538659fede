#include "server/listen/accept_loop.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/log/log.h"

namespace slipstream {
namespace {

/// How long the loop waits for files to be closed when this process may open no more.
constexpr int kFullPauseMs = 100;

constexpr std::chrono::seconds kWarnInterval{10};

/// Returns whether few files are left: a new file gets the lowest free number, so one near the
/// limit shows it.
bool IsAmongTheLast(const FileDescriptor& file) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < 4 * AcceptLoop::kFilesLeft) {
    return false;
  }
  return static_cast<rlim_t>(file.get()) >= limit.rlim_cur - AcceptLoop::kFilesLeft;
}

/// Returns whether the peer sends nothing more.
bool HasGone(const FileDescriptor& connection) {
  pollfd gone = {.fd = connection.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&gone, 1, 0) > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AcceptLoop>> AcceptLoop::Start(std::vector<FileDescriptor> listening,
                                                              Acceptor accept, Taker take,
                                                              Connections* connections) {
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.is_open()) return absl::ResourceExhaustedError("cannot make an eventfd");
  return std::unique_ptr<AcceptLoop>(new AcceptLoop(
      std::move(listening), std::move(stop), std::move(accept), std::move(take), connections));
}

AcceptLoop::AcceptLoop(std::vector<FileDescriptor> listening, FileDescriptor stop, Acceptor accept,
                       Taker take, Connections* connections)
    : listening_(std::move(listening)),
      stop_(std::move(stop)),
      accept_(std::move(accept)),
      take_(std::move(take)),
      connections_(connections),
      thread_([this] { Run(); }) {}

AcceptLoop::~AcceptLoop() {
  const uint64_t one = 1;
  PS_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

void AcceptLoop::Run() {
  constexpr size_t kBefore = 2;  // The entries before the listening sockets.
  std::vector<pollfd> events = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                {.fd = connections_ != nullptr ? connections_->events() : -1,
                                 .events = POLLIN,
                                 .revents = 0}};
  for (const FileDescriptor& listening : listening_) {
    events.push_back({.fd = listening.get(), .events = POLLIN, .revents = 0});
  }
  int patience_ms = -1;
  for (;;) {
    if (connections_ != nullptr) {
      patience_ms = static_cast<int>(absl::ToInt64Milliseconds(connections_->Tend()));
    }
    TakeWaiting();
    if (poll(events.data(), events.size(), patience_ms) < 0) {
      PS_CHECK(errno == EINTR);
      continue;
    }
    if (events[0].revents != 0) return;
    for (size_t i = 0; i < listening_.size(); ++i) {
      if (events[kBefore + i].revents != 0) TakeNext(listening_[i]);
    }
  }
}

void AcceptLoop::TakeNext(const FileDescriptor& listening) {
  absl::StatusOr<FileDescriptor> connection = accept_(listening);
  if (absl::IsResourceExhausted(connection.status())) {
    Warn(LogLine("connections have to wait", {{"reason", connection.status().message()}}));
    AwaitPlace();
    return;
  }
  if (!connection.ok()) return;  // The peer has gone already.
  if (IsAmongTheLast(*connection)) {
    Warn(LogLine("a connection is turned away",
                 {{"reason", "almost all files that this process may have are open"}}));
    return;
  }
  if (HasPlace()) return Take(*std::move(connection), listening, /*has_waited=*/false);
  Waiting next = {*std::move(connection), &listening};
  if (waiting_.size() < kWaitingMax) return waiting_.push_back(std::move(next));
  waiting_[lot_() % kWaitingMax] = std::move(next);
}

void AcceptLoop::TakeWaiting() {
  while (!waiting_.empty() && HasPlace()) {
    std::swap(waiting_[lot_() % waiting_.size()], waiting_.back());
    Waiting next = std::move(waiting_.back());
    waiting_.pop_back();
    if (!HasGone(next.connection)) Take(std::move(next.connection), *next.listening, true);
  }
}

void AcceptLoop::Take(FileDescriptor connection, const FileDescriptor& listening, bool has_waited) {
  const absl::Status noted =
      connections_ != nullptr ? connections_->Add(connection, has_waited) : absl::OkStatus();
  if (absl::IsPermissionDenied(noted)) return;
  if (!noted.ok()) {
    return Warn(LogLine("a connection is turned away", {{"reason", noted.message()}}));
  }
  take_(std::move(connection), listening);
}

void AcceptLoop::AwaitPlace() {
  pollfd stop = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
  poll(&stop, 1, kFullPauseMs);
}

void AcceptLoop::Warn(const LogLine& line) {
  const auto now = std::chrono::steady_clock::now();
  if (warned_.has_value() && now - *warned_ < kWarnInterval) return;
  warned_ = now;
  Log(spdlog::level::warn, line);
}

}  // namespace slipstream

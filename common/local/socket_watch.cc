#include "common/local/socket_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "common/base/check.h"

namespace slipstream {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kStop = 0;  // Takes the place of a socket's id.

}  // namespace

class SocketWatch::Lane {
 public:
  Lane()
      : epoll_(epoll_create1(EPOLL_CLOEXEC)),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        is_usable_(epoll_.is_open() && stop_.is_open() &&
                   Control(EPOLL_CTL_ADD, stop_.get(), EPOLLIN, kStop)) {
    if (!is_usable_) return;
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error&) {
      is_usable_ = false;
    }
  }

  bool is_usable() const { return is_usable_; }

  ~Lane() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    PS_CHECK(write(stop_.get(), &one, sizeof(one)) == sizeof(one));
    thread_.join();
    MutexLock lock(mutex_);
    PS_CHECK(readers_.empty());
  }

  /// Returns the socket's id; kStop if the socket cannot be watched.
  uint64_t Add(int fd, Socket* socket, std::weak_ptr<Reader> reader) {
    uint64_t id = kStop;
    {
      MutexLock lock(mutex_);
      id = ++last_id_;
      readers_[id] = {socket, std::move(reader)};
    }
    if (Control(EPOLL_CTL_ADD, fd, EPOLLONESHOT, id)) return id;
    MutexLock lock(mutex_);
    readers_.erase(id);
    return kStop;
  }

  void Remove(int fd, uint64_t id) {
    Control(EPOLL_CTL_DEL, fd, 0, id);
    MutexLock lock(mutex_);
    readers_.erase(id);
  }

  void Arm(int fd, uint64_t id, Clock::time_point awake_until) {
    const Clock::rep until = awake_until.time_since_epoch().count();
    Clock::rep before = awake_until_.load(std::memory_order_relaxed);
    while (before < until && !awake_until_.compare_exchange_weak(before, until)) continue;
    PS_CHECK(Control(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, id));
  }

 private:
  struct Entry {
    Socket* socket = nullptr;  // A member of the reader.
    std::weak_ptr<Reader> reader;
  };

  bool Control(int operation, int fd, uint32_t events, uint64_t id) {
    epoll_event event = {.events = events, .data = {.u64 = id}};
    return epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
  }

  void Run() {
    for (;;) {
      const bool is_awake = Clock::now().time_since_epoch().count() < awake_until_.load();
      epoll_event event;
      const int count = epoll_wait(epoll_.get(), &event, 1, is_awake ? 0 : -1);
      if (count > 0 && event.data.u64 == kStop) return;
      if (count > 0) Call(event.data.u64);
      if (count == 0) std::this_thread::yield();
    }
  }

  void Call(uint64_t id) {
    Entry entry;
    {
      MutexLock lock(mutex_);
      const auto found = readers_.find(id);
      if (found != readers_.end()) entry = found->second;
    }
    // Keeps the reader alive until OnReadable returns, even if its owner drops it meanwhile.
    const std::shared_ptr<Reader> reader = entry.reader.lock();
    if (reader != nullptr && entry.socket->Disarm()) reader->OnReadable();
  }

  const FileDescriptor epoll_;
  const FileDescriptor stop_;
  bool is_usable_;  // Constant after construction.
  std::atomic<Clock::rep> awake_until_ = 0;

  Mutex mutex_;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = kStop;
  std::map<uint64_t, Entry> readers_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;  // Last: the thread uses everything above.
};

SocketWatch::SocketWatch(size_t threads) : lanes_(threads) {}

SocketWatch::~SocketWatch() = default;

SocketWatch::Lane* SocketWatch::NextLane() {
  MutexLock lock(mutex_);
  std::unique_ptr<Lane>& lane = lanes_[next_++ % lanes_.size()];
  if (lane != nullptr) return lane.get();
  auto made = std::make_unique<Lane>();
  // Descriptors or threads have run out; a later call may find some.
  if (!made->is_usable()) return nullptr;
  lane = std::move(made);
  return lane.get();
}

bool SocketWatch::Socket::Bind(const FileDescriptor& socket, std::weak_ptr<Reader> reader) {
  Lane* const lane = watch_.NextLane();
  if (lane == nullptr) return false;
  MutexLock lock(mutex_);
  PS_CHECK(lane_ == nullptr);
  const uint64_t id = lane->Add(socket.get(), this, std::move(reader));
  if (id == kStop) return false;
  lane_ = lane;
  fd_ = socket.get();
  id_ = id;
  return true;
}

void SocketWatch::Socket::Unbind() {
  MutexLock lock(mutex_);
  if (lane_ != nullptr) lane_->Remove(fd_, id_);
  lane_ = nullptr;
  is_armed_ = false;
}

void SocketWatch::Socket::Arm(Clock::time_point awake_until) {
  MutexLock lock(mutex_);
  PS_CHECK(lane_ != nullptr);
  is_armed_ = true;
  lane_->Arm(fd_, id_, awake_until);
}

bool SocketWatch::Socket::Disarm() {
  MutexLock lock(mutex_);
  return std::exchange(is_armed_, false);
}

}  // namespace slipstream

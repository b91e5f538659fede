#include "server/http/http_stream.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace slipstream {

bool HttpStream::AwaitRequest(Clock::time_point until) {
  deadline_ = until;
  return begin_ < end_ || Fill();
}

void HttpStream::BeginRequest(Clock::time_point until) {
  deadline_ = until;
  bytes_left_ = kRequestBytesMax;
}

bool HttpStream::Fill() {
  const ssize_t came = tls_.Read(connection_, buffer_, deadline_);
  begin_ = 0;
  end_ = came > 0 ? static_cast<size_t>(came) : 0;
  return end_ > 0;
}

ssize_t HttpStream::read(char* bytes, size_t size) {
  if (bytes_left_ == 0 || (begin_ == end_ && !Fill())) return -1;
  const size_t taken = std::min({size, end_ - begin_, bytes_left_});
  std::memcpy(bytes, buffer_.data() + begin_, taken);
  begin_ += taken;
  bytes_left_ -= taken;
  return static_cast<ssize_t>(taken);
}

bool HttpStream::IsTaken() const {
  int left = 0;
  return ioctl(connection_, SIOCOUTQ, &left) == 0 && left == 0;
}

bool HttpStream::AwaitSilence(Clock::time_point until) const {
  if (begin_ < end_) return false;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (left.count() <= 0) return true;
    pollfd event = {.fd = connection_, .events = POLLIN | POLLRDHUP, .revents = 0};
    const int ready = poll(&event, 1, static_cast<int>(left.count()));
    if (ready > 0 || (ready < 0 && errno != EINTR)) return false;
  }
}

ssize_t HttpStream::write(const char* bytes, size_t size) {
  if (is_over_) return -1;
  const ssize_t written = tls_.Write(connection_, {bytes, size}, deadline_);
  if (written < 0) End();
  return written;
}

void HttpStream::End() {
  is_over_ = true;
  // What the peer does not take would stay in the system's memory after the connection is closed.
  const linger none = {.l_onoff = 1, .l_linger = 0};
  setsockopt(connection_, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

// Nobody asks: access is decided by certificates, and the log names peers by them.
void HttpStream::get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}
void HttpStream::get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const {}

}  // namespace slipstream

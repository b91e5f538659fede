#include "common/local/local_notes.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace slipstream {
namespace {

/// A message's header with room for one file, and not for the padding, in which a second would fit.
struct Message {
  explicit Message(LocalNote& note) : bytes{.iov_base = &note, .iov_len = sizeof(note)} {
    header.msg_iov = &bytes;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = CMSG_LEN(sizeof(int));
  }

  iovec bytes;
  msghdr header = {};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
};

absl::Status Gone() { return absl::UnavailableError("the other end of the local socket is gone"); }

FileDescriptor TakeFile(msghdr& header) {
  FileDescriptor file;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(part), sizeof(fd));
    file = FileDescriptor(fd);
  }
  return file;
}

int Milliseconds(absl::Duration timeout) {
  const int64_t whole = absl::ToInt64Milliseconds(absl::Ceil(timeout, absl::Milliseconds(1)));
  return static_cast<int>(std::clamp<int64_t>(whole, 0, 3'600'000));
}

}  // namespace

absl::Status SendNote(const FileDescriptor& socket, const LocalNote& note,
                      const FileDescriptor* file) {
  LocalNote sent = note;
  Message message(sent);
  if (file == nullptr) {
    message.header.msg_controllen = 0;
  } else {
    cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = file->get();
    std::memcpy(CMSG_DATA(part), &fd, sizeof(fd));
  }
  if (sendmsg(socket.get(), &message.header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) {
    return absl::OkStatus();
  }
  if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS) {
    return absl::ResourceExhaustedError("the other end does not read the notes it is sent");
  }
  return Gone();
}

absl::StatusOr<std::optional<ReceivedNote>> ReceiveNote(const FileDescriptor& socket,
                                                        absl::Duration timeout) {
  ReceivedNote received;
  Message message(received.note);
  ssize_t size = recvmsg(socket.get(), &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size < 0 && errno == EAGAIN && timeout > absl::ZeroDuration()) {
    pollfd event = {.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (poll(&event, 1, Milliseconds(timeout)) <= 0) return std::nullopt;
    size = recvmsg(socket.get(), &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (size <= 0) return Gone();
  received.file = TakeFile(message.header);
  if (size != sizeof(LocalNote) || (message.header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return absl::InternalError("the local socket brought something that is no note");
  }
  return received;
}

}  // namespace slipstream

#include "common/local/local_notes.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "common/base/check.h"

namespace slipstream {
namespace {

/// A message's header with room for one file. The padding of `control` is not offered to the
/// system, since a second file would fit into it.
struct Message {
  Message(LocalNote& note, char* text, size_t text_size)
      : bytes{{.iov_base = &note, .iov_len = sizeof(note)},
              {.iov_base = text, .iov_len = text_size}} {
    header.msg_iov = bytes;
    header.msg_iovlen = 2;
    header.msg_control = control;
    header.msg_controllen = CMSG_LEN(sizeof(int));
  }

  iovec bytes[2];
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

absl::Status Send(const FileDescriptor& socket, LocalNote note, std::string_view text,
                  const FileDescriptor* file) {
  Message message(note, const_cast<char*>(text.data()), text.size());  // sendmsg only reads it.
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

}  // namespace

absl::Status SendNote(const FileDescriptor& socket, const LocalNote& note,
                      const FileDescriptor* file) {
  return Send(socket, note, {}, file);
}

absl::Status SendMessageNote(const FileDescriptor& socket, std::string_view text) {
  PS_CHECK(text.size() <= LocalNote::kTextBytesMax);
  return Send(socket, {LocalNote::Kind::kMessage, text.size()}, text, nullptr);
}

absl::StatusOr<std::optional<ReceivedNote>> ReceiveNote(const FileDescriptor& socket,
                                                        absl::Duration timeout) {
  ReceivedNote received;
  char text[LocalNote::kTextBytesMax];
  Message message(received.note, text, sizeof(text));
  ssize_t size = recvmsg(socket.get(), &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (size < 0 && errno == EAGAIN && timeout > absl::ZeroDuration()) {
    pollfd event = {.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (poll(&event, 1, Milliseconds(timeout)) <= 0) return std::nullopt;
    size = recvmsg(socket.get(), &message.header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  }
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (size < 0) return Gone();
  received.file = TakeFile(message.header);  // Even an empty message may bring a file.
  if (size == 0) return Gone();
  const LocalNote& note = received.note;
  const size_t text_size = note.kind == LocalNote::Kind::kMessage ? note.number : 0;
  const bool is_whole = (message.header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!is_whole || static_cast<size_t>(size) < sizeof(LocalNote) ||
      static_cast<size_t>(size) - sizeof(LocalNote) != text_size) {
    return absl::InternalError("the local socket brought something that is no note");
  }
  received.text.assign(text, text_size);
  return received;
}

}  // namespace slipstream

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/files/file_descriptor.h"
#include "common/local/local_notes.h"
#include "common/local/local_socket.h"
#include "common/local/shared_arena.h"
#include "common/wire/chunk_wire.h"
#include "common/wire/message_notes.h"
#include "server/data_plane/shared_memory_channel.h"
#include "server/data_plane/shared_memory_use.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/fuzz_target.h"

namespace slipstream {
namespace {

/// Returns the descriptor that the next file would get. It does not change if no descriptor is
/// lost.
int NextDescriptor() {
  const FileDescriptor next(open("/dev/null", O_RDONLY | O_CLOEXEC));
  PS_CHECK(next.is_open());
  return next.get();
}

/// Sends a message with up to two files. A note may have only one.
void SendRaw(const FileDescriptor& socket, std::string_view bytes, const FileDescriptor& file,
             size_t files) {
  iovec part = {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  if (files > 0) {
    header.msg_control = control;
    header.msg_controllen = CMSG_LEN(files * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = header.msg_controllen;
    const int fds[] = {file.get(), file.get()};
    std::memcpy(CMSG_DATA(rights), fds, files * sizeof(int));
  }
  (void)sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// Makes a file that a worker might send as its arena, as the input describes it.
FileDescriptor FileOf(FuzzInput& input) {
  const auto kind = input.Take<uint8_t>();
  const size_t size = input.Take<uint32_t>() % (size_t{1} << 20);
  const int seals = input.Take<uint8_t>() & (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
                                             F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
  if (kind == 0) return FileDescriptor(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (kind == 1) return FileDescriptor(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (kind == 2) return std::move(MakeSharedMemory(size).value().file);
  FileDescriptor file(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  PS_CHECK(file.is_open() && ftruncate(file.get(), static_cast<off_t>(size)) == 0);
  if (kind % 2 == 0) (void)posix_fallocate(file.get(), 0, static_cast<off_t>(size));
  (void)fcntl(file.get(), F_ADD_SEALS, seals);
  return file;
}

/// Reads the whole arena, if it is accepted: all of it must be readable.
void ReadAll(const FileDescriptor& file) {
  const absl::StatusOr<ForeignArena> arena = ForeignArena::Open(file);
  if (!arena.ok()) return;
  std::vector<std::byte> bytes(arena->size());
  arena->Copy(0, bytes);
  arena->Forget(0, bytes.size());
}

/// Treats a message as a shard does.
void Follow(const grpc::ByteBuffer& message, SharedMemoryChannel& channel) {
  const absl::StatusOr<PushChunk> chunk = DecodePushChunk(message);
  if (!chunk.ok() || !chunk->shared.has_value()) return;
  const absl::StatusOr<UnreadValues> unread = channel.Find(*chunk->shared);
  if (!unread.ok()) return;
  std::vector<std::byte> bytes(unread->count * sizeof(float));
  unread->arena->Copy(unread->begin, bytes);
  unread->arena->Forget(unread->begin, bytes.size());
  (void)channel.TellTaken();
}

/// Carries out one action of an attached worker.
void Act(FuzzInput& input, const FileDescriptor& worker, const FileDescriptor& file,
         SharedMemoryChannel& channel) {
  const auto action = input.Take<uint8_t>();
  if (action % 4 == 0) {
    const SharedValues values = {input.Take<uint64_t>(), input.Take<uint64_t>()};
    return Follow(EncodePushChunk(std::nullopt, 0, values), channel);
  }
  const std::string_view bytes = input.TakeBytes(input.Take<uint16_t>() % 2048);
  if (action % 4 == 1) {
    SendRaw(worker, bytes, file, action / 4 % 3);
  } else {
    (void)SendMessageNote(worker, bytes.substr(0, LocalNote::kTextBytesMax));
  }
  const auto received = channel.Receive();
  if (received.ok() && received->has_value()) Follow(**received, channel);
}

void RunSharedMemoryChannel(std::string_view input) {
  FuzzInput rest(input);
  SharedMemoryUse use;
  SharedMemoryChannel channel(use);
  const SharedMemoryReply opened = channel.Open();
  PS_CHECK(opened.refusal.empty());
  const FileDescriptor worker = ConnectLocally(opened.socket, LocalSocketKind::kMessages).value();
  const FileDescriptor file = FileOf(rest);
  ReadAll(file);
  LocalNote note = {LocalNote::Kind{rest.Take<uint8_t>()}, 0};
  const std::string_view bytes(reinterpret_cast<const char*>(&note), sizeof(note));
  SendRaw(worker, bytes, file, rest.Take<uint8_t>() % 3);
  const SharedMemoryReply attached = channel.Attach();
  PS_CHECK(channel.is_attached() == attached.refusal.empty());
  PS_CHECK(!channel.Attach().refusal.empty());
  if (!channel.is_attached()) return;
  while (!rest.is_at_end()) Act(rest, worker, file, channel);
}

void RunLocalNotes(std::string_view input) {
  int ends[2];
  PS_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  const FileDescriptor sender(ends[0]);
  const FileDescriptor receiver(ends[1]);
  for (const std::string_view part : PartsOf(input)) {
    FuzzInput rest(part);
    const size_t files = rest.Take<uint8_t>() % 3;
    SendRaw(sender, rest.rest(), sender, files);
    const auto received = ReceiveNote(receiver, absl::ZeroDuration());
    if (!received.ok() || !received->has_value()) continue;
    const ReceivedNote& note = **received;
    const bool is_message = note.note.kind == LocalNote::Kind::kMessage;
    PS_CHECK(note.text.size() == (is_message ? note.note.number : 0));
    PS_CHECK(rest.rest().substr(sizeof(LocalNote)) == note.text);
    PS_CHECK(note.file.is_open() == (files == 1));
    if (is_message) (void)DecodePushChunk(MessageOf(note));
  }
}

}  // namespace

void FuzzLocalNotes(std::string_view input) {
  const int before = NextDescriptor();
  RunLocalNotes(input);
  PS_CHECK(NextDescriptor() == before);
}

void FuzzSharedMemoryChannel(std::string_view input) {
  const int before = NextDescriptor();
  RunSharedMemoryChannel(input);
  PS_CHECK(NextDescriptor() == before);
}

}  // namespace slipstream

#include "common/local/local_notes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/local/local_socket.h"

namespace slipstream {
namespace {

struct Pair {
  FileDescriptor server;
  FileDescriptor worker;
};

Pair Connected() {
  const std::string name = NewLocalName();
  const FileDescriptor listening = ListenLocally(name, LocalSocketKind::kMessages).value();
  Pair pair;
  pair.worker = ConnectLocally(name, LocalSocketKind::kMessages).value();
  pair.server = AcceptLocally(listening).value();
  return pair;
}

TEST(LocalNotesTest, ComeInOrderAndApart) {
  const Pair pair = Connected();
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(SendNote(pair.server, {LocalNote::Kind::kTaken, i}).ok());
  }
  for (uint64_t i = 0; i < 3; ++i) {
    const auto note = ReceiveNote(pair.worker, absl::Seconds(20)).value();
    ASSERT_TRUE(note.has_value());
    EXPECT_EQ(note->note.kind, LocalNote::Kind::kTaken);
    EXPECT_EQ(note->note.number, i);
    EXPECT_FALSE(note->file.is_open());
  }
  EXPECT_FALSE(ReceiveNote(pair.worker, absl::ZeroDuration()).value().has_value());
}

TEST(LocalNotesTest, BringAFile) {
  const Pair pair = Connected();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const FileDescriptor reading(ends[0]);
  {
    const FileDescriptor writing(ends[1]);
    ASSERT_TRUE(SendNote(pair.server, {LocalNote::Kind::kBuffer, 5}, &writing).ok());
  }
  const auto note = ReceiveNote(pair.worker, absl::Seconds(20)).value();
  ASSERT_TRUE(note.has_value());
  ASSERT_TRUE(note->file.is_open());
  ASSERT_EQ(write(note->file.get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(reading.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST(LocalNotesTest, BringMessagesAsTheyAre) {
  const Pair pair = Connected();
  for (const std::string& text :
       {std::string(), std::string("a\0b", 3), std::string(LocalNote::kTextBytesMax, 'x')}) {
    ASSERT_TRUE(SendMessageNote(pair.worker, text).ok());
    const auto note = ReceiveNote(pair.server, absl::Seconds(20)).value();
    ASSERT_TRUE(note.has_value());
    EXPECT_EQ(note->note.kind, LocalNote::Kind::kMessage);
    EXPECT_EQ(note->text, text);
  }
}

TEST(LocalNotesTest, AnEndThatIsGoneIsUnavailable) {
  Pair pair = Connected();
  pair.server = FileDescriptor();
  EXPECT_TRUE(absl::IsUnavailable(ReceiveNote(pair.worker, absl::Seconds(20)).status()));

  pair = Connected();
  pair.worker = FileDescriptor();
  EXPECT_TRUE(absl::IsUnavailable(SendNote(pair.server, {LocalNote::Kind::kTaken, 1})));
}

TEST(LocalNotesTest, AnEndThatDoesNotReadIsNotWaitedFor) {
  const Pair pair = Connected();
  absl::Status status;
  for (int i = 0; i < 1'000'000 && status.ok(); ++i) {
    status = SendNote(pair.server, {LocalNote::Kind::kTaken, 1});
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(LocalNotesTest, WhatIsNoNoteIsRefused) {
  const Pair pair = Connected();
  // A message note must give the right size of its text. Other notes have no text.
  struct {
    LocalNote note;
    char text[8] = {};
  } sent;
  for (const LocalNote note :
       {LocalNote{LocalNote::Kind::kMessage, 7}, LocalNote{LocalNote::Kind::kMessage, 9},
        LocalNote{LocalNote::Kind::kMessage, ~uint64_t{0}},
        LocalNote{LocalNote::Kind::kTaken, 8}}) {
    sent.note = note;
    ASSERT_EQ(send(pair.server.get(), &sent, sizeof(sent), 0), ssize_t{sizeof(sent)});
    EXPECT_TRUE(absl::IsInternal(ReceiveNote(pair.worker, absl::Seconds(20)).status()));
  }
  const std::vector<char> large(sizeof(LocalNote) + LocalNote::kTextBytesMax + 1);
  ASSERT_EQ(send(pair.server.get(), large.data(), large.size(), 0), std::ssize(large));
  EXPECT_TRUE(absl::IsInternal(ReceiveNote(pair.worker, absl::Seconds(20)).status()));
  for (const size_t size : {size_t{1}, sizeof(LocalNote) + 1}) {
    const std::vector<char> bytes(size, 'x');
    ASSERT_EQ(send(pair.server.get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
    EXPECT_TRUE(absl::IsInternal(ReceiveNote(pair.worker, absl::Seconds(20)).status()));
  }
}

/// Sends an empty message, which is not a note, with a file.
void SendEmpty(const FileDescriptor& socket, const FileDescriptor& file) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header = {};
  header.msg_control = control;
  header.msg_controllen = CMSG_LEN(sizeof(int));
  cmsghdr* const part = CMSG_FIRSTHDR(&header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = file.get();
  std::memcpy(CMSG_DATA(part), &fd, sizeof(fd));
  ASSERT_EQ(sendmsg(socket.get(), &header, 0), 0);
}

TEST(LocalNotesTest, TheFileOfAnEmptyMessageIsClosed) {
  const Pair pair = Connected();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const FileDescriptor reading(ends[0]);
  {
    const FileDescriptor writing(ends[1]);
    SendEmpty(pair.worker, writing);
  }

  EXPECT_TRUE(absl::IsUnavailable(ReceiveNote(pair.server, absl::Seconds(20)).status()));

  ASSERT_EQ(fcntl(reading.get(), F_SETFL, O_NONBLOCK), 0);
  char byte = 0;
  EXPECT_EQ(read(reading.get(), &byte, 1), 0) << "the end that writes is still open";
}

}  // namespace
}  // namespace slipstream

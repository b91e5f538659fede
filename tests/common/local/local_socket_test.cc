#include "common/local/local_socket.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace slipstream {
namespace {

TEST(LocalSocketTest, CarriesBytesBothWaysBetweenProcessesOfOneUser) {
  const std::string name = NewLocalName();
  const FileDescriptor listening = ListenLocally(name).value();
  const FileDescriptor client = ConnectLocally(name).value();
  const FileDescriptor server = AcceptLocally(listening).value();
  EXPECT_TRUE(CheckSameUser(client).ok());
  EXPECT_TRUE(CheckSameUser(server).ok());

  char byte = 'a';
  ASSERT_EQ(write(client.get(), &byte, 1), 1);
  ASSERT_EQ(read(server.get(), &byte, 1), 1);
  ASSERT_EQ(write(server.get(), "b", 1), 1);
  ASSERT_EQ(read(client.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'b');
}

TEST(LocalSocketTest, NamesAreDifferent) { EXPECT_NE(NewLocalName(), NewLocalName()); }

TEST(LocalSocketTest, NobodyThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(ConnectLocally(NewLocalName()).status()));
  EXPECT_TRUE(absl::IsNotFound(ConnectLocally(std::string(200, 'x')).status()));
}

TEST(LocalSocketTest, NobodyWaitingIsUnavailable) {
  const FileDescriptor listening = ListenLocally(NewLocalName()).value();
  EXPECT_TRUE(absl::IsUnavailable(AcceptLocally(listening).status()));
}

TEST(LocalSocketTest, ANameIsListenedOnOnce) {
  const std::string name = NewLocalName();
  const FileDescriptor listening = ListenLocally(name).value();
  EXPECT_TRUE(absl::IsResourceExhausted(ListenLocally(name).status()));
}

TEST(LocalSocketTest, AProcessThatIsKilledLeavesTheNameFree) {
  const std::string name = NewLocalName();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const absl::StatusOr<FileDescriptor> listening = ListenLocally(name);
    const bool told = write(ready[1], "x", 1) == 1;
    while (told && listening.ok()) pause();
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(ConnectLocally(name).ok());
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  close(ready[0]);
  close(ready[1]);

  EXPECT_TRUE(ListenLocally(name).ok());
}

TEST(LocalSocketTest, AnotherUserIsTold) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  const std::string name = NewLocalName();
  const FileDescriptor listening = ListenLocally(name).value();
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (setuid(kNobody) != 0) _exit(1);
    const absl::StatusOr<FileDescriptor> socket = ConnectLocally(name);
    // To the child, the listening process belongs to another user, root.
    _exit(socket.ok() && absl::IsPermissionDenied(CheckSameUser(*socket)) ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 1) GTEST_SKIP() << "this user namespace has no other user";
  EXPECT_EQ(status, 0);
  const FileDescriptor server =
      AcceptLocally(listening).value();  // The kernel remembers the peer's user.
  EXPECT_TRUE(absl::IsPermissionDenied(CheckSameUser(server)));
}

}  // namespace
}  // namespace slipstream

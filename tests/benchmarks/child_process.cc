#include "tests/benchmarks/child_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace slipstream::benchmarks {

void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "benchmark: %s\n", what.c_str());
  std::_Exit(1);
}

// These exit without a message: the benchmark is over, or the process that is gone has said why.

void Pipe::Send(double number) {
  if (write(descriptor_, &number, sizeof number) != sizeof number) std::_Exit(1);
}

double Pipe::Receive() {
  double number = 0;
  if (read(descriptor_, &number, sizeof number) != sizeof number) std::_Exit(1);
  return number;
}

ChildProcess::ChildProcess(const std::function<void(Pipe)>& body) {
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  child_ = fork();
  Require(child_ >= 0, "fork");
  if (child_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    body(Pipe(ends[1]));
    std::_Exit(0);
  }
  close(ends[1]);
  descriptor_ = ends[0];
}

ChildProcess::~ChildProcess() {
  close(descriptor_);
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

}  // namespace slipstream::benchmarks

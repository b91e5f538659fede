#ifndef SLIPSTREAM_TESTS_BENCHMARKS_CHILD_PROCESS_H_
#define SLIPSTREAM_TESTS_BENCHMARKS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>

namespace slipstream::benchmarks {

/// Unless `condition` holds, ends this process with a line that says what went wrong.
void Require(bool condition, const std::string& what);

/// One end of a pipe between two processes of a benchmark. This process exits if the other end is
/// closed.
class Pipe {
 public:
  explicit Pipe(int descriptor) : descriptor_(descriptor) {}

  void Send(double number);
  double Receive();

 private:
  int descriptor_;
};

/// A process of its own for a contender's server or worker, so that no contender profits from
/// settings that another one made for the whole process. It is forked: make all children before the
/// first thread.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void(Pipe)>& body);

  /// Kills the child and waits for it.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  Pipe pipe() const { return Pipe(descriptor_); }

 private:
  int descriptor_ = -1;
  pid_t child_ = -1;
};

}  // namespace slipstream::benchmarks

#endif  // SLIPSTREAM_TESTS_BENCHMARKS_CHILD_PROCESS_H_

#include "deploy/psctl/run/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/files/output_file.h"

namespace slipstream {

std::vector<std::string> ChildEnvironment(const char* const* block) {
  std::vector<std::string> inherited;
  for (; *block != nullptr; ++block) {
    if (!std::string_view(*block).starts_with("PS_")) inherited.emplace_back(*block);
  }
  return inherited;
}

namespace {

/// A descriptor that is closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { Close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

int OpenForAppending(const std::string& path) { return OpenOutput(path, O_APPEND, 0644); }

absl::Status FileError(const std::string& path, int error) {
  return absl::NotFoundError("cannot open " + path + ": " + WhyNoOutput(error));
}

/// The child's arguments and environment, made before fork. Between fork and exec only
/// async-signal-safe calls are allowed, because gRPC's threads may have held any lock.
struct ChildPlan {
  std::vector<char*> arguments;    // Ends with nullptr.
  std::vector<char*> environment;  // Likewise.
  int stdin_fd;
  int stdout_fd;
  int stderr_fd;
  int error_fd;
  pid_t parent;
  cpu_set_t cores;
  bool is_pinned;
};

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Leaves SIGUSR1 ignored: batch systems send it to all processes, and programs of users would end.
void RestoreDefaultSignals() {
  std::signal(SIGUSR1, SIG_IGN);
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR2}) {
    struct sigaction old = {};
    sigaction(signal, nullptr, &old);
    const bool stays_ignored = signal == SIGHUP && old.sa_handler == SIG_IGN;  // By nohup.
    if (!stays_ignored) sigaction(signal, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  RestoreDefaultSignals();
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (plan.is_pinned) sched_setaffinity(0, sizeof plan.cores, &plan.cores);
  // The parent may have died before the line above.
  if (getppid() != plan.parent) _exit(1);
  if (dup2(plan.stdin_fd, STDIN_FILENO) >= 0 && dup2(plan.stdout_fd, STDOUT_FILENO) >= 0 &&
      dup2(plan.stderr_fd, STDERR_FILENO) >= 0) {
    execve(plan.arguments.front(), plan.arguments.data(), plan.environment.data());
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(plan.error_fd, &error, sizeof error);
  _exit(127);
}

/// Returns the errno of a failed start, or 0 once the program runs and its start has closed the
/// pipe.
int ReadStartError(int fd) {
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(fd, &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  return count == sizeof error ? error : 0;
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const Options& options) {
  PS_CHECK(!options.command.empty());
  const Descriptor stdin_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor stdout_fd(OpenForAppending(options.stdout_path));
  if (stdout_fd.get() < 0) return FileError(options.stdout_path, errno);
  const Descriptor stderr_fd(OpenForAppending(options.stderr_path));
  if (stderr_fd.get() < 0) return FileError(options.stderr_path, errno);
  std::array<int, 2> pipe_fds = {};
  PS_CHECK(pipe2(pipe_fds.data(), O_CLOEXEC) == 0);
  const Descriptor error_read(pipe_fds[0]);
  Descriptor error_write(pipe_fds[1]);

  Options strings = options;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : options.cores) CPU_SET(static_cast<size_t>(core), &cores);
  const ChildPlan plan = {.arguments = Pointers(strings.command),
                          .environment = Pointers(strings.environment),
                          .stdin_fd = stdin_fd.get(),
                          .stdout_fd = stdout_fd.get(),
                          .stderr_fd = stderr_fd.get(),
                          .error_fd = error_write.get(),
                          .parent = getpid(),
                          .cores = cores,
                          .is_pinned = !options.cores.empty()};
  const pid_t pid = fork();
  if (pid < 0) return absl::ResourceExhaustedError(std::string("fork: ") + strerror(errno));
  if (pid == 0) RunChild(plan);
  error_write.Close();
  ChildProcess child(pid, static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (child.fd() < 0) return absl::InternalError(std::string("pidfd_open: ") + strerror(errno));
  if (const int error = ReadStartError(error_read.get()); error != 0) {
    return absl::NotFoundError("cannot start " + options.command.front() + ": " + strerror(error));
  }
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      fd_(std::exchange(other.fd_, -1)),
      end_(std::exchange(other.end_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    Release();
    pid_ = std::exchange(other.pid_, -1);
    fd_ = std::exchange(other.fd_, -1);
    end_ = std::exchange(other.end_, std::nullopt);
  }
  return *this;
}

ChildProcess::~ChildProcess() { Release(); }

std::optional<ChildProcess::End> ChildProcess::Poll() {
  if (end_ || pid_ < 0) return end_;
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    PS_CHECK(errno == EINTR);
    return std::nullopt;
  }
  if (info.si_pid != pid_) return std::nullopt;
  // The process is not reaped yet, so nobody else can have its id or its group's.
  kill(-pid_, SIGKILL);
  int status = 0;
  struct rusage usage = {};
  PS_CHECK(wait4(pid_, &status, 0, &usage) == pid_);
  end_ = WIFSIGNALED(status) ? End{.exit_code = 0, .signal = WTERMSIG(status)}
                             : End{.exit_code = WEXITSTATUS(status), .signal = 0};
  end_->cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
  end_->peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return end_;
}

void ChildProcess::Signal(int signal) {
  if (pid_ > 0 && !end_) kill(-pid_, signal);
}

void ChildProcess::Release() {
  if (fd_ >= 0) close(fd_);
  if (pid_ < 0 || end_) return;
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace slipstream

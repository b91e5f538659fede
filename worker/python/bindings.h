#ifndef SLIPSTREAM_WORKER_PYTHON_BINDINGS_H_
#define SLIPSTREAM_WORKER_PYTHON_BINDINGS_H_

#include <pybind11/pybind11.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/secure_credentials.h"
#include "common/security/credential_files.h"
#include "worker/python/operations.h"

/// This file has what the classes of the extension module share.

namespace slipstream {

namespace py = pybind11;

/// A failure, to be raised as the exception of its code.
class Failure : public std::exception {
 public:
  explicit Failure(const absl::Status& status)
      : code_(absl::StatusCodeToString(status.code())), message_(status.message()) {}

  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& code() const { return code_; }

 private:
  std::string code_;
  std::string message_;
};

inline void Check(const absl::Status& status) {
  if (!status.ok()) throw Failure(status);
}

/// Returns the credentials of a process with these files, by name: ca, certificate, key, token.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsOf(
    const std::map<std::string, std::string>& files, CertifiedRole role,
    std::optional<uint32_t> number);

/// Fails in a process that was forked from `process`, which has the threads that do the work.
void CheckProcess(pid_t process);

/// An operation and what it returns. The value is made when it is asked for, by a thread that holds
/// the interpreter's lock.
class PendingResult {
 public:
  PendingResult(std::shared_ptr<Operation> operation, std::function<py::object()> value)
      : operation_(std::move(operation)), value_(std::move(value)) {}

  bool Wait(double seconds) {
    CheckProcess(process_);
    if (operation_->is_over()) return true;
    const py::gil_scoped_release release;
    return operation_->Wait(absl::Seconds(seconds));
  }

  py::object Value() {
    Check(operation_->status());
    return value_();
  }

 private:
  const pid_t process_ = getpid();
  const std::shared_ptr<Operation> operation_;
  const std::function<py::object()> value_;
};

inline py::object None() { return py::none(); }

/// Memory of a session, or of its own, as an object with Python's buffer protocol.
struct Arena {
  std::span<float> values;
  std::shared_ptr<std::vector<float>> owned = nullptr;
};

/// Memory for whole models that is used again once Python has let go of it: fresh pages cost more
/// than filling them.
///
/// Not thread-safe: one owner.
class ModelMemories {
 public:
  using Memory = std::shared_ptr<std::vector<float>>;

  /// Keeps `most` of them, whether Python has let go of them or not.
  explicit ModelMemories(size_t most) : most_(most) {}

  /// Returns memory for so many values, the same number each time. What is in it has no meaning.
  Memory Take(size_t values) {
    const auto is_free = [](const Memory& memory) { return memory.use_count() == 1; };
    const auto found = std::ranges::find_if(memories_, is_free);
    if (found != memories_.end()) return *found;
    if (memories_.size() >= most_) memories_.erase(memories_.begin());
    memories_.push_back(std::make_shared<std::vector<float>>(values));
    return memories_.back();
  }

 private:
  const size_t most_;
  std::vector<Memory> memories_;
};

/// A state that calls from Python use, one after another, on a thread of its own: a call returns at
/// once, and its result is waited for. State has an Interruption `interruption`, whose Stop ends
/// all waits, and a function Release, which gives up what the state holds.
template <typename State>
class Operated {
 public:
  Operated() = default;

  // NOLINTNEXTLINE(bugprone-exception-escape): pybind11 throws where the interpreter is broken.
  ~Operated() {
    if (getpid() != process_) {
      // The threads that would have to end are not in this process.
      (void)operations_.release();
      (void)new (std::nothrow) std::shared_ptr<State>(state_);
      return;
    }
    const py::gil_scoped_release release;
    state_->interruption.Stop();
    operations_.reset();
    state_->Release();
  }
  Operated(const Operated&) = delete;
  Operated& operator=(const Operated&) = delete;

  /// Begins `work`; `value` makes its result for Python.
  PendingResult Begin(const std::function<absl::Status(State&)>& work,
                      std::function<py::object()> value = None) {
    CheckProcess(process_);
    newest_ = operations_->Begin([state = state_, work] { return work(*state); });
    return {newest_, std::move(value)};
  }

  /// Waits until no operation is under way, or a signal's handler raises an exception.
  void AwaitIdle() {
    CheckProcess(process_);
    for (;;) {
      const std::shared_ptr<Operation> newest = newest_;
      if (newest == nullptr || newest->is_over()) return;
      {
        const py::gil_scoped_release release;
        newest->Wait(absl::Milliseconds(100));
      }
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
  }

  /// Ends all waits, and then does `last`, for half a minute at most.
  void End(const std::function<absl::Status(State&)>& last) {
    CheckProcess(process_);
    const py::gil_scoped_release release;
    state_->interruption.Stop();
    operations_->Begin([state = state_, last] { return last(*state); })->Wait(absl::Seconds(30));
  }

  /// The state, for a call while no operation is under way.
  const std::shared_ptr<State>& state() const {
    CheckProcess(process_);
    return state_;
  }

 private:
  const pid_t process_ = getpid();
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::unique_ptr<Operations> operations_ = std::make_unique<Operations>();
  std::shared_ptr<Operation> newest_;  // The operation begun last; null before the first.
};

/// Adds the class Reader, a subscription to a run's versions.
void DefineReader(py::module_& module);

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_PYTHON_BINDINGS_H_

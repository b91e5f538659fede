#ifndef SLIPSTREAM_WORKER_CLIENT_RAW_CALL_H_
#define SLIPSTREAM_WORKER_CLIENT_RAW_CALL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/awake_wait.h"
#include "worker/client/cancel_switch.h"

namespace slipstream {

/// One streaming call of any kind whose messages in both directions are bytes.
///
/// Every operation waits at most until its deadline, a time of SteadyNow. An operation that does
/// not end by then cancels the call, except ReadBy. Each call has its own completion queue, so the
/// calling thread itself moves the bytes. This is as fast as gRPC's blocking calls, which support
/// deadlines only for whole calls.
///
/// A read may stay under way while the owner writes or does other work. Read polls instead of
/// sleeping while it expects a message soon, see awake_wait.h.
///
/// Not thread-safe: one owner; other threads may throw its CancelSwitch.
class RawCall {
 public:
  /// `method` is /package.Service/Method. `cancel` may be null; otherwise it must outlive the call.
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
          CancelSwitch* cancel, absl::Time deadline);

  /// Cancels and finishes the call, unless Finish was called.
  ~RawCall();
  RawCall(const RawCall&) = delete;
  RawCall& operator=(const RawCall&) = delete;

  /// The caller's next action after a Write.
  enum class Next {
    kWrites,  // gRPC may hold back the end of this message for the next one.
    kReads,   // The rest of this message is sent while the read waits.
    // No thread moves bytes until the next call, so Write returns once the kernel has all of them.
    kPauses,
  };

  /// Writes a message. Returns false if the call is over; Finish then says why.
  bool Write(const grpc::ByteBuffer& message, Next next, absl::Time deadline);

  /// Ends the writing side. If the call is already over, the next operation reports it.
  void WritesDone(absl::Time deadline);

  /// Reads a message. Returns false if there are no more; Finish then says why.
  bool Read(grpc::ByteBuffer& message, absl::Time deadline);

  enum class Came { kMessage, kNothingYet, kEnd };

  /// Reads like Read, but always sleeps while it waits. If no message arrives by `deadline`, the
  /// call and the read stay under way.
  Came ReadBy(grpc::ByteBuffer& message, absl::Time deadline);

  /// Begins a read, which the next Read or ReadBy completes.
  void ReadAhead();

  /// True if the read under way is over: a message has arrived, or the call has ended. Does not
  /// wait.
  bool HasReadAhead();

  /// Ends the call and returns its status. Call it after an operation returned false; otherwise it
  /// waits for the peer to end the call.
  absl::Status Finish(absl::Time deadline);

  /// Lets the transport work for `duration`, though no operation is waited for.
  void Poll(absl::Duration duration);

 private:
  /// The state of an operation; the operation's completion-queue tag points to it.
  struct Operation {
    bool is_under_way = false;
    bool has_succeeded = false;
  };
  void* Begin(Operation& operation);

  /// Waits until the operation ends; cancels the call if it does not end by `deadline`. Returns
  /// whether it succeeded.
  bool Await(Operation& operation, absl::Time deadline);

  /// Lets the transport work until the operation is over or `deadline` passes. Returns whether it
  /// is over.
  bool Pump(const Operation& operation, gpr_timespec deadline);
  bool IsOver(const Operation& operation);
  Came TakeRead(grpc::ByteBuffer& message);

  CancelSwitch* const cancel_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  Operation start_;
  Operation write_;
  Operation read_;
  bool has_begun_read_ = false;  // From ReadAhead until its result is taken.
  grpc::ByteBuffer message_;     // The message that the read brings.
  AwakeWait read_wait_;
  bool is_late_ = false;
  bool is_finished_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RAW_CALL_H_

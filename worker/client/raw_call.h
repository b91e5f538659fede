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

/// One streaming call, of any kind, whose messages both ways are bytes.
///
/// Every operation waits, at most until its deadline, a time of SteadyNow; one that does not end by
/// then cancels the call, but for ReadBy. It waits on a completion queue of its own, so that the
/// calling thread itself moves the bytes, as fast as gRPC's blocking calls do, which know deadlines
/// only for whole calls.
///
/// A read may stay under way while the owner writes, or does something else. Read stays awake for
/// messages that come soon, see awake_wait.h.
///
/// Not thread-safe: one owner; other threads may throw its switch.
class RawCall {
 public:
  /// `method` is /package.Service/Method. `cancel` may be null; it must outlive the call.
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
          CancelSwitch* cancel, absl::Time deadline);

  /// Ends the call, if Finish has not.
  ~RawCall();
  RawCall(const RawCall&) = delete;
  RawCall& operator=(const RawCall&) = delete;

  /// What the caller does after a Write.
  enum class Next {
    kWrites,  // The end of the message may be held back for the next one.
    kReads,   // The rest of the message leaves while that waits.
    kPauses,  // Nobody moves bytes meanwhile, so Write returns once the kernel has them all.
  };

  /// False if the call is over: Finish tells why.
  bool Write(const grpc::ByteBuffer& message, Next next, absl::Time deadline);

  /// Nothing more will be written. Where the call is over already, what follows shows it.
  void WritesDone(absl::Time deadline);

  /// False if there is nothing more to read: Finish tells why.
  bool Read(grpc::ByteBuffer& message, absl::Time deadline);

  enum class Came { kMessage, kNothingYet, kEnd };

  /// Reads as Read does, but asleep; if nothing has come by then, the call and the read go on.
  Came ReadBy(grpc::ByteBuffer& message, absl::Time deadline);

  /// Begins what the next read then goes on with.
  void ReadAhead();

  /// The read under way is over: a message is there, or the call has ended. Does not wait.
  bool HasReadAhead();

  /// The call's status. After a false from above; otherwise it waits for the peer to end the call.
  absl::Status Finish(absl::Time deadline);

  /// Lets the transport work for this long although nothing is waited for.
  void Poll(absl::Duration duration);

 private:
  /// An operation under way, to which its tag points.
  struct Operation {
    bool is_under_way = false;
    bool has_succeeded = false;
  };
  void* Begin(Operation& operation);

  /// Waits for the end of the operation, and cancels the call if that does not come by then;
  /// whether it succeeded.
  bool Await(Operation& operation, absl::Time deadline);

  /// Lets the transport work until the operation is over or the time is; whether it is over.
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
  bool has_begun_read_ = false;  // Until its result is taken.
  grpc::ByteBuffer message_;     // That it brings.
  AwakeWait read_wait_;
  bool is_late_ = false;
  bool is_finished_ = false;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_WORKER_CLIENT_RAW_CALL_H_

#ifndef SLIPSTREAM_SERVER_CONTROL_PLANE_QUESTION_STREAM_H_
#define SLIPSTREAM_SERVER_CONTROL_PLANE_QUESTION_STREAM_H_

#include <grpcpp/support/server_callback.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/rpc/status_conversion.h"
#include "server/control_plane/coordinator_call.h"
#include "server/control_plane/open_streams.h"
#include "server/listen/caller.h"
#include "server/listen/latest_calls.h"

namespace slipstream {

/// A stream of questions and answers that stays open. It reads a question, waits for the answer,
/// writes the answer unless it may be omitted, and reads the next question. An answer that is an
/// error ends the stream. The object deletes itself when gRPC is done with it.
///
/// Only one of reading, waiting and writing goes on at a time, and the callback that ends it owns
/// the members. Only the client's cancellation comes at any time, from another thread.
template <typename Request, typename Reply>
class QuestionStream final : public grpc::ServerBidiReactor<Request, Reply>,
                             public CoordinatorCall {
 public:
  /// Asks the question at hand, which is answered through OnAnswer, now or later.
  using Ask = std::function<void(QuestionStream&)>;

  /// Called when the client waits no longer: a question that was not answered yet is to be
  /// answered.
  using GiveUp = std::function<void(QuestionStream&)>;

  /// All streams of a service share this. It must outlive them.
  struct Place {
    OpenStreams& streams;      // If it takes no more, the call is refused.
    Connections* connections;  // May be null.
    LatestCalls& latest;       // The latest calls of one method.
  };

  static QuestionStream* Start(grpc::CallbackServerContext* context, const Place& place, Ask ask,
                               GiveUp give_up) {
    auto* stream = new QuestionStream(context, place, std::move(ask), std::move(give_up));
    absl::Status admitted = stream->caller_.Admit();
    if (admitted.ok()) admitted = place.streams.Add(context);
    if (admitted.ok()) {
      stream->ReadNext();
    } else {
      stream->Finish(ToGrpc(admitted));
    }
    return stream;
  }

  /// The question at hand, and its reply, which is an empty message when the question is asked.
  const Request& request() const { return request_; }
  Reply& reply() { return reply_; }

  /// Notes that the question at hand is this member's. Once it is answered, other streams of the
  /// method that bring the member's questions are ended. May be called under a lock.
  void IsOf(WorkerId worker) { worker_ = worker; }

  Caller& caller() override { return caller_; }

  /// Notes that the reply need not be sent if it equals the last one.
  void OmitRepetition() { omits_repetition_ = true; }

  void OnAnswer(const absl::Status& status) override {
    if (!status.ok()) return this->Finish(ToGrpc(status));
    if (worker_.has_value()) latest_.Claim({.worker = *worker_});
    std::string said = reply_.SerializeAsString();
    if (omits_repetition_ && said == said_last_) return ReadNext();
    said_last_ = std::move(said);
    this->StartWrite(&reply_);
  }

 private:
  QuestionStream(grpc::CallbackServerContext* context, const Place& place, Ask ask, GiveUp give_up)
      : context_(context),
        streams_(place.streams),
        ask_(std::move(ask)),
        give_up_(std::move(give_up)),
        caller_(place.connections, context->c_call()),
        latest_(place.latest, context->c_call()) {}

  void ReadNext() {
    request_.Clear();
    reply_.Clear();
    omits_repetition_ = false;
    this->StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return this->Finish(grpc::Status::OK);
    ask_(*this);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return this->Finish(grpc::Status::OK);
    ReadNext();
  }
  void OnCancel() override { give_up_(*this); }
  void OnDone() override {
    streams_.Remove(context_);
    delete this;
  }

  grpc::CallbackServerContext* const context_;
  OpenStreams& streams_;
  const Ask ask_;
  const GiveUp give_up_;

  Caller caller_;
  LatestCalls::Entry latest_;
  std::optional<WorkerId> worker_;  // The member that asks.
  Request request_;
  Reply reply_;
  bool omits_repetition_ = false;
  std::optional<std::string> said_last_;
};

}  // namespace slipstream

#endif  // SLIPSTREAM_SERVER_CONTROL_PLANE_QUESTION_STREAM_H_

#ifndef SLIPSTREAM_TESTS_SIMULATION_SCRIPTED_RUN_H_
#define SLIPSTREAM_TESTS_SIMULATION_SCRIPTED_RUN_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/core/coordinator/coordinator.h"
#include "server/core/shard/shard_machine.h"

namespace slipstream {

/// A coordinator and the machines of two shards, without network, threads and values: what happens
/// is a list of commands, one in a line. W is a worker's id, S a shard's.
///
///   run [key=value ...]     begins a run: two workers, 4 mini-batches of 10 examples, and settings
///   begin [key=value ...]   does the same, and goes on to where both workers have joined, worker 0
///                           has sent the initial weights, and training has begun
///   sync [S]                the servers (or one) report and take orders, until there are no newer
///   join W | prepare W      registers and names the model | asks for it again
///   initialize W            sends the initial weights to both shards
///   beat W [UNIT DONE]      sends a heartbeat, with how much of a unit is done
///   work W [STAGE]          asks for work
///   leave W [why]           ends the membership
///   measure W LOSS          reports the evaluation that was ordered from the worker
///   pull W S | read S       asks for weights, to train on | as a reader
///   push W S [word ...]     pushes a gradient of the weights that the shard gave last, and asks
///   for
///                           more. Words: base=3 sequence=2 batches=4+2 examples=5 clock=7 slot=1
///                           nan, empty (an excuse), only (asks for no weights), rests
///   again W S               repeats the last push
///   publish S | cancel CALL the update is made | the caller is gone
///   kill S | restart S      the server's process ends | another one comes with what was saved
///   pass SECONDS            time passes, in seconds, after each of which servers report
///   change key=value ... | save | end       an operator's calls
///
/// Not thread-safe: one owner.
class ScriptedRun {
 public:
  /// Carries out one command. Returns what follows from it, line by line: notes, answers, folds,
  /// updates and saves, and the states that have changed.
  std::string Do(const std::string& command);

 private:
  using Words = std::vector<std::string>;

  struct Server {
    ShardMachine machine;
    uint64_t instance = 0;
    bool is_up = true;
    std::optional<ShardState> saved;
    std::optional<ShardState> to_save;  // Once its version is published.
    std::map<PushId, uint64_t> bytes_held;
    std::map<CallId, Reader> pulls;
    std::string state;  // As it was told last.
  };

  /// The knowledge that a worker has of one shard.
  struct Lane {
    Generation generation{};
    Sequence sequence{};
    WorkerClock clock{};
    Version base{};
    std::optional<PushFacts> last;
  };

  struct Worker {
    Identity identity;
    BatchRange batches = {.count = 1};  // Of the next push.
    std::map<uint32_t, Lane> lanes;     // By shard.
  };

  void Run(const Words& words);
  void Begin(const Words& words);
  void Sync(uint32_t shard);
  void SyncAll();
  void Join(uint32_t worker);
  void Prepare(uint32_t worker);
  void Initialize(uint32_t worker);
  void Beat(uint32_t worker, const Words& words);
  void Work(uint32_t worker, const Words& words);
  void Measure(uint32_t worker, const Words& words);
  void Pull(uint32_t worker, uint32_t shard);
  void Read(uint32_t shard);
  void Push(uint32_t worker, uint32_t shard, const Words& words);
  void SendPush(uint32_t worker, uint32_t shard, PushFacts facts);
  void Publish(uint32_t shard);
  void Cancel(uint64_t call);
  void Restart(uint32_t shard);
  void Pass(uint32_t seconds);
  void Change(const Words& words);

  void Carry(uint32_t shard, const ShardOutput& output);
  void Answer(uint32_t shard, const ShardAnswer& answer);

  /// Tells a status, if it is an error, and whatever has changed.
  void Tell(const absl::Status& status);
  void TellStates();
  void Line(std::string text) { out_ += text + "\n"; }

  absl::Time now_ = absl::UnixEpoch();
  RunSpec spec_;
  std::optional<Coordinator> coordinator_;
  std::map<uint32_t, Server> servers_;
  std::map<uint32_t, Worker> workers_;
  std::map<CallId, uint32_t> callers_;  // The workers whose calls wait or were just made.
  uint64_t calls_ = 0;
  std::string coordinator_state_;
  std::string out_;
};

/// Carries out the commands of a script. Returns it with what each command brings about, indented
/// below the command, in the place of indented lines that it has already. Lines that begin with #,
/// and empty ones, stay.
std::string TranscriptOfScript(const std::string& script);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_SCRIPTED_RUN_H_

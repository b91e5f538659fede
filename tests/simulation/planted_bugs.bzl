"""The planted bugs: mistakes that a parameter server was or could be built with. The simulator has to
find each, or its silence would mean nothing.

A bug changes the text of a source of production, or of a shell that plays production's part, where
PLANTED stands for whether that bug is the one to simulate. A bug may change the text of one above it. The program simulate_planted has all bugs,
and does what $PLANTED_BUG names. It compiles the sources with bugs itself: the linker takes an object of
a library only for functions that the program does not define, so these replace the library's.
"""

load("//tests/support:python_test.bzl", "python_test")

# The sources in which bugs are planted, as the libraries compile them: several as one.
SOURCES = [
    "//common/policy:policy_together",
    "//common/protocol:composite_push.cc",
    "//server/core/coordinator:coordinator_together",
    "//server/core/shard:shard_together",
    "//server/control_plane:control_plane_together",
    "//server/data_plane:data_plane_together",
    "//server/storage:storage_together",
    "//tests/simulation:simulator_together",
    "//worker/client:client_together",
    "//worker/core:core_together",
]

# How many of these may have bugs.
SOURCES_MAX = 16

# Name: (path of the source, [(text to replace, replacement)])
PLANTED_BUGS = {
    # A repeated push counts again.
    "duplicate_check_off": ("server/core/shard/shard_machine.cc", [(
        "Decide(facts, output)",
        "Decide([&] {" +
        "  PushFacts again = facts;" +
        "  const Identity& sender = facts.header.identity;" +
        "  if (PLANTED && members().Find(sender.worker, sender.incarnation) != nullptr)" +
        "    again.header.sequence = members().At(sender.worker).expected();" +
        "  return again;" +
        "}(), output)",
    )]),
    # A synchronous round closes when the number of pushes equals the number of members.
    "rounds_closed_by_count": ("common/policy/policies.cc", [(
        "if (shard.awaited > 0)",
        "if (PLANTED ? shard.member_count > shard.contributions + shard.excused" +
        "            : shard.awaited > 0)",
    )]),
    # The base version is taken when the push is applied, not when its weights were read.
    "base_fixed_late": ("server/core/shard/shard_machine.cc", [(
        "  PushFacts again = facts;",
        "  PushFacts again = facts; if (PLANTED) again.header.base = decided();",
    )]),
    # A call is answered when its version is ordered, before it is published.
    "answers_early": ("server/core/shard/pull_judge.cc", [(
        "if (version > published() &&",
        "if (version > (PLANTED ? decided() : published()) &&",
    )]),
    # A worker just beyond the allowed lead over the slowest goes on.
    "condition_released_too_early": ("server/core/shard/member_pace.cc", [(
        "return *slowest_;",
        "return WorkerClock{Value(*slowest_) + (PLANTED ? 1 : 0)};",
    )]),
    # A worker that waited for the slowest goes on without the slowest's pushes.
    "released_before_it_is_seen": ("server/core/shard/member_pace.cc", [(
        "{.version = std::max(condition.version, decided)};",
        "{.version = PLANTED ? condition.version : std::max(condition.version, decided)};",
    )]),
    # A version of weights that change in place is published once as many gradients were added, whichever.
    "added_is_not_what_is_counted": ("server/data_plane/shard.cc", [(
        "made_early_.emplace(*job.version(),",
        "made_early_.emplace(PLANTED ? Next(machine_.published()) : *job.version(),",
    )]),
    # A change while the run trains reaches shard 0 alone.
    "change_on_one_shard": ("server/core/shard/shard_machine.cc", [(
        "while (state_.run.stage < stage) EnterNextStage();",
        "while (state_.run.stage < stage &&" +
        "       (!PLANTED || rules_.is_first() ||" +
        "        !rules_.StagesOf(state_.run)[state_.run.stage + 1].begins_at_once))" +
        "  EnterNextStage();",
    )]),
    # A cancelled call stays among the calls that wait.
    "forgets_cancellation": ("server/core/shard/waiting_calls.cc", [(
        "return waiting.second.call == call;",
        "return waiting.second.call == call && !PLANTED;",
    )]),
    # The draft made while a push arrives is used, even if its forecast was wrong.
    "draft_kept_after_wrong_forecast": ("server/data_plane/training_state.cc", [
        (
            "= draft_.lock();",
            "= !PLANTED ? draft_.lock() : job.folds.empty() ? nullptr : job.folds.front().payload.draft;",
        ),
        (
            "job.update.has_value() && job.update->is_drafted",
            "job.update.has_value() && (PLANTED || job.update->is_drafted)",
        ),
    ]),
    # If the answer to a push was lost, the error of its rounding is lost for good.
    "residual_lost_on_repetition": ("worker/client/push_encoder.cc", [(
        "!Counts(reply)",
        "(PLANTED ? reply.outcome != PushOutcome::kApplied && reply.outcome != PushOutcome::kBuffered" +
        "         : !Counts(reply))",
    )]),
    # Base weights are released when the next version is published, not with their last gradient.
    "base_recycled_too_early": ("server/data_plane/shard.cc", [(
        "for (const Version version : machine_.TakeBasesReleased()) bases_.erase(version);",
        "for (const Version version : machine_.TakeBasesReleased()) bases_.erase(version);" +
        "if (PLANTED)" +
        "  std::erase_if(bases_, [&](const auto& b) { return b.first != machine_.published(); });",
    )]),
    # A worker that comes back keeps the record of its older incarnation.
    "record_survives_incarnation": ("server/core/shard/member_table.cc", [
        (
            "if (Find(member.worker, member.incarnation) != nullptr) {",
            "if (PLANTED ? records_.contains(member.worker)" +
            "            : Find(member.worker, member.incarnation) != nullptr) {",
        ),
        (
            "records_.erase(member.worker);",
            "records_.erase(member.worker); if (PLANTED) record.incarnation = member.incarnation;",
        ),
    ]),
    # Gradients that an open round has taken are lost when a worker joins or leaves.
    "accrued_gradients_lost_at_a_view_change": ("server/core/shard/shard_machine.cc", [(
        "state_.members.InstallView(view);",
        "state_.members.InstallView(view); if (PLANTED) state_.open.round = rules_.NewRound();",
    )]),
    # Two gradients under way at once make up for each other's errors of encoding.
    "residual_shared_by_two_slots": ("worker/client/push_encoders.cc", [(
        "&encoders_[slot][Value(shard)]",
        "&encoders_[PLANTED ? 0 : slot][Value(shard)]",
    )]),
    # Another policy takes over on the first shard alone.
    "schedule_applied_on_one_shard_only": ("server/core/shard/shard_rules.cc", [(
        "stage_ = stages[run.stage];",
        "stage_ = stages[!PLANTED || is_first() ? run.stage : 0];",
    )]),
    # Workers whose pushes have unequal numbers of steps send fragments in unequal orders.
    "fragments_in_unequal_orders": ("worker/core/fragments.cc", [(
        "steps * fragment / count_ > taken",
        "(PLANTED ? steps * fragment / count_ != taken : steps * fragment / count_ > taken)",
    )]),
    # A composite counts though one of its parts has come another way.
    "composite_counted_again": ("server/core/shard/composite_judge.cc", [(
        "!judge_.IsNext(push)",
        "(PLANTED ? push.sequence > state_.members.At(part.worker).expected() : !judge_.IsNext(push))",
    )]),
    # The second part of a composite is in the weights, but its worker's record does not say so.
    "composite_loses_a_part": ("server/core/shard/push_counting.cc", [(
        "member.RecordAnswer(push.sequence, own.checksum,",
        "if (!PLANTED || part != 2) member.RecordAnswer(push.sequence, own.checksum,",
    )]),
    # A shard cannot recognise the push of a worker that it has counted as a part.
    "composite_without_checksums": ("common/protocol/composite_push.cc", [(
        ".checksum = checksum}",
        ".checksum = PLANTED ? 0 : checksum}",
    )]),
    # A shard that went on from a checkpoint takes pushes that were computed before.
    "return_keeps_old_generation": ("server/core/shard/push_judge.cc", [(
        "if (header.generation == generation()) return std::nullopt;",
        "if (header.generation == generation() || (PLANTED && header.generation < generation()))" +
        " return std::nullopt;",
    )]),
    # A shard that went on from a checkpoint expects the sequences of its older generation.
    "sequences_survive_a_generation": ("server/core/shard/member_table.cc", [(
        "record.last_sequence = {};",
        "if (!PLANTED) record.last_sequence = {};",
    )]),
    # The state is saved while the open round holds contributions, which are in no version.
    "save_of_undone_round": ("server/core/shard/save_schedule.cc", [(
        "= is_round_empty && last_saved_ != decided;",
        "= (PLANTED || is_round_empty) && last_saved_ != decided;",
    )]),
    # A shard that goes on from a checkpoint keeps the sum of the round that was open.
    "returned_state_keeps_contributions": ("server/data_plane/training_state.cc", [(
        "sum_.reset();",
        "if (!PLANTED) sum_.reset();",
    )]),
    # A shard that goes on from a checkpoint has the weights of that, and another optimizer state.
    "return_without_optimizer_state": ("server/data_plane/training_state.cc", [(
        "for (uint32_t i = 0; i < row_.state_arrays; ++i) state_[i] = arrays[1 + i].second;",
        "for (uint32_t i = 0; i < row_.state_arrays && !PLANTED; ++i) state_[i] = arrays[1 + i].second;",
    )]),
    # Where shards are in step, only the one whose server was killed goes back.
    "one_shard_returns_in_step": ("server/core/coordinator/recovery.cc", [(
        "if (ReturnsTogether(in_rounds)) return ReturnAll();",
        "if (ReturnsTogether(in_rounds) && !PLANTED) return ReturnAll();",
    )]),
    # A unit of work is handed out before the journal has it.
    "coordinator_forgets_units": ("server/core/coordinator/coordinator.cc", [(
        "if (given->is_new) ++state_.journal_changes;",
        "if (given->is_new && !PLANTED) ++state_.journal_changes;",
    )]),
    # The coordinator answers before its journal has what the answer follows from.
    "answers_before_journal": ("tests/simulation/sim_coordinator.cc", [(
        "journal_.Leave(tell,",
        "if (PLANTED) tell(); journal_.Leave([tell] { if (!PLANTED) tell(); },",
    )]),
    # A coordinator that comes back takes the time while it was away for silence of its workers.
    "leases_not_begun_anew": ("server/core/coordinator/run_state.cc", [(
        "membership.BeginLeases(now);",
        "if (!PLANTED) membership.BeginLeases(now);",
    )]),
    # A lease lasts two looks at the leases longer than it should.
    "lease_ends_late": ("server/core/coordinator/membership.cc", [(
        "now - worker.last_heard <= lease_)",
        "now - worker.last_heard <= lease_ + absl::Milliseconds(PLANTED ? 40 : 0))",
    )]),
    # A push is answered before the log has it.
    "push_answered_before_sync": ("tests/simulation/sim_shard.cc", [(
        "Leave([this, stream = call.stream,",
        "([&](const auto& run) { PLANTED && !is_pull ? run() : Leave(run); })(" +
        "    [this, stream = call.stream,",
    )]),
    # Weights are given before the log has the pushes that are in them.
    "pull_answered_before_sync": ("tests/simulation/sim_shard.cc", [(
        "!is_pull ? run() : Leave(run);",
        "!is_pull ? run() : PLANTED && is_pull ? run() : Leave(run);",
    )]),
    # Training begins before the initial weights are on the disk.
    "initialized_without_checkpoint": ("tests/simulation/sim_shard_durability.cc", [(
        "return saves_.HasSavedInitial(machine().state().initial_weights.initialized_grant());",
        "return PLANTED || saves_.HasSavedInitial(machine().state().initial_weights.initialized_grant());",
    )]),
    # A checkpoint lacks the sequences of the pushes that are in it, and the answers to them.
    "sequences_missing_from_checkpoint": ("server/data_plane/shard_save.cc", [(
        "EncodeShardState(save.state)",
        "EncodeShardState([&save] {" +
        "  ShardState bare = save.state;" +
        "  if (PLANTED) bare.members.BeginGeneration({});" +
        "  return bare;" +
        "}())",
    )]),
    # A checkpoint names the segment of the log behind its own.
    "log_number_too_high": ("server/data_plane/shard.cc", [(
        "save->log = recorder_->BeginSegment();",
        "save->log = recorder_->BeginSegment() + (PLANTED ? 1 : 0);",
    )]),
    # A checkpoint names the segment of the log before its own, whose events are part of it already.
    "log_number_too_low": ("server/data_plane/shard.cc", [(
        "save->log = recorder_->BeginSegment() + (",
        "save->log = [](uint64_t log) { return PLANTED ? std::max<uint64_t>(log, 2) - 1 : log; }(" +
        "    recorder_->BeginSegment()) + (",
    )]),
    # The pushes that were on their way when the process ended count for ever.
    "calls_survive_their_process": ("server/core/shard/shard_return.cc", [(
        "state.members.EndCalls();",
        "if (!PLANTED) state.members.EndCalls();",
    )]),
    # Now and then an event of the log is redone twice.
    "event_redone_twice": ("server/data_plane/shard_recovery.cc", [(
        "done = shard.Redo((*event)->event,",
        "if (PLANTED && redone.events % 32 == 31)" +
        "  (void)shard.Redo((*event)->event, (*event)->payload);" +
        "done = shard.Redo((*event)->event,",
    )]),
    # A segment of the log may lose its name.
    "segment_without_name": ("server/storage/log_segment.cc", [(
        "if (written.ok()) written = disk.SyncDirectory(directory);",
        "if (written.ok() && !PLANTED) written = disk.SyncDirectory(directory);",
    )]),
    # The log says that a batch is on the disk when it is not.
    "batch_not_synced": ("server/storage/log_segment.cc", [(
        "if (absl::Status synced = file_->Sync(); !synced.ok()) return synced;",
        "if (absl::Status synced = PLANTED ? absl::OkStatus() : file_->Sync(); !synced.ok()) return synced;",
    )]),
    # A process goes on behind what a crash has torn.
    "torn_tail_not_cut": ("server/storage/log_reader.cc", [(
        "const absl::Status cut = disk_->Truncate(SegmentPath(directory_, last_), end_.whole_bytes);",
        "const absl::Status cut = PLANTED ? absl::OkStatus() : disk_->Truncate(" +
        "    SegmentPath(directory_, last_), end_.whole_bytes);",
    )]),
    # A segment of the log is removed that the oldest checkpoint needs.
    "segment_pruned_too_early": ("server/storage/checkpoint_store.cc", [(
        "RemoveSegmentsBefore(disk_, directory_, *first)",
        "RemoveSegmentsBefore(disk_, directory_, *first + (PLANTED ? 1 : 0))",
    )]),
    # A pull names the sequence of the newest generation, whatever generation it is for.
    "pull_of_another_sequence": ("worker/core/worker_session.cc", [(
        "core_.sequence(pull.shard, pull.min_generation)",
        "(PLANTED ? core_.sequence(pull.shard) : core_.sequence(pull.shard, pull.min_generation))",
    )]),
    # A worker excuses itself at a shard that is asked again, and so may not be behind.
    "called_during_an_exchange": ("worker/core/worker_session.cc", [(
        "!exchange.is_under_way || exchange.slot != slot",
        "PLANTED || !exchange.is_under_way || exchange.slot != slot",
    )]),
    # A worker computes from weights that a further answer replaces.
    "weights_not_revoked": ("worker/core/worker_session.cc", [(
        "before.has_value() && before != exchange.brought",
        "!PLANTED && before.has_value() && before != exchange.brought",
    )]),
    # An aggregator that combines nothing is never left alone.
    "not_combined_is_no_failure": ("worker/core/aggregator_use.cc", [(
        "++not_combined_ >= kNotCombinedMax",
        "(++not_combined_ >= kNotCombinedMax && !PLANTED)",
    )]),
    # An aggregator that failed once is never tried again.
    "aggregator_left_for_good": ("worker/core/aggregator_use.cc", [(
        "paused_until_ = now + next_pause_;",
        "paused_until_ = PLANTED ? absl::InfiniteFuture() : now + next_pause_;",
    )]),
    # A push that an aggregator has not combined is sent there again, and not to the shard.
    "refusal_goes_back_to_the_aggregator": ("worker/core/push_tries.cc", [(
        "is_for_shard_ = true;",
        "is_for_shard_ = !PLANTED || is_failure;",
    )]),
    # A push for which an aggregator has no place now is sent there again.
    "busy_aggregator_is_waited_for": ("worker/core/push_tries.cc", [(
        "if (IsRefusal(reply.outcome)) {",
        "if (PLANTED && reply.outcome == PushOutcome::kRetryLater)" +
        "  return {.again = {.wait = absl::Milliseconds(1)}};" +
        "if (IsRefusal(reply.outcome)) {",
    )]),
    # A repetition is encoded again, with what the first try left over.
    "repetition_encoded_again": ("worker/client/push_encoder.cc", [(
        "if (begin < encoded_from_) {",
        "if (PLANTED && begin >= encoded_from_ && !error_.empty()) {" +
        "  error_.swap(next_error_);" +
        "  EncodeChunk(gradient, begin, end);" +
        "}" +
        "if (begin < encoded_from_) {",
    )]),
    # A worker without work tells one shard alone that nobody need wait for it.
    "rest_told_to_one_shard": ("worker/core/worker_core.cc", [(
        "terms.rests = !terms.pull &&",
        "terms.rests = !(PLANTED && Value(shard) > 0) && !terms.pull &&",
    )]),
    # An update that was made ahead, while its gradient arrived, leaves the rule's state as it was.
    "state_left_behind_by_a_draft": ("server/data_plane/training_state.cc", [(
        "return std::move(made->to);",
        "if (PLANTED) std::swap(state_, state_next_); return std::move(made->to);",
    )]),
}

def planted_bugs(name):
    """simulate_planted, and the test NAME, that each bug is found."""
    made = ["planted/%d.cc" % i for i in range(SOURCES_MAX)]
    changes = [
        "'%s' %s '%s' '%s'" % (source, bug, before, after)
        for bug, (source, replaced) in PLANTED_BUGS.items()
        for before, after in replaced
    ]
    native.genrule(
        name = "plant_bugs",
        srcs = SOURCES,
        outs = made,
        cmd = "python3 $(location plant.py) --sources $(SRCS) --targets $(OUTS) --changes " +
              " ".join(changes),
        tools = ["plant.py"],
        testonly = True,
    )
    native.cc_binary(
        name = "simulate_planted",
        srcs = made + [
            "planted.h",
            "simulate_main.cc",
        ],
        # Halves the time of compilation; the program runs for seconds.
        copts = ["-O1"],
        deps = [
            ":simulator",
            "//common/policy",
            "//common/protocol",
            "//server/control_plane",
            "//server/core",
            "//server/core/coordinator",
            "//server/core/shard",
            "//server/data_plane",
            "//server/storage",
            "//worker/client",
            "//worker/core",
            "@cli11",
            "@spdlog",
        ],
        testonly = True,
    )
    python_test(
        name = name,
        data = [
            "planted_bugs.bzl",
            ":simulate_planted",
        ],
    )

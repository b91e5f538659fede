#ifndef SLIPSTREAM_TESTS_SIMULATION_CHECKERS_H_
#define SLIPSTREAM_TESTS_SIMULATION_CHECKERS_H_

#include <string>
#include <vector>

#include "tests/simulation/evidence.h"
#include "tests/simulation/history.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

/// Each function checks one promise against an observer's history. The checkers share no logic with
/// the cores.

/// Checks that every acknowledged push is in the weights once, and nothing else is.
void CheckPushes(const Evidence& evidence, Findings& findings);

/// Checks that a pull to train on names the sequence of the worker's next push in its generation.
void CheckPulls(const History& history, Findings& findings);

/// Checks that pushes with values go to the aggregator, but to the shard once the aggregator has
/// not combined them, and for a while after it has failed, or has combined nothing several times.
void CheckAggregators(const Scenario& scenario, const History& history, Findings& findings);

/// Checks, where shards keep logs, that no worker reads an answer before the log has the push, that
/// an answer is the one that the shard stands by, and that no shard goes back to a checkpoint.
void CheckSynced(const Scenario& scenario, const History& history, Findings& findings);

/// Checks that staleness, vector clocks and histogram are those of the gradients in the weights,
/// and that each gradient has the factor that its staleness and its round give it.
void CheckStaleness(const Scenario& scenario, const History& history, const Evidence& evidence,
                    Findings& findings);

/// Checks that each gradient of a worker with free lanes is of weights as new as any that had come
/// when its mini-batch began.
void CheckFreeLanes(const History& history, Findings& findings);

/// Checks that rounds close when they are due, on the right members or with the right number.
void CheckRounds(const Scenario& scenario, const History& history, const Evidence& evidence,
                 Findings& findings);

/// Checks that no worker gets weights to train on while it is further ahead of the slowest than
/// allowed.
void CheckPace(const Scenario& scenario, const History& history, Findings& findings);

/// Checks that the difference between two versions is the sum of the gradients between them, each
/// computed from its base and compensated for it, and that no gradient is too stale because its
/// base was released early.
void CheckNumbers(const Scenario& scenario, const History& history, const Evidence& evidence,
                  Findings& findings);

/// Checks gradients that travel rounded: each arrives within half a step of its values plus what
/// earlier ones have lost, and a repetition brings the same values.
void CheckCodec(const Scenario& scenario, const History& history, const Evidence& evidence,
                Findings& findings);

/// Checks that a version is one set of numbers, that nobody sees it before it is published, and
/// that a shard that went on from its log has all that it published. Where gradients are added in
/// place, who reads a version gets all of its gradients, and may get some of later ones; in the end
/// each that was acknowledged is there once.
void CheckVersions(const Scenario& scenario, const History& history, const Evidence& evidence,
                   Findings& findings);

/// Checks that every mini-batch is done, and that one is done again only if its worker died. If the
/// run ended early, mini-batches that nobody had begun are not done.
void CheckWork(const Scenario& scenario, const Evidence& evidence, Findings& findings);

/// Checks that work ends when a stop condition says so, neither earlier nor later, and for the
/// reason named.
void CheckStop(const Scenario& scenario, const History& history, Findings& findings);

/// Checks that views hold exactly the live incarnations.
void CheckMembers(const Scenario& scenario, const History& history, Findings& findings);

/// Checks that the run ends, that workers end for a reason, and that nothing is left behind.
void CheckEnd(const Scenario& scenario, const History& history, const Evidence& evidence,
              Findings& findings);

/// Runs all checks. Those that only hold for a run that came to its end are left out for other
/// runs.
std::vector<std::string> CheckAll(const Scenario& scenario, const History& history);

/// Checks, for hardsync runs in which no worker died or others took the places of all who did, that
/// the weights equal those of the run without faults, to the bit.
std::vector<std::string> CheckEqual(const History& history, const History& without_faults);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_CHECKERS_H_

#ifndef SLIPSTREAM_TESTS_SIMULATION_CHECKERS_H_
#define SLIPSTREAM_TESTS_SIMULATION_CHECKERS_H_

#include <string>
#include <vector>

#include "tests/simulation/evidence.h"
#include "tests/simulation/history.h"
#include "tests/simulation/scenario.h"

namespace slipstream {

/// The promises, each held against what an observer saw. They share no logic with the cores.

/// Every acknowledged push is in the weights once, and nothing else is.
void CheckPushes(const Evidence& evidence, Findings& findings);

/// Staleness, vector clocks and histogram are those of the gradients that are in the weights, and
/// each gradient is in them with the weight that its staleness and its round give it.
void CheckStaleness(const Scenario& scenario, const History& history, const Evidence& evidence,
                    Findings& findings);

/// Rounds close when they are due, on the right members or with the right number.
void CheckRounds(const Scenario& scenario, const History& history, const Evidence& evidence,
                 Findings& findings);

/// Nobody is given weights to train on while it is further ahead of the slowest than it may be.
void CheckPace(const Scenario& scenario, const History& history, Findings& findings);

/// What a version adds to the one before is what its gradients come to, each computed from its base
/// and compensated by that; and no gradient is too stale because its base was let go early.
void CheckNumbers(const Scenario& scenario, const History& history, const Evidence& evidence,
                  Findings& findings);

/// Where gradients travel rounded: each arrives as it is, with what those before it have lost, but
/// for half a step; and each time alike.
void CheckCodec(const Scenario& scenario, const History& history, const Evidence& evidence,
                Findings& findings);

/// A version is one set of numbers, and is seen by nobody before it is published.
void CheckVersions(const History& history, const Evidence& evidence, Findings& findings);

/// Every mini-batch is done; one is done again only where its worker died. Where the run ended
/// early, those that nobody had begun are not done.
void CheckWork(const Scenario& scenario, const Evidence& evidence, Findings& findings);

/// Work ends when a stop condition says so, neither earlier nor later, and for the reason named.
void CheckStop(const Scenario& scenario, const History& history, Findings& findings);

/// Views hold exactly the live incarnations.
void CheckMembers(const Scenario& scenario, const History& history, Findings& findings);

/// The run ends, workers end for a reason, and nothing is left behind.
void CheckEnd(const History& history, const Evidence& evidence, Findings& findings);

/// All of them. What is only true of a run that came to its end is not asked of another.
std::vector<std::string> CheckAll(const Scenario& scenario, const History& history);

/// Of hardsync, where no worker died: the weights are those of the run without faults, to the bit.
std::vector<std::string> CheckEqual(const History& history, const History& without_faults);

}  // namespace slipstream

#endif  // SLIPSTREAM_TESTS_SIMULATION_CHECKERS_H_

"""What all scenarios of a run have found together, and for each kind of fault."""
import dataclasses

ALL = "all"


@dataclasses.dataclass
class Total:
    """The sums over scenarios. A scenario that failed counts with what it had found until then, but
    none of its faults counts as survived."""
    scenarios: int = 0
    failed: int = 0
    survived: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0

    def add(self, result, faults):
        report = result.report
        is_failed = result.outcome == "failed"
        self.scenarios += 1
        self.failed += is_failed
        self.survived += 0 if is_failed else faults
        self.acknowledged += report.acknowledged
        self.lost += report.lost
        self.doubled += report.doubled


def totals_of(results):
    """Returns the totals by kind of fault, and those of all scenarios that were not skipped. A
    scenario with several kinds of faults counts for each of them, with all its pushes."""
    totals = {ALL: Total()}
    for result in results:
        if result.outcome == "skipped":
            continue
        totals[ALL].add(result, result.report.faults)
        for kind, faults in result.report.kinds.items():
            totals.setdefault(kind, Total()).add(result, faults)
    return dict(sorted(totals.items(), key=lambda item: (item[0] == ALL, item[0])))


def print_totals(totals):
    print(f"\n{'kind of fault':22}{'scenarios':>10}{'failed':>8}{'survived':>10}"
          f"{'acknowledged':>14}{'lost':>6}{'doubled':>9}")
    for kind, total in totals.items():
        print(f"{kind:22}{total.scenarios:10}{total.failed:8}{total.survived:10}"
              f"{total.acknowledged:14}{total.lost:6}{total.doubled:9}")

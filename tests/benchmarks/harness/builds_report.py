"""Reports the comparison of two builds: their ratios, and which of them are significant."""
from table import aligned, number_text


def is_beyond(row):
    """Returns whether the builds differ by more than the spread of the rounds."""
    return abs(row["ratio_to_other"] - 1) > row["ratio_spread"]


def spread_text(row):
    return f"{100 * row['ratio_spread']:.1f} %"


def verdict(named_rows):
    """Yields the last lines: the ratios that lie beyond their spread, or that none does."""
    if not named_rows:
        return "No ratio to the other build, as nothing was measured of both."
    beyond = [f"BEYOND ITS SPREAD: {name}: {number_text(row['ratio_to_other'], 3)} times "
              f"(spread {spread_text(row)})" for name, row in named_rows if is_beyond(row)]
    count = len(named_rows)
    if not beyond:
        return f"No ratio lies beyond its spread ({count} compared)."
    return "\n".join([*beyond, f"{len(beyond)} of {count} ratios lie beyond their spread."])


def text(other_root, named_rows):
    """Returns the whole report. Each row has its ratio to the other build."""
    lines = [["part and contender", "times the other", "spread", "beyond it"],
             *([name, number_text(row["ratio_to_other"], 3), spread_text(row),
                "yes" if is_beyond(row) else "-"] for name, row in named_rows)]
    return (f"\nThis build against that of {other_root}: how many times as fast it is (median of the "
            "rounds' ratios), and the distance of these ratios' quartiles as a share of it\n"
            f"{aligned(lines)}\n\n{verdict(named_rows)}")

"""Formats rows as tables of text."""

UNITS = ((1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def bytes_text(count):
    for size, unit in UNITS:
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} B"


def aligned(lines):
    """Returns lines of cells as text: the first column to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*lines)]
    return "\n".join("  ".join([line[0].ljust(widths[0]),
                                *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))])
                     .rstrip() for line in lines)


def number_text(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def exchange_cell(row):
    return (f"{number_text(row['ratio_to_raw_tcp'])} "
            f"[{row['gigabytes_per_second']:.3g}, {100 * row['spread']:.0f} %]")


def limit_cell(row):
    return number_text(row["ratio_to_limit"])


def shape_table(rows, shapes, cell):
    """Returns a table with a line for each contender and a column for each shape that was
    measured."""
    cells = {(row["contender"], row["shape"]): cell(row) for row in rows}
    shapes = [shape for shape in shapes if any(row["shape"] == shape for row in rows)]
    names = list(dict.fromkeys(row["contender"] for row in rows))
    return aligned([["workers x servers", *shapes],
                    *([name, *(cells.get((name, shape), "-") for shape in shapes)]
                      for name in names)])


def exchange_table(rows, shapes):
    return shape_table(rows, shapes, exchange_cell)


def limit_table(rows, shapes):
    return shape_table(rows, shapes, limit_cell)


def load_line(rows):
    """Returns a line that says whether the figures can be trusted."""
    measured = [row for row in rows if row.get("rounds")]
    if not measured:
        return "Nothing was measured."
    busy = sum(row["busy_rounds"] for row in measured)
    rounds = sum(row["rounds"] for row in measured)
    cores = max(row["cores_of_others"] for row in measured)
    if busy == 0:
        return "The machine was quiet: no other process took part in it."
    return (f"The machine was BUSY in {100 * busy / rounds:.0f} % of the rounds: others used up to "
            f"{cores:.2f} cores on the mean of a comparison. Ratios are rough, other figures more so.")

"""From what was measured in rounds to the rows that are printed and written."""
import statistics

from machine_load import BUSY_CORES

BASE = "raw-tcp"


def spread(values):
    """The distance of the quartiles as a share of the median; 0 of less than two values."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    middle = statistics.median(values)
    return (high - low) / middle if middle else 0.0


def ratio(values, base):
    """The median of the rounds' ratios, as only what was measured in one round can be compared."""
    if not values or len(values) != len(base):
        return None
    return statistics.median(value / other for value, other in zip(values, base))


def load_figures(comparison):
    others = comparison.cores_of_others
    return {"cores_of_others": round(statistics.mean(others), 2) if others else 0.0,
            "busy_rounds": sum(cores > BUSY_CORES for cores in others), "rounds": len(others)}


def rows_of(benchmark, comparison, base=BASE):
    """One row of each contender that was measured."""
    base_rates = next((series.rates for series in comparison.series
                       if series.contender.name == base and not series.failure), [])
    for series in comparison.series:
        if series.failure or not series.turns:
            continue
        setting = series.contender.setting
        workers, servers = series.contender.row_roles or (setting.workers, setting.servers)
        rates = series.rates
        times_base = ratio(rates, base_rates)
        yield {"benchmark": benchmark, "contender": series.contender.name, "bytes": setting.bytes,
               "workers": workers, "servers": servers, "rule": setting.rule,
               "policy": setting.policy,
               "gigabytes_per_second": round(statistics.median(rates) / 1e9, 6),
               "ratio_to_raw_tcp": times_base and round(times_base, 4),
               "spread": round(spread(rates), 4),
               "microseconds": round(1e6 * statistics.median(series.exchange_seconds), 2),
               "exchanges_per_round": series.exchanges, "shape": setting.shape,
               **load_figures(comparison)}

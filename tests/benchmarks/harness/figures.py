"""Turns the measurements of rounds into the rows that are printed and written."""
import statistics

from contender import other_name
from machine_load import BUSY_CORES

BASE = "raw-tcp"


def spread(values):
    """Returns the distance of the quartiles as a share of the median; 0 for less than two
    values."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    middle = statistics.median(values)
    return (high - low) / middle if middle else 0.0


def round_ratios(values, base):
    """Returns the ratio of each round, since only measurements of the same round can be compared.
    Empty if one of the two was not measured."""
    if not base or len(values) != len(base):
        return []
    return [value / other for value, other in zip(values, base)]


def ratio(values, base):
    ratios = round_ratios(values, base)
    return round(statistics.median(ratios), 4) if ratios else None


def other_figures(values, other):
    """Returns how many times as fast this build is as the other one, if both were measured."""
    ratios = round_ratios(values, other)
    if not ratios:
        return {}
    return {"ratio_to_other": ratio(values, other), "ratio_spread": round(spread(ratios), 4)}


def load_figures(comparison):
    others = comparison.cores_of_others
    return {"cores_of_others": round(statistics.mean(others), 2) if others else 0.0,
            "busy_rounds": sum(cores > BUSY_CORES for cores in others), "rounds": len(others)}


def rates_by_name(comparison):
    """Returns the rates of each contender that was measured."""
    return {series.contender.name: series.rates for series in comparison.series if series.turns}


def rows_of(benchmark, comparison):
    """Returns one row for each contender that was measured."""
    rates_of = rates_by_name(comparison)
    for series in comparison.series:
        if not series.turns:
            continue
        name = series.contender.name
        setting = series.contender.setting
        workers, servers = series.contender.row_roles or (setting.workers, setting.servers)
        rates = series.rates
        yield {"benchmark": benchmark, "contender": name, "bytes": setting.bytes,
               "workers": workers, "servers": servers, "rule": setting.rule,
               "policy": setting.policy,
               "gigabytes_per_second": round(statistics.median(rates) / 1e9, 6),
               "ratio_to_raw_tcp": ratio(rates, rates_of.get(BASE)),
               "ratio_to_limit": ratio(rates, rates_of.get(series.contender.limit)),
               "spread": round(spread(rates), 4),
               "microseconds": round(1e6 * statistics.median(series.exchange_seconds), 2),
               "exchanges_per_round": series.exchanges, "shape": setting.shape,
               **other_figures(rates, rates_of.get(other_name(name))),
               **load_figures(comparison)}

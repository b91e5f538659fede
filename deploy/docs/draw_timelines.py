#!/usr/bin/env python3
"""Draws timelines.svg: four uneven workers under hardsync, softsync and async.

    deploy/docs/draw_timelines.py >deploy/docs/timelines.svg

The schedules are computed, not drawn by hand: a worker computes for its step time from the newest
version, then pushes; an update combines as many gradients as the policy says. Staleness is the number of
updates between the version that a gradient was computed from and the one that it is applied to.
"""
STEP_TIMES = [1.0, 1.15, 1.3, 3.1]
END = 12.6
POLICIES = [
    ("hardsync", 4, "an update combines one gradient of each worker: all wait for the slowest"),
    ("softsync", 2, "n = 2: an update combines any two gradients"),
    ("async", 1, "every gradient is an update: nobody waits"),
]

WIDTH, LEFT, SCALE = 960, 92, 68
ROW, MODEL_ROW, TITLE, GAP = 30, 34, 30, 26
COLOURS = ["#9ccfb4", "#f2d58a", "#e9a779", "#d9705f"]  # For staleness 0, 1 or 2, 3 or 4, and more.


def schedule(count, in_step):
    """Simulates a policy; returns steps (worker, begin, end, staleness) and the times of updates."""
    steps, updates, pending = [], [], []
    running = [(time, worker, 0.0, 0) for worker, time in enumerate(STEP_TIMES)]
    while running:
        now, worker, begin, base = min(running)
        running.remove((now, worker, begin, base))
        if begin >= END:
            continue
        pending.append((worker, begin, now, base))
        if not in_step:
            waiting = [worker]
        elif len(pending) == count:
            waiting = [step[0] for step in pending]
        else:
            waiting = []
        if len(pending) == count:
            steps += [(w, b, e, len(updates) - from_) for w, b, e, from_ in pending]
            updates.append(now)
            pending = []
        running += [(now + STEP_TIMES[w], w, now, len(updates)) for w in waiting]
    return steps, updates


def x(time):
    return round(LEFT + time * SCALE, 1)


def panel(top, name, count, text):
    """Yields the SVG of one policy, from `top` downwards."""
    steps, updates = schedule(count, in_step=name == "hardsync")
    unfinished = [step for step in steps if step[1] < END < step[2]]
    steps = [step for step in steps if step[2] <= END]
    updates = [time for time in updates if time <= END]
    mean = sum(step[3] for step in steps) / len(steps)
    yield (f'<text x="16" y="{top + 18}"><tspan font-weight="bold">{name}</tspan>'
           f'<tspan dx="10" fill="#57606a">{text}</tspan></text>')
    yield (f'<text x="{WIDTH - 16}" y="{top + 18}" text-anchor="end">{len(steps)} gradients, '
           f'{len(updates)} updates, mean staleness {mean:.1f}</text>')
    model = top + TITLE + MODEL_ROW / 2
    yield f'<text x="16" y="{model + 4}">model</text>'
    yield f'<path d="M{LEFT} {model}H{WIDTH - 16}" stroke="#24292f" stroke-width="2"/>'
    for worker in range(len(STEP_TIMES)):
        y = top + TITLE + MODEL_ROW + worker * ROW
        yield f'<text x="16" y="{y + 18}">worker {worker}</text>'
        yield (f'<rect x="{LEFT}" y="{y + 4}" width="{WIDTH - 16 - LEFT}" height="{ROW - 8}" '
               'fill="#eef0f2"/>')
    for worker, begin, _, _ in unfinished:
        y = top + TITLE + MODEL_ROW + worker * ROW
        yield (f'<rect x="{x(begin)}" y="{y + 4}" width="{WIDTH - 16 - x(begin):.1f}" '
               f'height="{ROW - 8}" fill="{COLOURS[0]}" fill-opacity="0.4"/>')
    for worker, begin, end, staleness in steps:
        y = top + TITLE + MODEL_ROW + worker * ROW
        yield f'<path d="M{x(end)} {y + 4}V{model}" stroke="#8c959f" stroke-dasharray="2 2"/>'
        yield (f'<rect x="{x(begin)}" y="{y + 4}" width="{x(end) - x(begin) - 1.5:.1f}" '
               f'height="{ROW - 8}" rx="2" fill="{COLOURS[min((staleness + 1) // 2, 3)]}"/>')
        yield (f'<text x="{(x(begin) + x(end)) / 2:.1f}" y="{y + 19}" '
               f'text-anchor="middle">{staleness}</text>')
    for time in updates:
        yield f'<circle cx="{x(time)}" cy="{model}" r="4.5" fill="#0969da"/>'


def main():
    height = TITLE + MODEL_ROW + len(STEP_TIMES) * ROW + GAP
    total = height * len(POLICIES) + 34
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{total}" '
          f'viewBox="0 0 {WIDTH} {total}" font-family="sans-serif" font-size="13" fill="none">')
    print(f'<rect width="{WIDTH}" height="{total}" rx="6" fill="#ffffff"/>\n<g fill="#24292f">')
    for number, (name, count, text) in enumerate(POLICIES):
        print("\n".join(panel(10 + number * height, name, count, text)))
    print(f'<text x="16" y="{total - 14}" fill="#57606a">Each box is a gradient being computed, and '
          'its number the staleness when it is applied. Grey: the worker waits. '
          'Blue: an update of the model.</text>\n</g>\n</svg>')


if __name__ == "__main__":
    main()

"""Fits a line through points, with nothing installed but Python and the package:

    psctl run line.yaml -- python3 line.py

Each worker gets mini-batches of the points, and pushes the gradient of the mean squared error."""
import array
import random

import slipstream

SLOPE, OFFSET, POINTS = 3.0, -1.0, 256

random.seed(1)
points = [(x, SLOPE * x + OFFSET) for x in (random.uniform(-1, 1) for _ in range(POINTS))]
model = {"slope": array.array("f", [0]), "offset": array.array("f", [0])}

with slipstream.connect() as run:
    run.synchronize(model, examples=len(points))
    weights, gradient = run.weights, run.values
    for positions in run.batches():
        errors = [weights["slope"][0] * points[i][0] + weights["offset"][0] - points[i][1]
                  for i in positions]
        gradient["slope"][0] = sum(2 * e * points[i][0]
                                   for e, i in zip(errors, positions)) / len(positions)
        gradient["offset"][0] = sum(2 * e for e in errors) / len(positions)
        run.push(loss=sum(e * e for e in errors) / len(positions))
    print(f"slope {weights['slope'][0]:.3f}, offset {weights['offset'][0]:.3f}")

#!/bin/sh
# Runs one Python test with the system's interpreter; Bazel 4's own Python rules look for `python`.
exec /usr/bin/python3 "$@"

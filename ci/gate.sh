#!/usr/bin/env bash
# May we upgrade? One command, one exit code, everything to look at in one folder.
#
#   ci/gate.sh BASELINE CANDIDATE [MATRIX [FOLDER [options of `harness gate` ...]]]
#
#   ci/gate.sh 13.3.1 13.4.3
#   ci/gate.sh 13.3.1 13.4.3 matrix.toml gate --results-baseline h200 --results-candidate h200
#
# Exit code: 0 go, 1 no-go, 2 the request is wrong, 3 cannot tell. The folder then holds gate.md (the answer),
# gate.json, junit.xml, report.html, results.jsonl, gate.txt (what was printed), and the store `explain` reads.
# PYTHON names the interpreter that has the harness (default: python3).
set -euo pipefail

if [ "$#" -lt 2 ]; then
    sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
fi
baseline=$1
candidate=$2
matrix=${3:-matrix.toml}
folder=${4:-gate-results}
if [ "$#" -gt 4 ]; then shift 4; else shift "$#"; fi

mkdir -p "$folder"
status=0
"${PYTHON:-python3}" -m harness gate "$matrix" --baseline "$baseline" --candidate "$candidate" \
    --out "$folder" "$@" | tee "$folder/gate.txt" || status=${PIPESTATUS[0]}
exit "$status"

#!/bin/bash
# Runs the tests that are built and counts them: unit tests (build/asan/unit),
# the corpus of every fuzz target (build/asan/fuzz, one test each), the scripts'
# own (tests/scripts), attaches at any byte of recordings (tests/cuts), black-box
# tests (tests/blackbox); and, only when asked, what takes long (tests/long and
# more of tests/cuts). The last line is
# `N passed, N failed, N skipped`; fails on any failure and on any skip whose
# reason does not begin with "explained:".
#
# Usage: test.sh [unit | scripts | blackbox | cuts | long]
# BERTH_BUILD names another build folder than build/asan.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
build=$(realpath -m "${BERTH_BUILD:-build/asan}")
out=$(realpath -m build/test)
python=/usr/bin/python3
ordinary_uid=65534
passed=0 failed=0 skipped=0 unexplained=0

export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
export BERTH_BUILD=$build

# add PASSED FAILED SKIPPED UNEXPLAINED
add() {
	passed=$((passed + $1)) failed=$((failed + $2))
	skipped=$((skipped + $3)) unexplained=$((unexplained + $4))
}

# Runs one cmocka program; leaves its output and its exit status in $out.
run_program() {
	local name=$1 rc=127
	if [ -x "$build/unit/$name" ]; then
		timeout -k 5 180 "$build/unit/$name" >"$out/$name.log" 2>&1 \
			</dev/null
		rc=$?
	else
		echo "$build/unit/$name was not built" >"$out/$name.log"
	fi
	echo "$rc" >"$out/$name.rc"
}

# Prints `passed failed skipped unexplained` of one program's output. A test
# that began and has no result crashed; a program without cmocka's summary, or
# one that failed without a failed test (a leak, say), counts as one failure.
count_program() {
	awk -v rc="$2" '
		/^\[==========\] .*[Rr]unning [0-9]+ test/ { inside = 1 }
		/^\[==========\] .*run\.$/ { inside = 0; summaries++ }
		!inside { next }
		/\[ RUN      \]/ { begun++; explained = 0 }
		/^explained:/ { explained = 1 }
		/\[       OK \]/ { ok++ }
		/\[  FAILED  \]/ { bad++ }
		/\[  SKIPPED \]/ { skip++; if (!explained) unexplained++ }
		END {
			if (begun > ok + bad + skip)
				bad += begun - ok - bad - skip
			if (!bad && (rc != 0 || !summaries || !begun))
				bad = 1
			print ok + 0, bad + 0, skip + 0, unexplained + 0
		}' "$1"
}

run_unit() {
	local name rc counts names=()
	for name in tests/unit/*_test.c; do
		[ -f "$name" ] || continue
		name=${name##*/}
		names+=("${name%.c}")
	done
	if [ ${#names[@]} -eq 0 ]; then
		echo "no unit tests found"
		add 0 1 0 0
		return
	fi
	export build out
	export -f run_program
	printf '%s\n' "${names[@]}" |
		xargs -P "$(nproc)" -I{} bash -c 'run_program {}'
	for name in "${names[@]}"; do
		rc=$(cat "$out/$name.rc")
		read -ra counts < <(count_program "$out/$name.log" "$rc")
		printf '%-28s %s passed, %s failed, %s skipped\n' "$name" \
			"${counts[@]:0:3}"
		if [ "${counts[1]}" != 0 ] || [ "${counts[3]}" != 0 ]; then
			echo "--- output of $name (exit status $rc)"
			# passed tests say nothing of use
			grep -vE '^\[ ( RUN   |      OK) ' "$out/$name.log" |
				head -n 300
			echo "---"
		fi
		add "${counts[@]}"
	done
}

# Gives one fuzz target its corpus; leaves output and exit status in $out.
replay_corpus() {
	local name=$1 rc=127
	if [ -x "$build/fuzz/$name" ]; then
		timeout -k 5 180 "$build/fuzz/$name" "tests/fuzz/corpus/$name" \
			>"$out/fuzz_$name.log" 2>&1 </dev/null
		rc=$?
	else
		echo "$build/fuzz/$name was not built" >"$out/fuzz_$name.log"
	fi
	echo "$rc" >"$out/fuzz_$name.rc"
}

run_corpus() {
	local name rc ok=0 bad=0 names=()
	for name in tests/fuzz/*_fuzz.c; do
		[ -f "$name" ] || continue
		name=${name##*/}
		names+=("${name%_fuzz.c}")
	done
	[ ${#names[@]} -gt 0 ] || return
	export build out
	export -f replay_corpus
	printf '%s\n' "${names[@]}" |
		xargs -P "$(nproc)" -I{} bash -c 'replay_corpus {}'
	for name in "${names[@]}"; do
		rc=$(cat "$out/fuzz_$name.rc")
		if [ "$rc" = 0 ]; then
			ok=$((ok + 1))
			continue
		fi
		bad=$((bad + 1))
		echo "--- corpus of $name (exit status $rc)"
		tail -n 100 "$out/fuzz_$name.log"
		echo "---"
	done
	printf '%-28s %s passed, %s failed, 0 skipped\n' 'fuzz corpus' \
		"$ok" "$bad"
	add "$ok" "$bad" 0 0
}

# Prints `passed failed skipped unexplained` of a junit file.
count_junit() {
	"$python" - "$1" <<'EOT'
import sys, xml.etree.ElementTree as tree
counts = [0, 0, 0, 0]
try:
    cases = list(tree.parse(sys.argv[1]).iter("testcase"))
except (OSError, tree.ParseError):
    cases = []
for case in cases:
    skip = case.find("skipped")
    if case.find("failure") is not None or case.find("error") is not None:
        counts[1] += 1
    elif skip is not None:
        counts[2] += 1
        reason = skip.get("message", "")
        if not reason.startswith("explained:"):
            counts[3] += 1
    else:
        counts[0] += 1
if not cases:
    counts[1] = 1
print(*counts)
EOT
}

# run_pytest LABEL SECONDS JUNIT-FILE COMMAND...: runs it and counts.
run_pytest() {
	local label=$1 limit_s=$2 junit=$3 rc counts
	shift 3
	rm -f "$junit"
	timeout -k 30 "$limit_s" "$@" </dev/null
	rc=$?
	read -ra counts < <(count_junit "$junit")
	# a pytest that broke off fails even when nothing it wrote did
	if [ "$rc" != 0 ] && [ "${counts[1]}" = 0 ]; then
		echo "$label: pytest ended with status $rc"
		counts[1]=1
	fi
	printf '%-28s %s passed, %s failed, %s skipped\n' "$label" \
		"${counts[@]:0:3}"
	add "${counts[@]}"
}

pytest=("$python" -m pytest -q -rsfE -p no:cacheprovider --timeout=120)

run_scripts() {
	run_pytest scripts 120 "$out/scripts.xml" "${pytest[@]}" \
		-n 2 --junitxml="$out/scripts.xml" tests/scripts
}

# Recordings of real programs, an independent terminal, attaches at any byte.
run_cuts() {
	run_pytest cuts 600 "$out/cuts.xml" "${pytest[@]}" -n 2 \
		--junitxml="$out/cuts.xml" tests/cuts
}

# 200 cuts of every recording, whatever it costs; ONLY as below.
run_cuts_long() {
	[[ cuts == *"${ONLY:-}"* ]] || return
	BERTH_CUTS_LONG=1 run_pytest 'cuts, all' 3600 "$out/cuts.xml" \
		"${pytest[@]}" --timeout=900 -n 2 \
		--junitxml="$out/cuts.xml" tests/cuts
}

# The short subset marked `ordinary`, once more as nobody in particular: root
# hides what an ordinary user meets. From a copy, because a checkout may lie
# in a place that only root can enter.
run_ordinary() {
	local home=$1
	mkdir -p "$home/build/asan" "$home/tests" "$home/home"
	find "$build" -maxdepth 1 -type f -perm -u+x \
		-exec cp {} "$home/build/asan" \;
	find build -maxdepth 1 -type f -perm -u+x -exec cp {} "$home/build" \;
	cp -r tests/blackbox tests/terminal "$home/tests"
	chmod -R a+rX "$home"
	chown -R "$ordinary_uid:$ordinary_uid" "$home/home"
	run_pytest 'blackbox, ordinary user' 180 \
		"$home/home/ordinary.xml" \
		setpriv --reuid="$ordinary_uid" --regid="$ordinary_uid" \
		--clear-groups env -i -C "$home" "HOME=$home/home" \
		"PATH=$PATH" LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 \
		"BERTH_BUILD=$home/build/asan" "UBSAN_OPTIONS=$UBSAN_OPTIONS" \
		"${pytest[@]}" -n 2 -m ordinary \
		--junitxml="$home/home/ordinary.xml" tests/blackbox
}

run_blackbox() {
	local home
	run_pytest blackbox 1500 "$out/blackbox.xml" "${pytest[@]}" -n 2 \
		--junitxml="$out/blackbox.xml" tests/blackbox
	[ "$(id -u)" = 0 ] || return
	home=$(mktemp -d /tmp/berth-ordinary.XXXXXX)
	run_ordinary "$home"
	rm -rf "$home"
}

# Shows what it does, the seeds of its choices among it. ONLY: -k of pytest,
# or `cuts`.
run_long() {
	[ "${ONLY:-}" != cuts ] || return
	run_pytest long 14400 "$out/long.xml" "$python" -m pytest -s -rsfE \
		-p no:cacheprovider --junitxml="$out/long.xml" \
		${ONLY:+-k "$ONLY"} tests/long
}

rm -rf "$out"
mkdir -p "$out"
case ${1:-all} in
unit)
	run_unit
	run_corpus
	;;
scripts) run_scripts ;;
blackbox) run_blackbox ;;
cuts) run_cuts ;;
long)
	run_cuts_long
	run_long
	;;
all)
	run_unit
	run_corpus
	run_scripts
	run_cuts
	run_blackbox
	;;
*)
	echo "usage: scripts/test.sh [unit | scripts | blackbox | cuts | long]" >&2
	exit 2
	;;
esac

if [ "$unexplained" != 0 ]; then
	echo "$unexplained skipped without a reason that begins with explained:"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$unexplained" = 0 ]

#!/bin/bash
# Fuzzes the targets NAME..., one after the other, each for FUZZ_S seconds (60),
# from its corpus in the tree. What it learns stays in build/fuzz/NAME/seeds
# for the next time, what crashes lands in build/fuzz/NAME; fails if anything
# did. To keep a fix fixed, copy that file to tests/fuzz/corpus/NAME.
#
# Usage: fuzz.sh NAME...
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
seconds=${FUZZ_S:-60}
built=build/fuzz/fuzz
crashed=()

export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1}
export LC_ALL=C.UTF-8

# Prints how many files of what crashed there are.
findings() {
	find "build/fuzz/$1" -maxdepth 1 -type f ! -name '*.log' | wc -l
}

fuzz_one() {
	local name=$1 home=build/fuzz/$1 options=()
	mkdir -p "$home/seeds"
	[ ! -f "tests/fuzz/$name.dict" ] ||
		options+=("-dict=tests/fuzz/$name.dict")
	"$built/$name" -max_total_time="$seconds" -timeout=20 -max_len=16384 \
		-rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
		-artifact_prefix="$home/" "${options[@]}" "$home/seeds" \
		"tests/fuzz/corpus/$name" >"$home/fuzz.log" 2>&1 </dev/null
}

[ $# -gt 0 ] || {
	echo "usage: scripts/fuzz.sh NAME..." >&2
	exit 2
}
for name; do
	if [ ! -x "$built/$name" ]; then
		echo "there is no fuzz target $name" >&2
		exit 2
	fi
	fuzz_one "$name"
	rc=$?
	printf '%-16s %s inputs, %s findings\n' "$name" "$(sed -nE \
		's/^stat::number_of_executed_units: *//p' \
		"build/fuzz/$name/fuzz.log")" "$(findings "$name")"
	[ "$rc" != 0 ] || continue
	crashed+=("$name")
	tail -n 100 "build/fuzz/$name/fuzz.log" | grep -av '^stat::'
done
[ ${#crashed[@]} -eq 0 ] || {
	echo "crashed: ${crashed[*]}; see build/fuzz/NAME"
	exit 1
}

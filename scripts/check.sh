#!/bin/bash
# `make check`: what a machine can see without running berth. One line a check,
# with the offences below a FAIL; all run even when one fails.
#
# Usage: check.sh [-C DIR] [CHECK...]   (DIR: another tree to look at)
# Checks: format includes headers docs sizes words shell links cppcheck tidy
#
# Functions and rows are reached by their names only:
# shellcheck disable=SC2317,SC2034
set -u
scripts=$(cd "$(dirname "$0")" && pwd)
if [ "${1:-}" = -C ]; then
	cd "$2" || exit 2
	shift 2
else
	cd "$scripts/.." || exit 2
fi
all=(format includes headers docs sizes words shell links cppcheck tidy)
jobs=$(nproc)
# the versions whose opinion counts: other ones format and warn differently
llvm_major=14
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1

# The tree's files, without what is built or private, by find's own tests.
files() {
	find . \( -path ./build -o -path ./var -o -name .git \) -prune -o \
		-type f "$@" -print | sed 's,^\./,,' | sort
}
c_files() {
	files \( -name '*.c' -o -name '*.h' \)
}
product() {
	files -name "$1" | grep -v '^tests/'
}
flags() {
	make -s --no-print-directory -C "$scripts/.." cflags
}

# Passes lines on; true if there is none.
none() {
	awk '{ print } END { exit NR > 0 }'
}

# True when the major version of the LLVM tool $1 is the one that counts; says
# so otherwise.
is_our_llvm() {
	local major
	major=$("$1" --version | sed -nE 's/.*version ([0-9]+)\..*/\1/p')
	[ "$major" = "$llvm_major" ] && return
	echo "not judged: $1 $major is here, the rules are for $llvm_major"
	return 1
}

check_format() {
	is_our_llvm clang-format || return 0
	c_files | xargs -r -n 8 -P "$jobs" clang-format --dry-run -Werror 2>&1 |
		sed -nE 's/^([^ ]+):[0-9]+:[0-9]+: error: .*/\1/p' | sort |
		uniq -c | sed -E 's/ *([0-9]+) (.*)/\2: \1 places/' | none
}

check_includes() {
	c_files | xargs -r "$scripts/check-includes"
}

# Each header compiles alone: it includes what it uses.
check_headers() {
	local flags
	flags=$(flags) || return 1
	# word splitting is what flags are for
	# shellcheck disable=SC2086
	c_files | grep '\.h$' | xargs -r -n 1 -P "$jobs" \
		"${CC:-cc}" $flags -Wno-unused-function -Werror -fsyntax-only \
		-x c 2>&1
}

check_docs() {
	c_files | xargs -r "$scripts/check-docs"
}

# 800 lines of C are the end of it; above 400 a file probably has two jobs.
check_sizes() {
	local lines file rc=0 long=()
	while read -r lines file; do
		if [ "$lines" -gt 800 ]; then
			echo "$file:$lines: more than 800 lines"
			rc=1
		elif [ "$lines" -gt 400 ] && [ "${file##*.}" = c ]; then
			long+=("$file")
		fi
	done < <(c_files | xargs -r wc -l | grep -v ' total$')
	if [ -f README.md ] && [ "$(wc -l <README.md)" -gt 150 ]; then
		echo "README.md: more than 150 lines"
		rc=1
	fi
	[ ${#long[@]} -eq 0 ] || echo "above 400 lines: ${long[*]}"
	return "$rc"
}

# Paths of somebody's machine, notes to oneself, code that is commented out.
# The brackets keep the pattern from finding itself.
check_words() {
	local words
	words='/(w[o]rk|r[o]ot|f[a]rm)/|\b(T[O]DO|F[I]XME|X[X]X|H[A]CK)\b'
	words+='|^#if 0|not i[m]plemented|<<<[<]<<<|>>>[>]>>>'
	files | xargs -r grep -nIE -- "$words" | none
}

check_shell() {
	local file
	files | while read -r file; do
		if head -c 64 "$file" | head -n 1 | grep -qaE '^#!.*\b(ba|da)?sh\b'
		then
			printf '%s\n' "$file"
		fi
	done | xargs -r shellcheck -f gcc
}

# What each program may name as needed, besides the C library.
allowed_berthd='event_core sqlite3 inih jansson sodium'
allowed_berth_sshd='ssh event_core seccomp'
allowed_berth_session='event_core utf8proc sodium zstd pcre2-8 seccomp'
# The first process of every sandbox is a copy of it.
allowed_berth_sandbox=''
allowed_berth_archive='archive sodium'
allowed_berth='sqlite3 jansson sodium inih utf8proc'

# And what must not come in through another library either: private memory in
# every session, or a network library where the store is.
denied_berthd='ssh crypto'
denied_berth_sshd='sqlite3 inih jansson'
denied_berth_session='ssh crypto sqlite3 inih jansson'
denied_berth_sandbox='ssh crypto sqlite3 inih jansson event_core'
denied_berth_archive='ssh crypto sqlite3 inih jansson event_core'
denied_berth='ssh crypto'

check_links() {
	local program path row lib rc=0
	for program in berthd berth-sshd berth-session berth-sandbox \
		berth-archive berth; do
		path=${BERTH_BUILD:-build}/$program
		if [ ! -x "$path" ]; then
			echo "$path: not built"
			rc=1
			continue
		fi
		row=allowed_${program//-/_}
		for lib in $(readelf -d "$path" |
			sed -nE 's/.*NEEDED.*\[lib(.*)\.so.*/\1/p'); do
			lib=${lib%-2.1} # libevent has its version in its name
			case " ${!row} c m pthread rt dl gcc_s " in
			*" $lib "*) ;;
			*)
				echo "$program: links $lib"
				rc=1
				;;
			esac
		done
		row=denied_${program//-/_}
		for lib in ${!row}; do
			if ldd "$path" | grep -q "^[[:space:]]*lib$lib\.so"; then
				echo "$program: loads $lib"
				rc=1
			fi
		done
	done
	return "$rc"
}

check_cppcheck() {
	mkdir -p build/cppcheck
	# one syntax that its parser does not know must not hide the rest
	product '*.c' | cppcheck --quiet --file-list=- --std=c11 -I. \
		-D_GNU_SOURCE -DBERTH_VERSION='""' -DBERTH_LIBEXECDIR='""' \
		-DBERTH_CONFINED=1 --enable=warning,performance,portability --inline-suppr \
		--suppress=varFuncNullUB --suppress=missingInclude \
		--suppress=missingIncludeSystem \
		--template='{file}:{line}: {severity}: {message} [{id}]' \
		--cppcheck-build-dir=build/cppcheck -j "$jobs" \
		--error-exitcode=1 2>&1
}

# clang-tidy on one file (the whole path to a finding with V=1), unless nothing that it reads has changed since it was
# last clean: the stamp holds the sum of the file, its headers and the rules.
tidy_file() {
	local file=$1 stamp=build/tidy/$1.clean sum
	read -ra flags <<<"$TIDY_FLAGS"
	sum=$({
		echo "$TIDY_FLAGS"
		"${CC:-cc}" "${flags[@]}" -w -MM "$file" 2>/dev/null |
			tr -s '\134 ' '\n' |
			grep '\.[ch]$' | xargs -r cat .clang-tidy
	} | sha256sum)
	[ -f "$stamp" ] && [ "$sum" = "$(cat "$stamp")" ] && return 0
	mkdir -p "${stamp%/*}"
	if clang-tidy --quiet "$file" -- "${flags[@]}" >"$stamp.out" 2>&1; then
		echo "$sum" >"$stamp"
		return 0
	fi
	if [ -n "${V:-}" ]; then
		cat "$stamp.out"
	elif ! grep ' error: ' "$stamp.out"; then
		cat "$stamp.out"
	fi | sed "s,^$PWD/,,; s,^\./,,"
	return 1
}

check_tidy() {
	local note
	note=$(is_our_llvm clang-tidy) || {
		echo "$note"
		return 0
	}
	TIDY_FLAGS="$(flags) -w -include base/banned.h" || return 1
	[ -f base/banned.h ] || TIDY_FLAGS=${TIDY_FLAGS% -include*}
	export TIDY_FLAGS
	export -f tidy_file
	# a header's finding comes once with every file that includes it
	set -o pipefail
	product '*.c' | xargs -r -I{} -P "$jobs" bash -c 'tidy_file {}' |
		if [ -n "${V:-}" ]; then cat; else sort -u; fi
}

[ $# -gt 0 ] || set -- "${all[@]}"
failed=0
for name; do
	case " ${all[*]} " in
	*" $name "*) ;;
	*)
		echo "check.sh: no check '$name'; there are: ${all[*]}" >&2
		exit 2
		;;
	esac
	begun=$SECONDS
	if details=$("check_$name"); then
		printf 'ok    %-9s %ss\n' "$name" $((SECONDS - begun))
	else
		printf 'FAIL  %-9s %ss\n' "$name" $((SECONDS - begun))
		failed=1
	fi
	[ -z "$details" ] || printf '%s\n' "$details" | head -n 200 |
		sed 's/^/      /'
done
exit $failed

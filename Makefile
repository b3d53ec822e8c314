# berth: `make run` starts it, `make test` tests it, `make` builds build/*.
# One non-recursive makefile; each folder becomes an archive, so that a program
# links only what it uses. SAN=address,undefined builds into build/asan.

VERSION   := 0.1.0
PREFIX    ?= /usr/local
SYSCONFDIR ?= /etc/berth
CC        ?= cc
SAN       ?=
V         ?=
B         := $(if $(SAN),build/asan,build)
Q         := $(if $(V),,@)

DIRS := base conf store screen sandbox sandbox/archive sessions/wire sessions/keeper \
	sessions/manager sshd/listener sshd/connection cli
PROGRAMS := berthd berth-sshd berth-session berth-sandbox berth-archive berth

main_berthd        := sshd/listener
main_berth-sshd    := sshd/connection
main_berth-session := sessions/keeper
main_berth-sandbox := sandbox
main_berth-archive := sandbox
main_berth         := cli

dirs_berthd        := sshd/listener sessions/manager sandbox store conf \
	sessions/wire base
dirs_berth-sshd    := sshd/connection sessions/wire base
dirs_berth-session := sessions/keeper sessions/wire screen base
dirs_berth-sandbox := sandbox base
dirs_berth-archive := sandbox/archive sandbox base
dirs_berth         := cli conf sessions/keeper sessions/wire screen base

pkgs_berthd        := libevent_core sqlite3 inih jansson libsodium
pkgs_berth-sshd    := libssh libevent_core
pkgs_berth-session := libevent_core libutf8proc
pkgs_berth-sandbox :=
pkgs_berth-archive := libarchive libsodium
pkgs_berth         := jansson inih libutf8proc
ALL_PKGS := libssh $(pkgs_berthd) libutf8proc libarchive cmocka
# Only what tests and numbers compare with; without it all else still builds.
PEER_PKGS := libtsm

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wwrite-strings -Wformat=2 \
	-Wno-format-truncation -Wvla -Wundef -Wimplicit-fallthrough \
	-Wcast-qual -Wnull-dereference
OPT := $(if $(SAN),-O1 -fno-omit-frame-pointer -fsanitize=$(SAN) \
	-fno-sanitize-recover=undefined,-O2 -D_FORTIFY_SOURCE=2)
# Releases give up what sanitizers need: see base/privilege.h.
CONFINED := $(if $(SAN),0,1)
CFLAGS  ?= -g
LDFLAGS ?=
all_cppflags = -I. -I$(B)/gen -D_GNU_SOURCE -DBERTH_VERSION='"$(VERSION)"' \
	-DBERTH_LIBEXECDIR='"$(PREFIX)/libexec/berth"' \
	-DBERTH_CONFINED=$(CONFINED) \
	-DSSH_SUPPRESS_DEPRECATED $(PKG_CFLAGS) $(CPPFLAGS)
all_cflags = -std=gnu17 $(WARN) $(OPT) -fno-common -fstack-protector-strong \
	-fPIE -ffunction-sections -fdata-sections -pthread $(CFLAGS)
all_ldflags = $(if $(SAN),-fsanitize=$(SAN)) -pie -pthread \
	-Wl,-z,relro,-z,now -Wl,--as-needed -Wl,--gc-sections $(LDFLAGS)

pkg_libs = $(if $(strip $(1)),$(shell pkg-config --libs $(1)))
PKG_CFLAGS := $(shell pkg-config --cflags $(filter-out cmocka,$(ALL_PKGS)) \
	2>/dev/null)

srcs = $(filter-out %/main.c,$(wildcard $(1)/*.c))
objs = $(patsubst %.c,$(B)/obj/%.o,$(1))
arch = $(B)/obj/$(subst /,_,$(1)).a

.PHONY: all run test test-long check fuzz bench install clean format unit cflags FORCE
.SECONDARY:
all: $(PROGRAMS:%=$(B)/%)

# Other flags, another PREFIX among them, compile everything again.
$(B)/gen/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(CC) $(all_cppflags) $(all_cflags))' > $@.new
	@cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@

$(B)/obj/%.o: %.c $(B)/gen/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC      $<")
	$(Q)$(CC) $(all_cppflags) $(all_cflags) -include base/banned.h \
		-MMD -MP -c -o $@ $<

$(B)/obj/tests/%.o: tests/%.c $(B)/gen/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  CC      $<")
	$(Q)$(CC) $(all_cppflags) $(all_cflags) -MMD -MP -c -o $@ $<

$(B)/gen/migrations.c: scripts/embed-sql $(wildcard store/migrations/*.sql)
	@mkdir -p $(@D)
	$(Q)scripts/embed-sql store/migrations/*.sql > $@.tmp && mv $@.tmp $@

$(B)/obj/store/migrations.o: $(B)/gen/migrations.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(all_cppflags) $(all_cflags) -c -o $@ $<

define archive_rule
$(call arch,$(1)): $(call objs,$(call srcs,$(1))) \
	$(if $(filter store,$(1)),$(B)/obj/store/migrations.o)
	$$(Q)rm -f $$@ && $(AR) rcs $$@ $$^
endef
$(foreach d,$(DIRS),$(eval $(call archive_rule,$(d))))

define program_rule
$(B)/$(1): $(B)/obj/$(main_$(1))/main.o $(foreach d,$(dirs_$(1)),$(call arch,$(d)))
	$(if $(V),,@echo "  LD      $$@")
	$$(Q)$(CC) $$(all_ldflags) -o $$@ $$^ $$(call pkg_libs,$(pkgs_$(1)))
endef
$(foreach p,$(PROGRAMS),$(eval $(call program_rule,$(p))))

# Unit tests: one program per file of tests/unit, all libraries on offer.
UNIT := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/*_test.c))
$(B)/unit/%: $(B)/obj/tests/unit/%.o $(foreach d,$(DIRS),$(call arch,$(d)))
	@mkdir -p $(@D)
	$(Q)$(CC) $(all_ldflags) -o $@ $< -Wl,--start-group \
		$(filter %.a,$^) -Wl,--end-group \
		$(call pkg_libs,$(ALL_PKGS) $(PEER_PKGS))

# Programs of make bench.
$(B)/bench/%: $(B)/obj/tests/bench/%.o $(call arch,screen) $(call arch,base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(all_ldflags) -o $@ $^ \
		$(call pkg_libs,libutf8proc $(PEER_PKGS))

# What viewers are sent, for the independent terminal of tests/cuts.
$(B)/cuts/%: $(B)/obj/tests/cuts/%.o $(call arch,screen) $(call arch,base)
	@mkdir -p $(@D)
	$(Q)$(CC) $(all_ldflags) -o $@ $^ $(call pkg_libs,libutf8proc)

# Fuzz targets: with a driver that replays files, or with libFuzzer (make fuzz).
FUZZ := $(patsubst tests/fuzz/%_fuzz.c,%,$(wildcard tests/fuzz/*_fuzz.c))
FUZZ_DRIVER ?= $(B)/obj/tests/fuzz/replay.o
$(B)/fuzz/%: $(B)/obj/tests/fuzz/%_fuzz.o $(filter %.o,$(FUZZ_DRIVER)) \
	$(foreach d,$(DIRS),$(call arch,$(d)))
	@mkdir -p $(@D)
	$(Q)$(CC) $(all_ldflags) -o $@ $< $(FUZZ_DRIVER) -Wl,--start-group \
		$(filter %.a,$^) -Wl,--end-group $(call pkg_libs,$(ALL_PKGS))

fuzz-programs: $(FUZZ:%=$(B)/fuzz/%)
unit-programs: $(UNIT:%=$(B)/unit/%) fuzz-programs $(B)/cuts/cut

# Everything that a person types first gets its packages, then make again, so
# that pkg-config is asked only when they are there; with a job per processor
# unless make was told otherwise.
jobs = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
run:
	$(Q)scripts/deps.sh run
	$(Q)$(MAKE) --no-print-directory $(jobs) all
	$(Q)scripts/run.sh

test:
	$(Q)scripts/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(jobs) all
	$(Q)$(MAKE) --no-print-directory $(jobs) SAN=address,undefined all unit-programs
	$(Q)scripts/test.sh

# Hours of kills, power cuts, load and valgrind, and attaches at many more bytes;
# ONLY="kills" for some of it; BERTH_KILLS, BERTH_CUTS, BERTH_LOAD_S and BERTH_SEED
# in the environment.
test-long:
	$(Q)scripts/deps.sh long
	$(if $(filter engines,$(ONLY)),$(Q)scripts/deps.sh engines)
	$(Q)$(MAKE) --no-print-directory $(jobs) all
	$(Q)$(MAKE) --no-print-directory $(jobs) SAN=address,undefined all \
		build/asan/cuts/cut
	$(Q)ONLY='$(ONLY)' scripts/test.sh long

unit:
	$(Q)$(MAKE) --no-print-directory $(jobs) SAN=address,undefined all unit-programs
	$(Q)scripts/test.sh unit

# Each target FUZZ_S seconds; ONLY="NAME..." for some of them.
fuzz:
	$(Q)scripts/deps.sh fuzz
	$(Q)$(MAKE) --no-print-directory $(jobs) CC=clang B=build/fuzz WARN= \
		SAN=fuzzer-no-link,address,undefined \
		FUZZ_DRIVER=-fsanitize=fuzzer fuzz-programs
	$(Q)scripts/fuzz.sh $(or $(ONLY),$(FUZZ))

check:
	$(Q)scripts/deps.sh test
	$(Q)$(MAKE) --no-print-directory $(jobs) all
	$(Q)scripts/check.sh

# Beside OpenSSH's sshd: ROUNDS=3, ONLY='echo_*,login', BENCH='--quick --list'.
bench:
	$(Q)scripts/deps.sh bench
	$(Q)$(MAKE) --no-print-directory $(jobs) SAN= all build/bench/screen_bench
	$(Q)/usr/bin/python3 tests/bench/bench.py \
		$(if $(ROUNDS),--rounds '$(ROUNDS)') \
		$(if $(ONLY),--only '$(ONLY)') $(BENCH)

# What a checker has to tell a compiler; words, without a shell's quotes.
cflags:
	@echo '-std=gnu17 $(subst ',,$(all_cppflags)) $(WARN)'

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

install: all
	$(Q)DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' SYSCONFDIR='$(SYSCONFDIR)' \
		scripts/install.sh

clean:
	rm -rf build

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)

# The two commands of the README are `make run` and `make test`; `make` alone lists what there is.

RUN ?= runs/quickstart.toml
DATA ?=
ARGS ?=
DOCKER ?= yes

# A command whose output is also kept in a file fails when the command fails.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

CARGO := cargo
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
BINARIES := -p tengen -p tengen-actor -p tengen-coordinator -p tengen-learner
# Parts of the names of tests that start a redis-server or strace, or mount a disk of their own (none of them in tests/).
NEEDY_TESTS := redis_feeds redis:: redis_faults:: ::in_redis both_stores a_server_behind_tls \
	lost_by_a_power_cut every_power_cut_leaves \
	full_disk full_to_the_last_byte finds_no_room training_waits_for_room
FAULT_TESTS := binary(faults) + binary(network) + binary(power_cut) + binary(kills) + binary(hostile) + binary(spoilt) + binary(twins) + \
	test(kills::) + test(power_cut::) + test(flips::) + test(redis_faults::) + test(a_flipped_bit_in_any_record) + \
	test(full_to_the_last_byte) + test(a_full_disk_pauses_play) + test(training_waits_for_room) + test(kill_9_loses_no_game) + \
	test(what_unpacks_to_more)
FAULTS_DIR := $(abspath $(TARGET_DIR))/faults
# Benches of whole programs, and the table of all rows; benches of one part are cargo's own.
BENCH_EXAMPLES := ingest many_actors training_speed selfplay_speed bench_table
# One bench of scripts/bench with what it is told, for example BENCH='selfplay_speed caro5_4x64'; all of them without it.
BENCH ?=
NEXTEST := $(shell command -v cargo-nextest 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup build release run test test-needs nextest-needed test-core conformance openvino check python bench cross-check faults

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  make run RUN=$(RUN) DATA=DIR ARGS='--for 20m'   variables of run"
	@echo "  make test DOCKER=no                                      without the test of the compose file"
	@echo "  make bench BENCH=search                                  one bench, and the table of all rows"

setup: ## check the toolchain and fetch the pinned runtimes (kept: a second time takes milliseconds)
	@scripts/check-toolchain
	@scripts/fetch-runtimes

build: setup ## build everything in the dev profile, which the tests use too
	$(CARGO) build --locked --workspace

release: setup ## build the four programs in release
	$(CARGO) build --locked --release $(BINARIES)

run: release ## set up, build and train: start a local cluster, or go on with the run it finds
	$(TARGET_DIR)/release/tengen up --run $(RUN) $(if $(DATA),--data $(DATA)) $(ARGS)

# Whole-system tests start the programs, so those are built first; doc tests come before the runner's closing line.
test: test-needs setup ## set up, build and run every test
	$(CARGO) build --locked --workspace --bins
ifdef NEXTEST
	$(CARGO) test --locked --workspace --doc --quiet
	$(CARGO) nextest run --locked --workspace $(if $(filter no,$(DOCKER)),-E 'not binary(compose)')
else
	@echo "cargo-nextest is not installed; taking cargo test (cargo install --locked cargo-nextest)"
	$(CARGO) test --locked --workspace --no-fail-fast $(if $(filter no,$(DOCKER)),-- --skip compose_up)
endif

test-needs:
	@scripts/check-test-needs $(if $(filter no,$(DOCKER)),--without-docker)

# Left out beside whole-system tests: what starts a redis-server or strace, and what mounts a small disk.
test-core: setup ## run the tests of the rooms and programs that need no other program than setup does, nor a right to mount
ifdef NEXTEST
	$(CARGO) nextest run --locked --workspace --exclude tengen-system-tests -E 'not (none()$(foreach name,$(NEEDY_TESTS), + test($(name))))'
else
	$(CARGO) test --locked --workspace --exclude tengen-system-tests -- $(foreach name,$(NEEDY_TESTS),--skip $(name))
endif

# What `make test` does with a bound on the plies of each game.
conformance: setup ## check every game over 10,000 random games, however long, and the deepest counts (GAME=go for one)
	$(CARGO) test --locked -p tengen-games --lib -- --ignored --nocapture conformance_in_full::$(GAME)
	$(CARGO) test --locked -p tengen-games --test rules -- --ignored $(GAME)

# A process loads one ONNX Runtime, so OpenVINO's is asked by tests of its own, which `make test` leaves out.
openvino: setup ## fetch the ONNX Runtime that has OpenVINO and hold its answers against the usual provider's (docs/devices.md)
	@scripts/fetch-runtimes --openvino
	$(CARGO) test --locked -p tengen-inference --test openvino -- --ignored

check: setup ## format, clippy, docs, architecture, scripts, licences: warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps
	$(CARGO) test --locked --quiet --workspace --test architecture --test docs
	@scripts/check-extras

# All programs are built, as for the tests: one alone would have its libraries with other features, and built again.
python: setup ## lint the protos and run the Python example against a real coordinator (pip fetches what it needs, once)
	$(CARGO) build --locked --workspace --bins
	@scripts/check-python

# As the tests are built: the whole workspace with its tests' needs, in the dev profile, so that nothing is built again.
bench: test-needs setup ## measure rules, search, data path, window, many actors, training, self-play: BENCH=NAME for one (docs/benchmarks.md)
	$(CARGO) build --locked --workspace --bins
	$(CARGO) build --locked --workspace $(foreach name,$(BENCH_EXAMPLES),--example $(name))
	CARGO='$(CARGO)' scripts/bench $(BENCH)

# Public rules libraries from PyPI go into an environment of their own, target/cross-check.
cross-check: ## compare rules and .npz with public implementations: SUBJECT=five_in_a_row for one, CROSS_CHECK_GAMES=100 for less
	$(CARGO) build --locked -p tengen-games --example referee
	$(CARGO) build --locked -p tengen --bin tengen
	scripts/cross-check $(SUBJECT)

nextest-needed:
	@command -v cargo-nextest >/dev/null || { echo "this target needs cargo-nextest: cargo install --locked cargo-nextest" >&2; exit 1; }

# What crashes may cost, at full length: the tests that `make test` runs in short, and the long counts of spoilt records. Each
# proof writes a row; the results are made of them also after a test that failed. The target fails when a test did, or when a row
# is missing, not proved, or short of its counts.
faults: nextest-needed test-needs setup ## kill, cut, attack and spoil at full length (half an hour); figures in target/faults/results.json
	$(CARGO) build --locked --workspace --bins
	rm -rf $(FAULTS_DIR)
	mkdir -p $(FAULTS_DIR)/rows
	FAULTS=long FAULTS_ROWS=$(FAULTS_DIR)/rows $(CARGO) nextest run --locked --workspace --no-capture --no-fail-fast \
		-E '$(FAULT_TESTS)' 2>&1 | tee $(FAULTS_DIR)/tests.log || touch $(FAULTS_DIR)/failed
	FAULTS_ROWS=$(FAULTS_DIR)/rows $(CARGO) run --locked -p tengen-records --example mutate 2>&1 | tee $(FAULTS_DIR)/mutate.log \
		|| touch $(FAULTS_DIR)/failed
	$(CARGO) run --locked -p tengen-faults --example results -- $(FAULTS_DIR)/rows $(FAULTS_DIR)/results.json
	@[ ! -e $(FAULTS_DIR)/failed ] || { echo "a test failed: see $(FAULTS_DIR)/tests.log and mutate.log" >&2; exit 1; }

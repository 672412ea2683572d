# The commands for working on this project. `make` lists them.

GO     ?= go
PYTHON ?= python3

# SEEDS is the number of seeds that `make simulate` tries.
SEEDS ?= 100000
# ARGS has arguments for the program that a target runs, such as demo, up or bench.
ARGS ?=

# with_dynamodb runs a command with a DynamoDB Local at AWS_ENDPOINT_URL_DYNAMODB. If that variable
# is already set, the command uses the database that it names.
with_dynamodb := $(GO) run ./localstack/cmd/with-dynamodb --
golangci_lint := $(GO) tool -modfile=tools/go.mod golangci-lint
formatters := $(golangci_lint) fmt --config tools/format.yaml

# $(call say,words) prints what is being done, so that nobody wonders about a minute without output.
say = @printf '\n==> %s\n' '$(1)'

# Run the steps one after another, whatever -j says, so that the output of each follows its name.
.NOTPARALLEL:
.DEFAULT_GOAL := help

.PHONY: help
help: ## List what can be made
	@awk -F ':.*## ' '/^[A-Za-z-]+:.*## / { printf "  make %-24s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##### To see it work

.PHONY: demo
demo: ## Send real requests to the real functions and check every answer
	$(GO) run ./localstack/cmd/demo $(ARGS)

# TIMES is the number of payments that `make demo-soak` sends.
TIMES ?= 100

.PHONY: demo-soak
demo-soak: ## Send TIMES=100 payments through stream and queue, under faults
	$(GO) run ./localstack/cmd/demo -soak $(TIMES) $(ARGS)

.PHONY: up
up: export PORT ?= 3000
up: ## Leave the functions running on http://127.0.0.1:3000 (PORT=...)
# Don't use `go run`: it turns Ctrl-C into an error, and SIGTERM to make would end `go run` alone.
	@$(GO) build -o .build/up ./localstack/cmd/up
	@exec .build/up $(ARGS)

##### To know that it works

.PHONY: test
test: lint check-race browser test-go test-simulator test-without-race ## Everything: lint, all tests under -race, the simulator
	$(call say,everything passed)

.PHONY: lint
lint: ## Lint: format, vet, the arrows between packages, and more
	$(call say,golangci-lint (the first run builds it: a minute or two))
	$(formatters) --diff
	$(golangci_lint) run ./...

.PHONY: check-race
check-race:
	@cc=$$($(GO) env CC) && command -v $${cc%% *} >/dev/null || { \
		echo "make test: no C compiler ($$cc), which the race detector needs: install gcc or clang, or set CC" >&2; \
		exit 1; }

# The tests of pages (internal/browsertest) need one of these, which they find by themselves.
browsers = headless_shell headless-shell chromium chromium-browser google-chrome google-chrome-stable chrome \
	'/Applications/Chromium.app/Contents/MacOS/Chromium' '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'

.PHONY: browser
browser: ## Install Chromium for the tests, on Debian, if there is neither Chromium nor Chrome
	@for browser in $(browsers); do if command -v "$$browser" >/dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo "make browser: no Chromium or Chrome, in which the tests open pages: install one" >&2; \
		exit 1; \
	fi; \
	printf '\n==> %s\n' 'apt-get install chromium (the tests open pages in it)'; \
	export DEBIAN_FRONTEND=noninteractive; \
	apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium

# -count=1: many tests drive processes (DynamoDB Local, ElasticMQ, function binaries) that go test does not see
# when it decides whether an earlier result still holds.
# -p: run one package more at a time than there are cores, because these tests often wait for processes.
# -vet=off: the target lint has vetted the tests already.
.PHONY: test-go
test-go: browser
	$(call say,go test -race on all packages and one DynamoDB Local)
	CGO_ENABLED=1 $(with_dynamodb) $(GO) test -race -vet=off -count=1 -timeout 10m -p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) ./...

# commit_seed is the first of 10,000 seeds that are derived from the commit's hash, so that every
# commit tries some that none has tried before: a billion and its first 12 digits (48 bits) in
# blocks of 10,000. Without git it is always the same.
commit_seed = $(shell hash=$$(git rev-parse HEAD 2>/dev/null) || hash=0; \
	echo $$((1000000000 + 0x$$(printf %.12s "$$hash") * 10000)))

# The simulator keeps about 10 MB alive and allocates all the time. GOGC=1600 saves most garbage
# collections, and lets a process grow to about 300 MB.
simulator_test = GOGC=1600 $(GO) test

# draw_failing is the flag by which the simulator draws each failing seed as an HTML page.
draw_failing = -html='$(CURDIR)/.build/simulate'

# The race detector slows the simulator down too much for the whole proof, so test-go runs only a
# hundred seeds. test-simulator runs all of them and prints the counts.
# -parallel: the small cases differ in length. With more of them at a time than there are cores, no
# core is idle while the longest one ends.
.PHONY: test-simulator
test-simulator:
	$(call say,the simulator: 10000 seeds, every order of small cases, every known mistake)
	$(simulator_test) ./simulator -run '^Test(Simulate|Exhaustive|Mutations)' -count=1 -parallel 8 -timeout 20m -v -args $(draw_failing)
	$(call say,the simulator: 10000 seeds of this commit from $(commit_seed) on)
	$(simulator_test) ./simulator -run '^TestSimulate_G3' -count=1 -timeout 10m -v -args -seed=$(commit_seed) -seeds=10000 $(draw_failing)
	$(simulator_test) ./simulator/deliveries -count=1 -timeout 10m -v

# test-without-race runs the tests that would take too long with the race detector.
.PHONY: test-without-race
test-without-race:
	$(call say,without the race detector: the figures of docs/cost.md and both transports)
	$(GO) test ./bench/cost -count=1
	$(with_dynamodb) $(GO) test ./dynamostore -run 'OnTheSDKsTransport|BothTransportsMakeTheSame' -count=1

# SEED is one seed for `make simulate` to draw, failing or not.
SEED ?=
simulate_run  = $(if $(SEED),^TestSimulate_G3,^TestSimulate)
simulate_args = $(if $(SEED),-seed=$(SEED) -seeds=1 -draw,-seeds=$(SEEDS))

.PHONY: simulate
simulate: ## Try many more seeds in the simulator (SEEDS=1000000), or draw one (SEED=50028478)
	$(simulator_test) ./simulator -run '$(simulate_run)' -count=1 -timeout 0 -v -args $(simulate_args) $(draw_failing)

# Chaos starts and stops a DynamoDB Local of its own.
.PHONY: chaos
chaos: ## Kill, stop and cut off real processes under load; audit every payment
	$(GO) test -tags chaos -run '^TestChaos' -count=1 -timeout 20m -v ./localstack/chaos

.PHONY: bench
bench: ## Measure against the bare SDK, in one run
	$(with_dynamodb) $(GO) run ./bench $(ARGS)

.PHONY: bench-first
bench-first: ## Measure the first request of a process, with and without Store.Warm
	$(GO) run ./bench/first $(ARGS)

.PHONY: bench-size
bench-size: ## Measure how much the guard adds to a function's binary
	$(GO) run ./bench/size

.PHONY: bench-storm
bench-storm: ## Send 10,000 duplicates at once, in four modes (ARGS=-write: into docs/performance.md)
	$(GO) run ./bench/storm $(ARGS)

.PHONY: bench-cost
bench-cost: ## Count what requests cost on DynamoDB (ARGS=-write: into docs/cost.md)
	$(with_dynamodb) $(GO) run ./bench/cost $(ARGS)

.PHONY: powertools
powertools: ## Run Powertools for AWS Lambda (Python, TypeScript) beside package dynamostore/powertools
	@PYTHON='$(PYTHON)' tools/powertools/check $(ARGS)

.PHONY: bench-peers
bench-peers: ## Time this toolkit, others and the bare SDK (ARGS=-write: into docs/scoreboard.md)
	PYTHON='$(PYTHON)' $(GO) run ./bench/peers -time $(ARGS)

.PHONY: scoreboard
scoreboard: ## Play the same failures with this toolkit and others (ARGS=-write: into docs/scoreboard.md)
	PYTHON='$(PYTHON)' $(GO) run ./bench/peers $(ARGS)

.PHONY: validate
validate: ## Check the templates and the CDK program, and build all functions with the SAM CLI
	@PYTHON='$(PYTHON)' tools/validate

##### To change it

.PHONY: fmt
fmt: ## Format the code and sort its imports
	$(formatters)

.PHONY: clean
clean: ## Remove what was built here; Go's, DynamoDB Local's and ElasticMQ's caches stay
	rm -rf .aws-sam .build .venv

##### To release it

.PHONY: release-dry-run
release-dry-run: ## Do everything that a release does, except publishing it, into .build/release
	@scripts/release/dry-run

##### To deploy it

.PHONY: aws-try
aws-try: ## Deploy to your AWS account, send requests, take it down (ARGS=--dry-run)
	@scripts/aws-try $(ARGS)

# `sam build` runs these targets, with ARTIFACTS_DIR set. The defaults build for Lambda. To build for
# this machine, run `make build-PaymentsFunction ARTIFACTS_DIR=/tmp/payments GOOS= GOARCH=`. GOOS and
# GOARCH in the environment are ignored, because a deployed binary must not depend on them.
GOOS   = linux
GOARCH = arm64

.PHONY: build-PaymentsFunction
build-PaymentsFunction: ## Build the payments function into ARTIFACTS_DIR
	$(call build_function,./functions/payments)

.PHONY: build-RefundsFunction
build-RefundsFunction: ## Build the refunds function into ARTIFACTS_DIR
	$(call build_function,./functions/refunds)

.PHONY: build-TransfersFunction
build-TransfersFunction: ## Build the transfers function into ARTIFACTS_DIR
	$(call build_function,./functions/transfers)

.PHONY: build-ReceiptsFunction
build-ReceiptsFunction: ## Build the receipts function into ARTIFACTS_DIR
	$(call build_function,./functions/receipts)

.PHONY: build-NotificationsFunction
build-NotificationsFunction: ## Build the notifications function into ARTIFACTS_DIR
	$(call build_function,./functions/notifications)

.PHONY: build-WatchFunction
build-WatchFunction: ## Build the watch function into ARTIFACTS_DIR
	$(call build_function,./functions/watch)

# lambda.norpc omits the protocol of a runtime that no longer exists. The binary contains neither
# paths nor the commit, so equal sources give equal bytes, and `sam deploy` uploads only what changed.
define build_function
@test -n '$(ARTIFACTS_DIR)' || { echo 'make $@: set ARTIFACTS_DIR to the folder that bootstrap goes to' >&2; exit 1; }
CGO_ENABLED=0 GOOS=$(GOOS) GOARCH=$(GOARCH) $(GO) build -tags lambda.norpc -trimpath -buildvcs=false \
	-ldflags '-s -w' -o '$(ARTIFACTS_DIR)/bootstrap' $(1)
endef

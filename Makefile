# The two commands of a newcomer: make demo, make test.
GO ?= go
# One setting for builds, tests and linters, in every folder and for released programs, so that Go compiles each package
# once: no package here needs C, and no program holds the path of the folder in which it was built.
export CGO_ENABLED = 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
STRIPPED = -ldflags '-s -w'

.PHONY: help demo demo-tune demo-pipeline demo-ssh demo-slurm demo-kube demo-aws build test components nightly check lint race laws sim chaos chaos-ssh chaos-slurm chaos-kube chaos-aws fuzz bench bench-kube bench-estimate bench-commit bench-deadline bench-zones bench-queue bench-server bench-store paired figures picture golden install dist
help: ## what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build/scrimp: FORCE
	@echo "Building scrimp (the first build compiles SQLite and takes about a minute on two cores) ..."
	@$(GO) build $(STRIPPED) -tags local -o $@ ./cmd/scrimp

build/chargpt: FORCE
	@echo "Building the example trainer ..."
	@$(GO) build $(STRIPPED) -o $@ ./examples/chargpt

FORCE:

demo: build/scrimp build/chargpt ## the main job on real input: needs nothing but Go
	@./examples/demo.sh build/scrimp build/chargpt build/demo

demo-tune: build/scrimp build/chargpt ## a search for hyper-parameters within a budget, on the demo's market: needs nothing but Go
	@./examples/demo-tune.sh build/scrimp build/chargpt build/demo-tune

demo-pipeline: build/scrimp ## a pipeline that retrains a model only where something has changed, with a gate: needs a shell and awk
	@./examples/demo-pipeline.sh build/scrimp build/demo-pipeline

demo-ssh: build/scrimp ## a job on machines by ssh, network namespaces of this one, whose cable is pulled: needs root, openssh-server and iproute2
	@./examples/demo-ssh.sh build/scrimp build/demo-ssh

demo-slurm: build/scrimp ## a job on a real Slurm cluster of this machine, preempted on the way: needs slurmctld, slurmd, slurm-client and munge
	@./examples/demo-slurm.sh build/scrimp build/demo-slurm

demo-kube: build ## a job on a real Kubernetes cluster of this machine, evicted on the way: needs root, containerd and ten minutes to build it once
	@./examples/demo-kube.sh build/scrimp-full build/demo-kube

demo-aws: build build/chargpt ## the demo's trainer on spot machines of a cloud on this machine that answers as EC2 does: needs root
	@./examples/demo-aws.sh build/scrimp-full build/chargpt build/demo-aws

build: ## the whole program, object stores included, as build/scrimp-full
	$(GO) build $(STRIPPED) -o build/scrimp-full ./cmd/scrimp

PREFIX ?= /usr/local
install: $(if $(FULL),build,build/scrimp) ## the program of make demo, man pages and completions below PREFIX (/usr/local) in DESTDIR; FULL=1: the whole program
	@$(GO) run -tags local ./hack/dist -install "$(DESTDIR)$(PREFIX)" -program build/scrimp$(if $(FULL),-full)

PLATFORMS ?= linux/amd64,linux/arm64,darwin/amd64,darwin/arm64
dist: ## archives, checksums, bills of materials, Debian packages and images in dist/: the same bytes for the same commit
	@$(GO) run ./hack/dist -platforms $(PLATFORMS)

test: ## the commit lane: all that Go alone allows
	@$(GO) run ./hack/testall

components: ## the component lane, real components: make components ONLY=ssh,slurm ALL=1
	@$(GO) run ./hack/testall -lane components $(if $(ALL),-all) $(if $(ONLY),-only '$(ONLY)') $(if $(LIMIT),-limit $(LIMIT))

nightly: ## the long lane, hours: make nightly ONLY=race,fuzz PART=7/10 LIMIT=5m
	@$(GO) run ./hack/testall -lane nightly $(if $(ONLY),-only '$(ONLY)') $(if $(PART),-part $(PART)) $(if $(TURN),-turn $(TURN)) $(if $(LIMIT),-limit $(LIMIT))

RACED ?= ./internal/control ./internal/store
check: lint race laws ## linters, known vulnerabilities, the race detector, thousands of simulated runs

lint: ## linters over the packages that changed since they last passed here (ALL=1: all), and known vulnerabilities
	@command -v golangci-lint >/dev/null || { echo "golangci-lint is not installed: go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.8.0"; exit 1; }
	@$(GO) run ./hack/testall -lane lint $(if $(ALL),-all)
	@./hack/vulncheck

race: ## the race detector over RACED, with the tests of the commit lane: make race RACED=./internal/agent/...
	CGO_ENABLED=1 $(GO) test -race -tags local -parallel 4 -timeout 60m $(RACED)

laws: ## what must hold of policies and runs, in thousands of simulated ones
	$(GO) test ./internal/decide/policy/onezone -run InTheMean -markets 10000
	$(GO) test ./internal/sim/replay -run 'NeverCostsMore' -drawn 10000
	$(GO) test -tags planted ./internal/sim/replay -run Broken
	$(MAKE) sim

SEEDS ?= 3000
FIRST ?= 0
sim: ## simulated runs, of one user and of several teams: make sim SEEDS=100000 FIRST=0
	$(GO) test ./internal/sim -run 'TestInvariants|TestTeams' -seeds $(SEEDS) -teams $(SEEDS) -first $(FIRST) -timeout 60m

CHAOS ?= 10m
chaos: ## servers on a real PostgreSQL and on SQLite, hurt under load in every way, so long each: make chaos CHAOS=1h
	SCRIMP_LANE=nightly $(GO) test ./internal/server -run TestServersThatAreHurtUnderLoadLoseNothing -chaos $(CHAOS) -v -timeout 24h

chaos-ssh: ## machines with a real sshd and their server, hurt in every way, for CHAOS: needs root, openssh-server and iproute2
	SCRIMP_LANE=nightly $(GO) test ./internal/engine/ssh -run TestHome_LosesNothingUnderFaults -chaos $(CHAOS) -v -timeout 24h

chaos-slurm: ## a real Slurm cluster and its server, hurt in every way, for CHAOS: needs slurmctld, slurmd, slurm-client and munge
	SCRIMP_LANE=nightly $(GO) test ./internal/engine/slurm -run TestChaos_LosesNothing -chaos $(CHAOS) -v -timeout 24h

chaos-kube: ## a real Kubernetes control plane with real nodes and their server, hurt in every way, for CHAOS: needs root and what test/kube-build.sh builds
	SCRIMP_LANE=nightly $(GO) test ./internal/engine/kube -run TestChaos_LosesNothing -chaos $(CHAOS) -v -timeout 24h

chaos-aws: ## a cloud that answers as EC2 does, its instances with the real agent, and their server, hurt in every way, for CHAOS: needs root, iproute2 and ec2-metadata-mock
	SCRIMP_LANE=nightly $(GO) test ./internal/engine/aws -run TestChaos_LosesNothing -chaos $(CHAOS) -v -timeout 24h

fuzz: ## half a minute of each fuzz test
	@for f in $$(grep -rlE '^func Fuzz' --include='*_test.go' .); do \
	  for t in $$(grep -oE '^func Fuzz[A-Za-z0-9]+' $$f | cut -c6-); do \
	    echo "$$t in $$(dirname $$f)"; $(GO) test $$(dirname $$f) -run '^$$' -fuzz "^$$t$$" -fuzztime 30s || exit 1; done; done

bench: ## benchmarks of the core, the checkpoints and the agent
	$(GO) test -run '^$$' -bench . -benchtime 1x ./internal/decide/core ./internal/content/checkpoint ./internal/agent ./internal/agent/measure ./internal/store ./internal/server

bench-estimate: ## how wrong estimates are, against baselines, and settled without what is scored: needs ../shared/data/estimate
	@cd internal/estimate && SCRIMP_LANE=nightly $(GO) test -count 1 -run 'TestBench|TestSettledOn' -show -nested

DATA ?= ../shared/data
needs = test -e $(1) || { echo "SKIPPED: $@ needs $(1), which is not there: name the folder with DATA="; exit $${SCRIMP_CI:+1}; };
NODES ?= 1
DEMAND ?= $(DATA)/commitments/demand.csv
gang = --nodes $(NODES) $(if $(LOST_ALONE),--alone)
bench-deadline: ## deadline policies on the public benchmark with one zone: needs ../shared/data/spot (gangs: NODES=4, lost one by one too: LOST_ALONE=1)
	@$(call needs,$(DATA)/spot/availability_2022.csv) $(GO) run ./cmd/scrimp simulate deadline --availability $(DATA)/spot/availability_2022.csv --windows $(DATA)/spot/windows_2022.csv $(gang)

bench-zones: ## the same with several zones, live prices and transfer; the optimum takes minutes, once
	@$(call needs,$(DATA)/spot/zones_public_availability.csv) $(GO) run ./cmd/scrimp simulate zones --availability $(DATA)/spot/zones_public_availability.csv --prices $(DATA)/spot/zones_public_spot_price.csv $(gang)

bench-commit: ## commitments on three years of hourly demand, against their targets: needs ../shared/data/commitments (another file: DEMAND=)
	@$(call needs,$(DEMAND)) $(GO) test -count 1 ./internal/work/commit -run TestBenchmark -v -demand $(abspath $(DEMAND)) | grep -v '^[=-]'

bench-queue: ## packing policies on the public trace of 6,274 jobs, against their targets, minutes: needs ../shared/data/queue
	@$(call needs,$(DATA)/queue/trace_6274.csv) $(GO) test -count 1 -timeout 60m ./internal/sim/queue -run TestBenchmark -v -whole -data $(abspath $(DATA)/queue) | grep -v '^[=-]'
	@$(call needs,$(DATA)/queue/trace_6274.csv) $(GO) run ./cmd/scrimp simulate pack --trace $(DATA)/queue/trace_6274.csv --catalog $(DATA)/queue/instance_types.csv --first 8000 --repeat

JOBS ?= 1000000
FOR ?= 10s
AGENTS ?= 2000
bench-server: ## a server over HTTP at size, on SQLite and a real PostgreSQL: make bench-server JOBS=1000000 FOR=10s (quick: JOBS=20000 FOR=5s AGENTS=100)
	$(GO) test -run '^$$' -bench Load -benchtime 1x -timeout 60m ./internal/server -jobs $(JOBS) -for $(FOR)
	$(GO) test -run '^$$' -bench "Agents|Loud" -benchtime 1x -timeout 60m ./internal/server -agents $(AGENTS) -for $(FOR)

PODS ?= 2000
bench-kube: ## so many machines on a real Kubernetes control plane: what the driver takes of a processor, and asks: make bench-kube PODS=2000
	SCRIMP_LANE=nightly $(GO) test ./internal/engine/kube -run TestLoad_IsSmallForManyMachines -pods $(PODS) -steady 1m -v -timeout 60m

bench-store: ## the store alone at size, on both databases: make bench-store JOBS=1000000
	$(GO) test -run '^$$' -bench 'Append|Resident' -benchtime 1x -timeout 60m ./internal/store -jobs $(JOBS)

BASE ?= HEAD~1
paired: ## this tree against another commit, in turn, with limits: make paired BASE=HEAD~1 (quick: QUICK=1; ONLY=log JSON=1)
	@$(GO) run ./hack/paired -base $(BASE) $(if $(QUICK),-quick) $(if $(PAIRED_JOBS),-jobs $(PAIRED_JOBS)) $(if $(ONLY),-only '$(ONLY)') $(if $(JSON),-json)

figures: ## lines, packages, complexity and methods of this tree; beside another: make figures BESIDE=../parent
	@$(GO) run ./hack/figures . $(BESIDE)

picture: ## docs/receipt.png and docs/dashboard-*.png from the newest make demo; needs chromium
	link=$$(build/scrimp --data build/demo/data open --no-browser) && DASHBOARD=$$link $(GO) test -count 1 -tags picture ./hack/picture

golden: ## rewrite golden files; read the diff before you commit it
	$(GO) test $$(grep -rl '"scrimp/internal/test/golden"' --include='*_test.go' . | xargs -n1 dirname | sort -u) -update

# Everything a contributor runs. `make` alone lists it.

.DEFAULT_GOAL := help
SHELL := bash

tool := go tool -modfile=tools/go.mod

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile bin/claudomator: static, stripped
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/claudomator ./cmd/claudomator

.PHONY: test
test: ## all tests, with a throw-away PostgreSQL where its programs are installed
	scripts/with-postgres go test -shuffle=on ./...

.PHONY: test-race
test-race: ## all tests, or packages=…, under the race detector (needs a C compiler)
	@command -v "$$(go env CC)" >/dev/null || { echo "test-race: SKIPPED: no C compiler"; exit 0; }; \
	set -x; CGO_ENABLED=1 scripts/with-postgres go test -race -shuffle=on $(or $(packages),./...)

.PHONY: test-agents
test-agents: ## the real agent programs against a scripted model; the first run installs them with npm
	@test/agents/install >/dev/null || { [ $$? -eq 3 ] && exit 0; exit 1; }; \
	set -x; go test ./test/agents/...

.PHONY: lint
lint: ## golangci-lint, as .golangci.yml says (the first run compiles it: 80 s)
	$(tool) golangci-lint config verify
	$(tool) golangci-lint run

.PHONY: fmt
fmt: ## format the code
	$(tool) golangci-lint fmt

.PHONY: vet
vet: ## the toolchain's own checks
	go vet ./...

.PHONY: generate
generate: ## write generated code, diagrams and schemas again
	go generate ./...

.PHONY: verify
verify: ## fail where a generated file is not current
	scripts/verify

.PHONY: cross
cross: ## compile for macOS, where many users sit, and vet that build
	CGO_ENABLED=0 GOOS=darwin GOARCH=amd64 go build ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go vet ./...

.PHONY: vulnerabilities
vulnerabilities: ## look dependencies up in Go's vulnerability database
	scripts/vulnerabilities

.PHONY: conformance
conformance: ## the MCP suite against both endpoints, and a linter on docs/openapi.json; needs npm
	scripts/conformance

.PHONY: lint-openapi
lint-openapi: ## the linter on docs/openapi.json alone
	scripts/conformance openapi

.PHONY: check
check: lint vet test verify cross vulnerabilities ## all of it: run this before a pull request

.PHONY: bench
bench: build ## measure against a bare shell loop; writes bench/results.md
	go run ./bench

.PHONY: demo
demo: build ## one story from a goal to what is shipped, without account or network
	bin/claudomator demo

.PHONY: worlds
worlds: ## a million random worlds of the domain (a night); worlds=N for another number
	CLAUDOMATOR_WORLDS=$(or $(worlds),1000000) go test -count=1 -timeout 10h -run 'TestWorlds$$' -v ./internal/review

.PHONY: chaos
chaos: build ## kill, fill and slow a running server; its invariants must hold
	CLAUDOMATOR_CHAOS=1 go test -count=1 -timeout 30m ./test/chaos/...

.PHONY: sweep
sweep: build ## kill a server before every single change that it makes on the disk
	CLAUDOMATOR_CHAOS_SWEEP=1 go test -count=1 -timeout 6h -run 'TestChaos/^sweep$$' ./test/chaos/...

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist bench/tmp

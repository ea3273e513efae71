# docs/contributing/testing.md describes these targets. CI runs `make test`.

GO ?= go
FUZZTIME ?= 15s
BUDGET ?= 10m
PACKAGES ?= ./matchers ./result ./specs ./format/schema ./format/source ./reference/retry ./reference/pinning ./reference/selection

.PHONY: check test soak mutate mutate-named lint cover bench bench-peers fuzz generate clean

check: ## pure packages, format, vet, staticcheck: while you work
	@.ci/test check

test: ## all checks of CI
	@.ci/test test

soak: ## all tests in full, and many random rounds: weekly and before a release
	@.ci/test soak

mutate: ## break PACKAGES in random places for BUDGET, and expect tests to fail
	nice -n 10 $(GO) run ./internal/tools/mutate -budget $(BUDGET) $(PACKAGES)

mutate-named: ## the same in the places of internal/tools/mutate/named.txt
	nice -n 10 $(GO) run ./internal/tools/mutate -named .

lint: ## more linters, and known vulnerabilities
	$(GO) tool -modfile=.ci/tools/golangci-lint/go.mod golangci-lint run ./...
	$(GO) tool -modfile=.ci/tools/go.mod govulncheck ./...

cover: ## write build/coverage.html
	@mkdir -p build
	$(GO) test -coverpkg ./... -coverprofile build/coverage.out $$($(GO) list ./... | grep -v /soak/)
	$(GO) tool cover -html build/coverage.out -o build/coverage.html
	$(GO) tool cover -func build/coverage.out | tail -n 1

bench: ## measure the figures of docs/performance.md, in some twelve minutes
	$(GO) test -run '^$$' -bench . -benchtime 300ms -timeout 30m ./program/internal/bench

bench-peers: ## compare with the runners of three drivers: an hour with COUNT=10
	@.ci/peers

fuzz: ## every fuzz target for FUZZTIME
	@for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

generate: ## regenerate suites and pages
	$(GO) generate ./...

clean:
	rm -rf build

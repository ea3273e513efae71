# The ways to work on utr. `make test` is what CI runs.

GO ?= go
# Not in go.mod: staticcheck is a tool, and wants a newer Go than utr does.
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 15s

.PHONY: test lint vet staticcheck gotest bench fuzz generate clean

test: ## all that CI checks
	@.ci/test

lint: vet staticcheck

vet:
	$(GO) vet ./...

staticcheck:
	$(GO) run $(STATICCHECK) ./...

gotest:
	$(GO) test -race ./...

bench: ## figures of docs/performance.md, in less than five minutes
	$(GO) test -run '^$$' -bench . -benchtime 300ms -timeout 10m ./internal/bench

fuzz: ## every fuzz target for FUZZTIME
	@for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

generate: ## generated suites and pages
	$(GO) generate ./...
	$(GO) run ./cmd/utr help --markdown > docs/commands.md.new
	mv docs/commands.md.new docs/commands.md

clean:
	rm -rf build

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// The table has a row for each comparison of the run, and nothing else of the page changes.
func TestPage(t *testing.T) {
	dir := t.TempDir()
	page, output := filepath.Join(dir, "page.md"), filepath.Join(dir, "bench.txt")
	testkit.Check(t, os.WriteFile(page, []byte("above\n<!-- made by make bench -->\nold\n<!-- end -->\nbelow\n<!-- made by make bench: side by side -->\n<!-- end -->\n"), 0o666))
	testkit.Check(t, os.WriteFile(output, []byte(`goos: linux
BenchmarkAuthors/validate/who=utr-2     	1	500000000 ns/op	 800000000 cpu-ns/op
BenchmarkAuthors/validate/who=node-2    	1	2150000000 ns/op	2600000000 cpu-ns/op
BenchmarkRetryable/who=utr              	1000	150.2 ns/op	0 B/op	0 allocs/op
BenchmarkRetryable/who=go-driver        	1000	20.5 ns/op	0 B/op	0 allocs/op
BenchmarkMatch/fields=256/who=utr-2     	10	7300000 ns/op
BenchmarkSideBySide/mongodb-8.0.4/own-retryable-reads/jobs=1-2     	1	4000000000 ns/op
BenchmarkSideBySide/mongodb-8.0.4/own-retryable-reads/jobs=2-2     	1	2000000000 ns/op
BenchmarkSideBySide/mongodb-8.0.4/own-retryable-reads/jobs=4-2     	1	1000000000 ns/op
BenchmarkSideBySide/mongodb-8.0.4/own-retryable-reads/jobs=8-2     	1	500000000 ns/op
BenchmarkSideBySide/mongodb-8.0.4/own-retryable-reads/jobs=16-2    	1	400000000 ns/op
BenchmarkSideBySide/own-retryable-reads/jobs=1-2    	1	12000000000 ns/op
BenchmarkSideBySide/own-retryable-reads/jobs=2-2    	1	6000000000 ns/op
BenchmarkSideBySide/own-retryable-reads/jobs=4-2    	1	4000000000 ns/op
BenchmarkSideBySide/own-retryable-reads/jobs=8-2    	1	2000000000 ns/op
BenchmarkSideBySide/own-retryable-reads/jobs=16-2   	1	1000000000 ns/op
PASS
`), 0o666))
	testkit.Check(t, update(page, output))
	testkit.Equal(t, "the page", testkit.Read(t, page), `above
<!-- made by make bench -->
| work | `+"`utr`"+` | peer | the peer takes | times as long | CPU time |
|---|---|---|---|---|---|
| validate the specifications repository, twins compared | 500ms | Node.js: js-yaml 5, JSON.parse, ajv 8 | 2.15s | 4.3 | 800ms, 2.6s |
| decide after a failed read | 150ns | Go driver: `+"`Error.RetryableRead`"+`, a part of it | 20ns | 0.14 |  |
<!-- end -->
below
<!-- made by make bench: side by side -->
| suites | one by one | 2 | 4 | 8 | 16 workers |
|---|---|---|---|---|---|
| own `+"`retryable-reads`"+` | 12s | 2 | 3 | 6 | 12 |
| own `+"`retryable-reads`"+` on mongodb-8.0.4 | 4s | 2 | 4 | 8 | 10 |
<!-- end -->
`)
	testkit.Equal(t, "a page without a table fails", update(output, output) != nil, true)
}

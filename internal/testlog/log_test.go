package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLog(t *testing.T) {
	for _, row := range []struct {
		reason, in, want string
		ok               bool
	}{
		{"a test that passes, of whose output nothing is kept", `
{"Action":"start","Package":"m/a"}
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"=== RUN   TestX\n"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"    a_test.go:1: chatter\n"}
{"Action":"pass","Package":"m/a","Test":"TestX","Elapsed":0.1}
{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.2s\n"}
{"Action":"pass","Package":"m/a","Elapsed":0.25}`, `
ok       0.2s  m/a

1 passed, 0 failed, 0 skipped
`, true},
		{"a package without tests has no line", `
{"Action":"start","Package":"m/none"}
{"Action":"output","Package":"m/none","Output":"?   \tm/none\t[no test files]\n"}
{"Action":"skip","Package":"m/none","Elapsed":0}
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a","Elapsed":1}`, `
ok       1.0s  m/a

1 passed, 0 failed, 0 skipped
`, true},
		{"a failed subtest is shown with its parent, its sister that passed is not, and it comes after the other packages", `
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"run","Package":"m/a","Test":"TestX/one"}
{"Action":"output","Package":"m/a","Test":"TestX/one","Output":"    a_test.go:1: good\n"}
{"Action":"pass","Package":"m/a","Test":"TestX/one"}
{"Action":"run","Package":"m/a","Test":"TestX/two"}
{"Action":"output","Package":"m/a","Test":"TestX/two","Output":"    a_test.go:2: bad\n"}
{"Action":"output","Package":"m/a","Test":"TestX/two","Output":"    --- FAIL: TestX/two (0.00s)\n"}
{"Action":"fail","Package":"m/a","Test":"TestX/two"}
{"Action":"output","Package":"m/a","Test":"TestX","Output":"--- FAIL: TestX (0.00s)\n"}
{"Action":"fail","Package":"m/a","Test":"TestX"}
{"Action":"fail","Package":"m/a","Elapsed":2}
{"Action":"pass","Package":"m/b","Test":"TestY"}
{"Action":"pass","Package":"m/b","Elapsed":1}`, `
FAIL     2.0s  m/a
ok       1.0s  m/b

-- failed: m/a
--- FAIL: TestX (0.00s)
    a_test.go:2: bad
    --- FAIL: TestX/two (0.00s)

1 passed, 1 failed, 0 skipped
`, false},
		{"skips are counted by reason, the most frequent first, subtests too", `
{"Action":"output","Package":"m/a","Test":"TestX","Output":"    a_test.go:1: not here\n"}
{"Action":"skip","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Test":"TestY/a","Output":"    a_test.go:7: said before\n"}
{"Action":"output","Package":"m/a","Test":"TestY/a","Output":"    a_test.go:9: too slow: 3 s\n"}
{"Action":"skip","Package":"m/a","Test":"TestY/a"}
{"Action":"output","Package":"m/a","Test":"TestY/b","Output":"    b_test.go:9: too slow: 3 s\n"}
{"Action":"skip","Package":"m/a","Test":"TestY/b"}
{"Action":"pass","Package":"m/a","Test":"TestY"}
{"Action":"skip","Package":"m/a","Test":"TestZ"}
{"Action":"pass","Package":"m/a","Elapsed":1}`, `
ok       1.0s  m/a

-- skipped
    2  too slow: 3 s
    1  (no reason)
    1  not here

1 passed, 0 failed, 2 skipped
`, true},
		{"a package that does not build", `
{"ImportPath":"m/a [m/a.test]","Action":"build-output","Output":"# m/a\n"}
{"ImportPath":"m/a [m/a.test]","Action":"build-output","Output":"a.go:1: undefined: x\n"}
{"ImportPath":"m/a [m/a.test]","Action":"build-fail"}
{"Action":"start","Package":"m/a"}
{"Action":"output","Package":"m/a","Output":"FAIL\tm/a [build failed]\n"}
{"Action":"fail","Package":"m/a","Elapsed":0,"FailedBuild":"m/a [m/a.test]"}
{"Action":"pass","Package":"m/b","Test":"TestY"}
{"Action":"pass","Package":"m/b","Elapsed":1}`, `
FAIL     0.0s  m/a
ok       1.0s  m/b

-- failed: m/a
# m/a
a.go:1: undefined: x
FAIL	m/a [build failed]

1 passed, 1 failed, 0 skipped
`, false},
		{"a panic leaves its own test and another one unfinished", `
{"Action":"run","Package":"m/a","Test":"TestX"}
{"Action":"run","Package":"m/a","Test":"TestY"}
{"Action":"output","Package":"m/a","Test":"TestY","Output":"panic: oh\n"}
{"Action":"fail","Package":"m/a","Elapsed":1}`, `
FAIL     1.0s  m/a

-- failed: m/a
--- UNFINISHED: TestX
panic: oh
--- UNFINISHED: TestY

0 passed, 2 failed, 0 skipped
`, false},
		{"all tests pass and the package fails: a leak, a race after the end, an exit", `
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"output","Package":"m/a","Output":"goleak: Errors on successful test run\n"}
{"Action":"fail","Package":"m/a","Elapsed":1}`, `
FAIL     1.0s  m/a

-- failed: m/a
goleak: Errors on successful test run

1 passed, 1 failed, 0 skipped
`, false},
		{"a package that never ends, for go was killed", `
{"Action":"start","Package":"m/a"}
{"Action":"pass","Package":"m/a","Test":"TestX"}`, `

-- failed: m/a

1 passed, 1 failed, 0 skipped
`, false},
		{"what go says itself is kept", `
go: no modules here
{"Action":"pass","Package":"m/a","Test":"TestX"}
{"Action":"pass","Package":"m/a","Elapsed":1}`, `
ok       1.0s  m/a
go: no modules here

1 passed, 0 failed, 0 skipped
`, true},
		{"nothing at all is no success", "", `

0 passed, 0 failed, 0 skipped
`, false},
	} {
		var out bytes.Buffer
		l := newLog(&out)
		if err := l.read(strings.NewReader(strings.TrimPrefix(row.in, "\n"))); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		ok := l.close()
		if diff := cmp.Diff(strings.TrimPrefix(row.want, "\n"), out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.reason, diff)
		}
		if ok != row.ok {
			t.Errorf("%s: all is well %t, want %t", row.reason, ok, row.ok)
		}
	}
}

// What go really prints is understood: for each way to fail, a package of a
// module made for it.
func TestLogOfGo(t *testing.T) {
	for _, row := range []struct {
		reason, body string
		ok           bool
		want         []string // in the log; the last line is the last of these
	}{
		{"it passes", "func TestX(t *testing.T) { t.Log(\"chatter\") }", true, []string{"1 passed, 0 failed, 0 skipped"}},
		{"it fails", "func TestX(t *testing.T) { t.Error(\"so bad\") }", false, []string{"so bad", "0 passed, 1 failed, 0 skipped"}},
		{"it does not build", "func TestX(t *testing.T) { undefined() }", false, []string{"undefined: undefined", "0 passed, 1 failed, 0 skipped"}},
		{"it panics", "func TestX(t *testing.T) { panic(\"oh dear\") }", false, []string{"panic: oh dear", "0 passed, 1 failed, 0 skipped"}},
		{"it takes too long", "func TestX(t *testing.T) { select { case <-t.Context().Done(): } }", false,
			[]string{"test timed out after 1s", "0 passed, 1 failed, 0 skipped"}},
		{"it exits", "func TestX(t *testing.T) { os.Exit(3) }", false, []string{"UNFINISHED: TestX", "0 passed, 1 failed, 0 skipped"}},
	} {
		dir := t.TempDir()
		files := map[string]string{"go.mod": "module m\n\ngo 1.25.0\n",
			"a_test.go": "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Exit\n\n" + row.body + "\n"}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		limit := "1m" // which no busy machine reaches
		if strings.Contains(row.body, "Done()") {
			limit = "1s"
		}
		command := exec.CommandContext(ctx, "go", "test", "-vet=off", "-timeout", limit, "-json", "./...")
		command.Dir = dir
		command.Env = append(os.Environ(), "GOWORK=off")
		printed, _ := command.CombinedOutput()
		cancel()
		var out bytes.Buffer
		l := newLog(&out)
		if err := l.read(bytes.NewReader(printed)); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
		if ok := l.close(); ok != row.ok {
			t.Errorf("%s: all is well %t, want %t\n%s", row.reason, ok, row.ok, &out)
		}
		for _, want := range row.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: nothing of %q\n%s", row.reason, want, &out)
			}
		}
		if last := row.want[len(row.want)-1]; !strings.HasSuffix(out.String(), "\n"+last+"\n") {
			t.Errorf("%s: it does not end in %q\n%s", row.reason, last, &out)
		}
		if strings.Contains(out.String(), "chatter") {
			t.Errorf("%s: a test that passes is heard of\n%s", row.reason, &out)
		}
	}
}

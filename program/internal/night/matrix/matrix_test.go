package matrix

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// show prints the cells of a file, one on each line.
func show(f *File) string {
	var b strings.Builder
	for _, c := range f.Cells {
		fmt.Fprintf(&b, "%s: %s", c.Name, strings.Join(c.Args(), " "))
		if c.Timeout > 0 {
			fmt.Fprintf(&b, " in %s", c.Timeout)
		}
		b.WriteByte('\n')
	}
	for _, e := range f.Excluded {
		fmt.Fprintf(&b, "- %s: %s\n", e.Cell, e.Reason)
	}
	return b.String()
}

// Each file has the cells below it, with the flags of utr run, or the errors below it.
func TestTranscripts(t *testing.T) {
	for _, name := range []string{"cells", "problems"} {
		testkit.Transcript(t, "testdata/"+name+".txt", func(t *testing.T, file string) (last string) {
			getenv := func(name string) string { return map[string]string{"OVER": "e", "ENV": "e", "SET": "e"}[name] }
			var set map[string]string
			if strings.Contains(file, "${SET}") {
				set = map[string]string{"SET": "s"}
			}
			for i := range 20 { // the order of maps has no effect
				f, err := Parse("m.yml", []byte(file+"\n"), set, getenv, Known{versions, refuseMisspelled})
				got := fmt.Sprint(err)
				if err == nil {
					got = show(f)
				}
				if last != got && i > 0 {
					t.Errorf("%s and\n%s", last, got)
				}
				last = got
			}
			return last
		})
	}
}

// refuseMisspelled refuses some values of flags and a path.
func refuseMisspelled(flag, value string) error {
	if slices.Contains(strings.Fields("replicset sharde sigle three drivr red non curent"), value) {
		return fmt.Errorf("%s %q is unknown", flag, value)
	}
	return nil
}

func empty(string) string { return "" }

// All problems are reported, each once, in the order of the file.
func TestProblemsAreInOrder(t *testing.T) {
	const file = "clusters: [{embedded: {topology: [single, sharded]}, tls: true}]\nsuites: [a]\nbad: ${WHO}\noptions: [{name: o, tls: false}]\n"
	want := `m.yml:1:1: --set WOH: the file does not use ${WOH}; did you mean WHO?
m.yml:3:1: a matrix file has no key "bad"; it has clusters, engines, suites, options, description, variables, defaults, include, exclude
m.yml:4:21: tls is set here and at m.yml:1:54, for the same cell`
	_, err := Parse("m.yml", []byte(file), map[string]string{"WHO": "a", "WOH": "b"}, empty, Known{Versions: versions})
	testkit.Equal(t, "the error", err.Error(), want)
	many := strings.Repeat("v, ", 71)
	_, err = Parse("m.yml", []byte("clusters: [{embedded: {topology: ["+many+"], server-version: ["+many+
		"]}}]\nsuites: [a]\n"), nil, empty, Known{Versions: versions})
	testkit.ErrorContains(t, err, "the matrix has more than 5000 cells")
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"clusters: [{name: c, embedded: single}]\nsuites: [reads]\n",
		"variables: {A: b}\ninclude: [{clusters: {name: '${A:-x}', uri: '$${'}, suites: [a], options: [{}]}]\n",
		"clusters:\n- embedded: {topology: [single, replicaset], server-version: [4.2, 8.0]}\nexclude: [{cluster: s*, reason: r}]\nsuites: [a]\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data, nil, empty, Known{Versions: versions})
		if err != nil {
			testkit.Equal(t, "the error is empty", err.Error() == "", false)
			return
		}
		seen := map[string]bool{}
		for _, c := range file.Cells {
			if c.Name == "" || strings.ContainsAny(c.Name, "/\\ \n\x00") || seen[strings.ToLower(c.Name)] {
				t.Errorf("a cell has the name %q", c.Name)
			}
			seen[strings.ToLower(c.Name)] = true
		}
		testkit.Equal(t, "no cell and no error", len(seen) == 0, false)
	})
}

// The project's own matrix has every topology and version.
func TestNightly(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "examples", "nightly.yml"))
	testkit.Check(t, err)
	f, err := Parse("nightly.yml", data, nil, empty, Known{Versions: versions})
	testkit.Check(t, err)
	want := []string{"--engine reference", "--engine driver", "--tls", "--auth on", "compressors=", "--server-api"}
	for _, topology := range []string{"single", "replicaset", "sharded", "load-balanced"} {
		for _, version := range []string{"4.2", "4.4", "4.9", "5.0", "6.0", "7.0", "8.0", "8.2", "9.0"} {
			if topology != "load-balanced" || version >= "5" {
				want = append(want, "--topology "+topology+" --server-version "+version+" ")
			}
		}
	}
	testkit.Contains(t, show(f), want...)
	for _, c := range f.Cells {
		testkit.Equal(t, c.Name+" has a minute or more", c.Timeout >= time.Minute, true)
	}
}

// Each engines file has the engines or the errors below it.
func TestAdapters(t *testing.T) {
	testkit.Transcript(t, "testdata/adapters.txt", func(t *testing.T, file string) string {
		all, err := ParseAdapters(filepath.Join("drivers", "e.yml"), []byte(file+"\n"), func(name string) string {
			return map[string]string{"PYTHON": "python3.13", "SECRET": "s"}[name]
		}, []string{"reference"})
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for _, a := range all {
			fmt.Fprintf(&b, "%s: %q in %s with %q", a.Name, a.Command, a.Directory, a.Environment)
			if a.KnownFailing != "" {
				fmt.Fprintf(&b, ", known failures in %s", a.KnownFailing)
			}
			if a.StartTimeout > 0 {
				fmt.Fprintf(&b, ", starts within %s", a.StartTimeout)
			}
			for _, r := range a.Requires {
				fmt.Fprintf(&b, ", requires %s: %s", r.Name, r.Install)
			}
			if a.Runtime+a.Missing+a.Elsewhere != "" {
				fmt.Fprintf(&b, ", runtime %q, missing %q, elsewhere %q", a.Runtime, a.Missing, a.Elsewhere)
			}
			b.WriteByte('\n')
			if a.Installs() {
				how, at := a.At("1.2", "/cache/1.2")
				fmt.Fprintf(&b, "  versions %q, installed with %q", a.Versions, how.Command)
				for _, name := range moving {
					if command := how.Moving[name]; command != "" {
						fmt.Fprintf(&b, ", %s is that of %q", name, command)
					}
				}
				if how.Limit > 0 {
					fmt.Fprintf(&b, ", within %s", how.Limit)
				}
				fmt.Fprintf(&b, "\n  %s: %q in %s with %q\n", at.Name, at.Command, at.Directory, at.Environment)
			}
		}
		return b.String()
	})
}

// versions are those of the engine py.
func versions(engine string) []string {
	return map[string][]string{"py": {"latest", "4.20.1", "4.18.3", "4.18.0"}}[engine]
}

package matrix

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/unified-test-runner/utr/internal/testkit"
)

// show prints the cells of a file, one on each line.
func show(f *File) string {
	var b strings.Builder
	for _, c := range f.Cells {
		fmt.Fprintf(&b, "%s: %s", c.Name, strings.Join(c.Args(), " "))
		for i, uri := range []string{c.URI.Reveal(), c.SingleURI.Reveal()} {
			if uri != "" {
				b.WriteString([]string{" @", " @@"}[i] + uri)
			}
		}
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

// small is the beginning of files about something else.
const small = "clusters: [{name: c, embedded: single}]\nsuites: [reads]\n"

// Each file gives these cells, each with the flags of utr run.
func TestCells(t *testing.T) {
	for _, r := range []struct{ reason, file, want string }{
		{"the shortest file runs the reference engine", small, "c_reference_reads: --topology single --engine reference reads\n"},
		{"a product", "clusters:\n- embedded: {topology: [single, replicaset], server-version: [4.2, 8.0]}\nengines: [reference, driver]\nsuites: [a.yml]\n", `
single-4.2_reference_a: --topology single --server-version 4.2 --engine reference a.yml
single-4.2_driver_a: --topology single --server-version 4.2 --engine driver a.yml
single-8.0_reference_a: --topology single --server-version 8.0 --engine reference a.yml
single-8.0_driver_a: --topology single --server-version 8.0 --engine driver a.yml
replicaset-4.2_reference_a: --topology replicaset --server-version 4.2 --engine reference a.yml
replicaset-4.2_driver_a: --topology replicaset --server-version 4.2 --engine driver a.yml
replicaset-8.0_reference_a: --topology replicaset --server-version 8.0 --engine reference a.yml
replicaset-8.0_driver_a: --topology replicaset --server-version 8.0 --engine driver a.yml
`},
		{"a name goes before the values that vary", "clusters: [{name: big, embedded: {topology: [single, sharded], server-version: 8.0, mongoses: 3}}]\nsuites: s\n", `
big-single_reference_s: --topology single --server-version 8.0 --mongoses 3 --engine reference s
big-sharded_reference_s: --topology sharded --server-version 8.0 --mongoses 3 --engine reference s
`},
		{"every kind of cluster", `
clusters:
- {name: u, uri: "mongodb://h/"}
- {name: lb, uri: {uri: "mongodb://h/?loadBalanced=true", single-uri: "mongodb://i/?loadBalanced=true"}}
- orchestration: {url: "http://h:8889", cluster: [replica_sets/basic.json, "id:x1"], version: 8.0, files: tools, clusters: 2}
- {name: o, orchestration: "http://h:8889"}
- local: {dir: /opt/mongodb, topology: [replicaset, sharded], members: 3, shards: 2}
suites: s
`, `
u_reference_s: --engine reference s @mongodb://h/
lb_reference_s: --engine reference s @mongodb://h/?loadBalanced=true @@mongodb://i/?loadBalanced=true
basic-8.0_reference_s: --orchestration http://h:8889 --cluster replica_sets/basic.json --clusters 2 --orchestration-version 8.0 --orchestration-files tools --engine reference s
id-x1-8.0_reference_s: --orchestration http://h:8889 --cluster id:x1 --clusters 2 --orchestration-version 8.0 --orchestration-files tools --engine reference s
o_reference_s: --orchestration http://h:8889 --engine reference s
replicaset_reference_s: --local /opt/mongodb --topology replicaset --members 3 --local-shards 2 --engine reference s
sharded_reference_s: --local /opt/mongodb --topology sharded --members 3 --local-shards 2 --engine reference s
`},
		{"settings of every part, and defaults", `
defaults: {timeout: 1m, jobs: 2, cell-timeout: 10m}
clusters: [{name: c, embedded: single, auth: true, cell-timeout: 1h}]
engines: [{name: d, engine: driver, known-failing: k.txt, timeout: 2m}]
suites: [{name: s, paths: [a.yml, b.yml], skip: [x, z]}]
options: [{}, {name: zlib, tls: true, uri-options: {compressors: zlib, appName: a b}, server-api: 1, skip: y, retry-failed: 2}]
`, `
c_d_s: --topology single --auth on --engine driver --known-failing k.txt --timeout 2m --skip x --skip z --jobs 2 a.yml b.yml in 1h0m0s
c_d_s_zlib: --topology single --auth on --engine driver --known-failing k.txt --timeout 2m --skip x --skip z --skip y --tls --server-api 1 --uri-option compressors=zlib --uri-option appName=a b --retry-failed 2 --jobs 2 a.yml b.yml in 1h0m0s
`},
		{"an option overrides a default", "defaults: {tls: true}\noptions: [{name: plain, tls: false}, {name: other}]\n" + small, `
c_reference_reads_plain: --topology single --engine reference reads
c_reference_reads_other: --topology single --engine reference --tls reads
`},
		{"exclude", "clusters: [{embedded: {topology: [single, sharded]}}]\nengines: [reference, driver]\nsuites: [a, b]\nexclude:\n- {cluster: sh*, engine: driver, reason: too slow}\n- {suites: [b], reason: done elsewhere}\n", `
single_reference_a: --topology single --engine reference a
single_driver_a: --topology single --engine driver a
sharded_reference_a: --topology sharded --engine reference a
- sharded_driver_a: too slow
- sharded_driver_b: too slow
- single_reference_b: done elsewhere
- single_driver_b: done elsewhere
- sharded_reference_b: done elsewhere
`},
		{"include adds blocks of existing and of new parts", "clusters: [{name: c1, embedded: single}, {name: c2, embedded: sharded}]\nsuites: [a]\ninclude:\n- {clusters: c*, suites: b.yml, options: {name: tls, tls: true}}\n- {clusters: [{name: n, embedded: replicaset}], engines: [driver]}\n", `
c1_reference_a: --topology single --engine reference a
c2_reference_a: --topology sharded --engine reference a
c1_reference_b_tls: --topology single --engine reference --tls b.yml
c2_reference_b_tls: --topology sharded --engine reference --tls b.yml
n_driver_a: --topology replicaset --engine driver a
`},
		{"included cells alone", "include: [{clusters: {name: c, embedded: single}, suites: a}]\n", "c_reference_a: --topology single --engine reference a\n"},
		{"an excluded cell can be included", "clusters: {name: c, embedded: single}\nsuites: a\nexclude: {cluster: c, reason: r}\ninclude: {clusters: c, options: {name: o, tls: true}}\n", "c_reference_a_o: --topology single --engine reference --tls a\n- c_reference_a: r\n"},
		{"variables: what was set, the environment, the file, the default", `
variables: {FILE: f, OVER: f, SET: f, N: 3, BOTH: "${FILE}-${ENV}"}
clusters: {name: c, embedded: {topology: replicaset, members: "${N}"}}
suites: {name: s, paths: ["${SET}", "${OVER}", "${ENV}", "${FILE}", "${NONE:-d}", "${EMPTY:-e}", "${EMPTY2:-}x", "${BOTH}", "$${FILE}"]}
`, "c_reference_s: --topology replicaset --members 3 --engine reference s e e f d e x f-e ${FILE}\n"},
		{"a path that looks like a flag", "clusters: {name: c, embedded: single}\nsuites: {name: s, paths: [-v.yml]}\n", "c_reference_s: --topology single --engine reference -- -v.yml\n"},
		{"paths give suites their names", "clusters: {name: c, embedded: single}\nsuites: [specs/retryable-reads/, ./x y.yml]\n", "c_reference_retryable-reads: --topology single --engine reference specs/retryable-reads/\nc_reference_x-y: --topology single --engine reference ./x y.yml\n"},
	} {
		o := Options{Getenv: func(name string) string { return map[string]string{"OVER": "e", "ENV": "e", "SET": "e"}[name] }}
		if strings.Contains(r.file, "${SET}") {
			o.Set = map[string]string{"SET": "s"}
		}
		for range 20 { // the order of a map does not show
			f, err := Parse("m.yml", []byte(r.file), o)
			testkit.Check(t, err)
			if diff := cmp.Diff(strings.TrimPrefix(r.want, "\n"), show(f)); diff != "" {
				t.Fatalf("%s (-want +got)\n%s", r.reason, diff)
			}
		}
	}
}

// Each mistake is reported at its place.
func TestProblems(t *testing.T) {
	long := strings.Repeat("v, ", 71)
	for _, r := range []struct{ reason, file, want string }{
		{"a misspelt key", small + "engine: driver\n", `m.yml:3:1: a matrix file has no key "engine"; did you mean engines?`},
		{"a key like no other", small + "colour: red\n", `m.yml:3:1: a matrix file has no key "colour"; it has clusters, `},
		{"a misspelt key of a cluster", "clusters: [{name: c, embeded: single}]\nsuites: [a]\n", `m.yml:1:22: a cluster has no key "embeded"; did you mean embedded?`},
		{"a misspelt key of a kind", "clusters: [{embedded: {topolgy: single}}]\nsuites: [a]\n", `m.yml:1:24: embedded has no key "topolgy"; did you mean topology?`},
		{"a misspelt key of options", small + "options: [{name: o, tsl: true}]\n", `m.yml:3:21: options has no key "tsl"; did you mean tls?`},
		{"a list in place of a document", "- a\n", "m.yml:1:1: a matrix file must be a document"},
		{"a cell twice, by its name", "clusters: [{name: c, embedded: single}, {name: C, embedded: sharded}]\nsuites: [a]\n", "m.yml:1:41: the cell C_reference_a is there already: m.yml:1:12"},
		{"a cell twice, by what it does", "clusters: [{name: c, embedded: single}, {name: d, embedded: single}]\nsuites: [a]\n", "m.yml:1:41: the cells c_reference_a and d_reference_a are the same run"},
		{"a cell twice, by an include", small + "include: [{clusters: c}]\n", "m.yml:3:11: the cell c_reference_reads is there already"},
		{"no clusters", "suites: [a]\n", "m.yml:1:1: the matrix has no cells: it names no clusters"},
		{"no suites", "clusters: [{name: c, embedded: single}]\n", "it names no suites"},
		{"all excluded", small + "exclude: {cluster: c, reason: r}\n", "m.yml:1:1: the matrix has no cells: all 1 are excluded"},
		{"an exclude that matches nothing", small + "exclude: [{cluster: c, engine: diver, reason: r}]\nengines: [reference, driver]\n", "m.yml:3:11: the rule excludes nothing: no cell matches it; did you mean engine driver?"},
		{"an exclude without a reason", small + "exclude: [{cluster: x}]\n", "m.yml:3:11: a rule of exclude needs a reason"},
		{"an exclude without a pattern", small + "exclude: [{reason: r}]\n", "m.yml:3:11: a rule of exclude needs one of cluster, engine, suites, options"},
		{"a broken pattern", small + "exclude: [{cluster: '[', reason: r}]\n", `m.yml:3:21: "[" is no pattern`},
		{"an include of an unknown cluster", small + "include: [{clusters: d*}]\n", `m.yml:3:22: "d*" names none of the clusters: c`},
		{"an include without suites", "include: [{clusters: {name: c, embedded: single}}]\n", "m.yml:1:11: the block needs suites: the file has none"},
		{"a variable without a value", small + "description: ${WHO}\n", "m.yml:3:14: the variable WHO has no value: give it with --set WHO=VALUE"},
		{"a misspelt variable", small + "variables: {WHOM: x}\ndescription: ${WHO}\n", "did you mean WHOM?"},
		{"a variable without its closing brace", small + "description: ${WHO\n", "m.yml:3:14: ${ is not closed by }"},
		{"a number for a variable", small + "description: ${1}\n", "m.yml:3:14: ${1} is no variable"},
		{"a variable whose value has an undefined variable", small + "variables: {A: '${B}', B: x}\n", "m.yml:3:16: the variable B has no value"},
		{"a list for the value of a variable", small + "variables: {A: [1]}\n", "m.yml:3:16: the variable A must be a text"},
		{"a hyphen in the name of a variable", small + "variables: {a-b: 1}\n", `m.yml:3:13: "a-b" is no name of a variable`},
		{"a cluster of two kinds", "clusters: [{name: c, embedded: single, uri: x}]\nsuites: [a]\n", "m.yml:1:12: a cluster has one of embedded, uri, orchestration, local"},
		{"a cluster of no kind", "clusters: [{name: c}]\nsuites: [a]\n", "m.yml:1:12: a cluster has one of"},
		{"a text in place of a cluster", "clusters: [c]\nsuites: [a]\n", "m.yml:1:12: a cluster must be a document"},
		{"a connection string without a name", "clusters: [{uri: x}]\nsuites: [a]\n", "m.yml:1:12: a cluster with a connection string needs a name"},
		{"an empty connection string", "clusters: [{name: c, uri: '${U:-}'}]\nsuites: [a]\n", "m.yml:1:27: uri is empty"},
		{"orchestration without a service", "clusters: [{name: c, orchestration: {cluster: x}}]\nsuites: [a]\n", "m.yml:1:37: orchestration needs url"},
		{"a list in place of a service", "clusters: [{name: c, orchestration: [x]}]\nsuites: [a]\n", "m.yml:1:37: url must be a text"},
		{"a cluster without a name", "clusters: [{embedded: {members: 3}}]\nsuites: [a]\n", "m.yml:1:12: the cluster needs a name, or a topology or version to be called by"},
		{"a slash in a name", "clusters: [{name: a/b, embedded: single}]\nsuites: [a]\n", `m.yml:1:19: the name "a/b" cannot be part of a file's name`},
		{"the separator in a name", "clusters: [{name: a_b, embedded: single}]\nsuites: [a]\n", `the name "a_b" cannot be`},
		{"a setting twice in a cell", "clusters: [{name: c, embedded: single, tls: true}]\nsuites: [a]\noptions: [{name: o, tls: true}]\n", "m.yml:3:21: tls is set here and at m.yml:1:40, which meet in a cell"},
		{"options without a name", small + "options: [{tls: true}]\n", "m.yml:3:11: options need a name"},
		{"neither true nor false", small + "options: [{name: o, tls: maybe}]\n", "m.yml:3:26: tls must be true or false"},
		{"a text in place of URI options", small + "options: [{name: o, uri-options: zlib}]\n", "m.yml:3:34: uri-options must be a document"},
		{"a number in place of a duration", small + "defaults: {cell-timeout: 5}\n", "m.yml:3:26: cell-timeout must be a length of time"},
		{"suites without paths", "clusters: [{name: c, embedded: single}]\nsuites: [{name: s}]\n", "m.yml:2:10: suites need paths"},
		{"suites of several paths without a name", "clusters: [{name: c, embedded: single}]\nsuites: [{paths: [a, b]}]\n", "m.yml:2:10: suites of several paths need a name"},
		{"an engine without a name", small + "engines: [{timeout: 1m}]\n", "m.yml:3:11: an engine needs a name"},
		{"an empty list", "clusters: []\nsuites: [a]\n", "m.yml:1:11: clusters is an empty list: leave it out"},
		{"a list in a list", small + "engines: [[a]]\n", "m.yml:3:11: the name of an engine must be a text"},
		{"a matrix too large", "clusters: [{embedded: {topology: [" + long + "], server-version: [" + long + "]}}]\nsuites: [a]\n", "the matrix has more than 5000 cells"},
		{"malformed YAML", "clusters: [\n", "m.yml:"},
	} {
		_, err := Parse("m.yml", []byte(r.file), Options{})
		testkit.Fails(t, err, r.want)
	}
}

// Everything that is wrong is reported at once, each once, in the order of the
// file.
func TestProblemsAreInOrder(t *testing.T) {
	const file = "clusters: [{embedded: {topology: [single, sharded]}, tls: true}]\nsuites: [a]\nbad: ${WHO}\noptions: [{name: o, tls: false}]\n"
	want := `m.yml:1:1: --set WOH: the file has no ${WOH}; did you mean WHO?
m.yml:3:1: a matrix file has no key "bad"; it has clusters, engines, suites, options, description, variables, defaults, include, exclude
m.yml:4:21: tls is set here and at m.yml:1:54, which meet in a cell`
	_, err := Parse("m.yml", []byte(file), Options{Set: map[string]string{"WHO": "a", "WOH": "b"}})
	testkit.Equal(t, "the error", err, want)
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{small, "variables: {A: b}\ninclude: [{clusters: {name: '${A:-x}', uri: '$${'}, suites: [a], options: [{}]}]\n",
		"clusters:\n- embedded: {topology: [single, replicaset], server-version: [4.2, 8.0]}\nexclude: [{cluster: s*, reason: r}]\nsuites: [a]\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("f", data, Options{})
		if err != nil {
			testkit.Equal(t, "the error says nothing", err.Error() == "", false)
			return
		}
		seen := map[string]bool{}
		for _, c := range file.Cells {
			if c.Name == "" || strings.ContainsAny(c.Name, "/\\ \n\x00") || seen[strings.ToLower(c.Name)] {
				t.Errorf("a cell is called %q", c.Name)
			}
			seen[strings.ToLower(c.Name)] = true
		}
		testkit.Equal(t, "no cell, and no error", len(seen) == 0, false)
	})
}

// The project's own matrix has every topology and version.
func TestNightly(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "nightly.yml"))
	testkit.Check(t, err)
	f, err := Parse("nightly.yml", data, Options{})
	testkit.Check(t, err)
	want := []string{"--engine reference", "--engine driver", "--tls", "--auth on", "compressors=", "--server-api"}
	for _, topology := range []string{"single", "replicaset", "sharded", "load-balanced"} {
		for _, version := range []string{"4.2", "4.4", "4.9", "5.0", "6.0", "7.0", "8.0", "8.2", "9.0"} {
			if topology != "load-balanced" || version >= "5" {
				want = append(want, "--topology "+topology+" --server-version "+version+" ")
			}
		}
	}
	testkit.Says(t, show(f), want...)
	for _, c := range f.Cells {
		testkit.Equal(t, c.Name+" may take a minute", c.Timeout >= time.Minute, true)
	}
}

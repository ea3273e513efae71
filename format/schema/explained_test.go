package schema

import (
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

const explainedFiles = "testdata/explained.txt"

const head = "description: a\nschemaVersion: '1.28'\n"

// inTest returns a file whose test has further fields, at line 5.
func inTest(fields string) string { return head + "tests:\n- description: t\n  " + fields + "\n" }

// operation returns a file with an operation at line 6, column 5.
func operation(fields string) string { return inTest("operations:\n  - " + fields) }

// explained reads testdata/explained.txt. A section is "-- version: reason --", the file, "=>", and the
// messages about it.
func explained(t testing.TB) (rows []row) {
	t.Helper()
	text := testkit.Read(t, explainedFiles)
	for _, section := range strings.Split(text, "-- ")[1:] {
		title, rest, _ := strings.Cut(section, " --\n")
		version, reason, _ := strings.Cut(title, ": ")
		file, _, _ := strings.Cut(rest, "=>\n")
		rows = append(rows, row{reason: reason, version: version, file: file})
	}
	return rows
}

// String returns "file:line:column: path: message".
func (p Problem) String() string {
	path := p.Path
	if path != "" {
		path += ": "
	}
	return p.Position.String() + ": " + path + p.Message
}

// messages returns the problems of a file at a version, one a line, its nested problems, and its lowest
// version.
func messages(t testing.TB, r row) string {
	t.Helper()
	var all strings.Builder
	line := func(parts ...string) {
		all.WriteString(strings.ReplaceAll(strings.Join(parts, ""), "suite.yml:", "") + "\n")
	}
	root := parse(t, r.file)
	problems := validate(t, r.version, root)
	for _, p := range problems {
		line(p.String())
	}
	if len(problems) == 0 { // Nested requires a valid file
		for _, p := range Nested(root) {
			line("nested ", p.String())
		}
	}
	lowest, _, wrong, err := Lowest(root)
	testkit.Check(t, err)
	ok := wrong == nil
	if ok && len(validate(t, lowest, root)) > 0 || ok != (len(validate(t, Newest, root)) == 0) {
		t.Errorf("%s: not valid at %q", r.reason, lowest)
	}
	if ok {
		line("valid since ", lowest)
	} else {
		line("valid at no version")
	}
	return all.String()
}

// Messages that depend on more than a key and its type. TestMessages has the others.
func TestExplained(t *testing.T) {
	all := ""
	for _, r := range explained(t) {
		all += "-- " + r.version + ": " + r.reason + " --\n" + r.file + "=>\n" + messages(t, r) + "\n"
	}
	testkit.Golden(t, explainedFiles, all)
}

// Every allowed key and value is accepted, and every violation of one constraint has its message and
// position.
func TestMessages(t *testing.T) {
	for _, r := range tableRows(t) {
		var got []string
		for _, p := range validate(t, r.version, parse(t, r.file)) {
			got = append(got, strings.TrimPrefix(p.String(), "suite.yml:"))
		}
		if strings.Join(got, "\n") != r.want {
			t.Errorf("%s, at %s\n%s\n got: %s\nwant: %s", r.reason, r.version, r.file, strings.Join(got, "\n      "), r.want)
		}
	}
}

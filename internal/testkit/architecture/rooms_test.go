package architecture

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

const (
	module = "github.com/unified-test-runner/utr"
	page   = root + "/docs/architecture.md"
)

// A room is a line of the table in docs/architecture.md: a folder with everything below it that has no line of its own.
type room struct {
	name    string   // a folder, or utr for the root
	imports []string // packages and folders that its packages may import besides its own
	lines   lines    // of Go
}

// lines counts lines of Go: of the packages that cmd/utr consists of, of other packages, and of tests.
type lines struct{ shipped, other, tests int }

var line = regexp.MustCompile("^\\| `([\\w/.]+)` \\| [^|]+ \\| ([^|]+) \\| (\\d+) \\| (\\d+) \\| (\\d+) \\|\n$")

// roomsOf parses the table. Rooms are in the order of the page.
func roomsOf(text string) (rooms []room) {
	for l := range strings.Lines(text) {
		m := line.FindStringSubmatch(l)
		if m == nil {
			continue
		}
		r := room{name: m[1]}
		for _, i := range quoted.FindAllStringSubmatch(m[2], -1) {
			r.imports = append(r.imports, i[1])
		}
		for i, n := range []*int{&r.lines.shipped, &r.lines.other, &r.lines.tests} {
			*n, _ = strconv.Atoi(m[3+i])
		}
		rooms = append(rooms, r)
	}
	return rooms
}

// within reports whether a package or folder is a folder or below it.
func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// of returns the index in the table of the room of a package or folder: the line with the longest name. If there is
// none, it returns -1.
func of(rooms []room, name string) int {
	found := -1
	for i, r := range rooms {
		if within(name, r.name) && (found < 0 || len(r.name) > len(rooms[found].name)) {
			found = i
		}
	}
	return found
}

// allowed reports whether a package may import another: a package of its own room, or one that the room's line names.
// What a line names must be in a line below it, or in the folder around it.
func allowed(rooms []room, from, to string) bool {
	f, t := of(rooms, from), of(rooms, to)
	if f < 0 || t < 0 {
		return false
	}
	return f == t || (f < t || within(rooms[f].name, rooms[t].name)) && slices.ContainsFunc(rooms[f].imports, func(i string) bool { return within(to, i) })
}

// inside returns the name of a package of this module as on the page.
func inside(path string) string {
	if path == module {
		return "utr"
	}
	return strings.TrimPrefix(path, module+"/")
}

// Packages import only what the page allows. Everything that the page allows is used, and packages for users do not
// import testing.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}}{{range .Imports}} {{.}}{{end}}", root+"/...").Output()
	testkit.Check(t, err)
	rooms, used := roomsOf(read(t, "docs/architecture.md")), map[string]bool{}
	for l := range strings.Lines(string(out)) {
		fields := strings.Fields(l)
		name := inside(fields[0])
		testkit.Equal(t, "docs/architecture.md has a room for "+name, of(rooms, name) >= 0, true)
		if !within(name, "internal/testkit") && slices.Contains(fields[1:], "testing") {
			t.Errorf("%s imports testing, which belongs to tests", name)
		}
		for _, i := range fields[1:] {
			if !within(i, module) {
				continue
			}
			other := inside(i)
			testkit.Equal(t, "docs/architecture.md allows that "+name+" imports "+other, allowed(rooms, name, other), true)
			if from := of(rooms, name); from >= 0 {
				for _, i := range rooms[from].imports {
					if within(other, i) {
						used[rooms[from].name+" imports "+i] = true
					}
				}
			}
		}
	}
	for _, r := range rooms {
		for _, i := range r.imports {
			testkit.Equal(t, "some package of "+r.name+" imports "+i, used[r.name+" imports "+i], true)
		}
	}
}

func TestImportsCanFail(t *testing.T) {
	rooms := roomsOf(read(t, "docs/architecture.md"))
	for _, row := range []struct {
		reason, from, to string
		want             bool
	}{
		{"the runner may use matchers", "runner", "matchers", true},
		{"the runner does not import engines", "runner", "reference", false},
		{"matchers do not import suites", "matchers", "specs", false},
		{"a comparison uses engines only through their interface", "program/internal/compare", "engine/driver", false},
		{"reports do not run tests", "program/internal/report", "runner", false},
		{"the core decides without a clock or a server", "reference/retry", "reference", false},
		{"the core does not select", "reference/retry", "reference/selection", false},
		{"the embedded deployment does not import engines", "embedded/internal/query", "engine", false},
		{"the store does not import commands", "embedded/internal/store", "embedded/internal/commands", false},
		{"parts of a room may import each other", "embedded/internal/query", "embedded/internal/value", true},
		{"the packages at the bottom do not import others", "internal/wire", "result", false},
		{"a package without a room may not import others", "nowhere", "result", false},
		{"a package without a room may not be imported", "runner", "nowhere", false},
	} {
		testkit.Equal(t, row.reason, allowed(rooms, row.from, row.to), row.want)
	}
}

// budget returns the entries of the table that are wrong: a room has more lines than its entry allows, or far fewer.
func budget(rooms []room, count map[string]lines) (wrong []string) {
	for _, r := range rooms {
		n := count[r.name]
		for _, c := range []struct {
			kind          string
			count, budget int
		}{
			{"shipped", n.shipped, r.lines.shipped},
			{"other", n.other, r.lines.other},
			{"test", n.tests, r.lines.tests},
		} {
			if c.count > c.budget {
				wrong = append(wrong, fmt.Sprintf("%s has %d %s lines, %d more than docs/architecture.md allows",
					r.name, c.count, c.kind, c.count-c.budget))
			} else if c.budget > c.count+c.count/20 {
				wrong = append(wrong, fmt.Sprintf("%s has only %d %s lines: lower the %d of docs/architecture.md",
					r.name, c.count, c.kind, c.budget))
			}
		}
	}
	return wrong
}

// No room has more lines than the page says, or far fewer. UTR_UPDATE=1 writes the actual numbers.
func TestBudget(t *testing.T) {
	text := read(t, "docs/architecture.md")
	rooms := roomsOf(text)
	count := counted(t, rooms)
	if os.Getenv("UTR_UPDATE") != "" {
		testkit.Check(t, os.WriteFile(page, []byte(updated(text, count)), 0o644))
		return
	}
	testkit.Equal(t, "rooms that break the budget", strings.Join(budget(rooms, count), "; "), "")
	testkit.Equal(t, "the sums of the page", updated(text, nil), text)
	testkit.Equal(t, "rooms with lines", len(slices.Collect(maps.Keys(count))), len(rooms))
}

func TestBudgetCanFail(t *testing.T) {
	rooms := []room{{name: "runner", lines: lines{shipped: 100, tests: 100}}}
	for _, row := range []struct {
		reason string
		count  lines
		want   int
	}{
		{"as the page says", lines{100, 0, 100}, 0},
		{"a few lines fewer", lines{96, 0, 100}, 0},
		{"one line more", lines{101, 0, 100}, 1},
		{"a package that the program does not have any more", lines{0, 100, 100}, 2},
		{"more tests", lines{100, 0, 101}, 1},
		{"the page allows too much", lines{95, 0, 100}, 1},
	} {
		testkit.Equal(t, row.reason, len(budget(rooms, map[string]lines{"runner": row.count})), row.want)
	}
}

// counted counts the lines of each room.
func counted(t *testing.T, rooms []room) map[string]lines {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", root+"/cmd/utr").Output()
	testkit.Check(t, err)
	shipped := map[string]bool{}
	for name := range strings.Lines(string(out)) {
		shipped[inside(strings.TrimSpace(name))] = true
	}
	count := map[string]lines{}
	testkit.Check(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "build") {
			if d != nil && d.IsDir() {
				return filepath.SkipDir
			}
			return err
		}
		if filepath.Ext(file) != ".go" {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		testkit.Check(t, err)
		if dir = filepath.ToSlash(dir); dir == "." {
			dir = "utr"
		}
		at := of(rooms, dir)
		if at < 0 {
			t.Errorf("docs/architecture.md has no room for %s", file)
			return nil
		}
		n, c := strings.Count(testkit.Read(t, file), "\n"), count[rooms[at].name]
		switch {
		case strings.HasSuffix(file, "_test.go"):
			c.tests += n
		case shipped[dir]:
			c.shipped += n
		default:
			c.other += n
		}
		count[rooms[at].name] = c
		return nil
	}))
	return count
}

var sum = regexp.MustCompile(`(?m)^\| \*\*all\*\* \| [^|]*\| [^|]*\| \d+ \| \d+ \| \d+ \|$`)

// updated returns the page with these counts, and with their sums. Without counts, only the sums change.
func updated(text string, count map[string]lines) string {
	var all lines
	var out strings.Builder
	for l := range strings.Lines(text) {
		if m := line.FindStringSubmatch(l); m != nil {
			c := roomsOf(l)[0].lines
			if count != nil {
				c = count[m[1]]
			}
			all = lines{all.shipped + c.shipped, all.other + c.other, all.tests + c.tests}
			cells := strings.Split(l, " | ")
			l = strings.Join(cells[:3], " | ") + fmt.Sprintf(" | %d | %d | %d |\n", c.shipped, c.other, c.tests)
		}
		out.WriteString(l)
	}
	return sum.ReplaceAllString(out.String(),
		fmt.Sprintf("| **all** | | | %d | %d | %d |", all.shipped, all.other, all.tests))
}

package architecture

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// texts returns the files of the specifications by the names that citations use.
func texts() map[string]string {
	return map[string]string{
		"Authentication":                         "auth/auth.md",
		"Bulk Write":                             "crud/bulk-write.md",
		"Causal Consistency":                     "causal-consistency/causal-consistency.md",
		"Change Streams":                         "change-streams/change-streams.md",
		"Client Backpressure":                    "client-backpressure/client-backpressure.md",
		"Client Side Encryption":                 "client-side-encryption/client-side-encryption.md",
		"Client Side Operations Timeout":         "client-side-operations-timeout/client-side-operations-timeout.md",
		"Command Logging and Monitoring":         "command-logging-and-monitoring/command-logging-and-monitoring.md",
		"Connection Monitoring and Pooling":      "connection-monitoring-and-pooling/connection-monitoring-and-pooling.md",
		"CMAP":                                   "connection-monitoring-and-pooling/connection-monitoring-and-pooling.md",
		"Connection String":                      "connection-string/connection-string-spec.md",
		"Convenient API for Transactions":        "transactions-convenient-api/transactions-convenient-api.md",
		"CRUD":                                   "crud/crud.md",
		"Driver Sessions":                        "sessions/driver-sessions.md",
		"Enumerating Collections":                "enumerate-collections/enumerate-collections.md",
		"Enumerating Databases":                  "enumerate-databases/enumerate-databases.md",
		"Extended JSON":                          "extended-json/extended-json.md",
		"Find, getMore and killCursors commands": "find_getmore_killcursors_commands/find_getmore_killcursors_commands.md",
		"GridFS":                                 "gridfs/gridfs-spec.md",
		"Index Management":                       "index-management/index-management.md",
		"Load Balancers":                         "load-balancers/load-balancers.md",
		"Logging":                                "logging/logging.md",
		"Max Staleness":                          "max-staleness/max-staleness.md",
		"MongoDB Handshake":                      "mongodb-handshake/handshake.md",
		"OP_MSG":                                 "message/OP_MSG.md",
		"Read and Write Concern":                 "read-write-concern/read-write-concern.md",
		"Retryable Reads":                        "retryable-reads/retryable-reads.md",
		"Retryable Writes":                       "retryable-writes/retryable-writes.md",
		"Run Command":                            "run-command/run-command.md",
		"Server Discovery and Monitoring":        "server-discovery-and-monitoring/server-discovery-and-monitoring.md",
		"Server Monitoring":                      "server-discovery-and-monitoring/server-monitoring.md",
		"Server Selection":                       "server-selection/server-selection.md",
		"Snapshot Reads":                         "sessions/snapshot-sessions.md",
		"Transactions":                           "transactions/transactions.md",
		"Unified Test Format":                    "unified-test-format/unified-test-format.md",
		"URI Options":                            "uri-options/uri-options.md",
	}
}

// former returns headings of earlier texts. A checkout does not contain them. A citation names their date.
func former() map[string]string {
	return map[string]string{
		"Client Backpressure (2026-03-05)": "# Adaptive retry requirements\n# Token Bucket",
		"Retryable Writes (2018-03-14)":    "# Terms\n# retryWrites",
	}
}

// library contains the headings of specifications in lower case, by name.
type library struct {
	headings map[string]map[string]bool
	name     *regexp.Regexp // matches a name at the beginning of a text
	cited    *regexp.Regexp // matches one name, or two, and a comma
}

var (
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	number  = regexp.MustCompile(`^\d+[a-z]?\. `)
	// margin matches a line break with the comment marks around it.
	margin = regexp.MustCompile(`[ \t]*\n[ \t]*(?://+|#)?[ \t]*`)
	// boundary matches what may follow a section without quotation marks.
	boundary = regexp.MustCompile(`^(?:$|[,;:.)"]| [(|])`)
	// between matches a section in quotation marks, and further matches what precedes another section.
	between = regexp.MustCompile(`^"([^"\s][^"]*)"`)
	further = regexp.MustCompile(`^(?:,|;| and|, and) "`)
	capital = regexp.MustCompile(`^[A-Z]`)
)

func newLibrary(texts map[string]string) library {
	l := library{headings: map[string]map[string]bool{}}
	for name, text := range texts {
		all := map[string]bool{}
		for _, m := range heading.FindAllStringSubmatch(text, -1) {
			h := plain(m[1])
			for _, h := range []string{h, number.ReplaceAllString(h, "")} {
				all[h], all[strings.ReplaceAll(h, `"`, "")] = true, true
			}
		}
		l.headings[name] = all
	}
	names := slices.SortedFunc(maps.Keys(texts), func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for i, n := range names {
		names[i] = regexp.QuoteMeta(n)
	}
	either := "(" + strings.Join(names, "|") + ")"
	l.name = regexp.MustCompile(`^` + either + `\b`)
	l.cited = regexp.MustCompile(`\b` + either + `(?: and ` + either + `)?, `)
	return l
}

// plain returns a heading without markup, in lower case.
func plain(text string) string {
	return strings.ToLower(strings.NewReplacer("*", "", "`", "", "’", "'").Replace(strings.TrimSpace(text)))
}

// begins returns what follows the longest heading at the beginning of a text.
func (l library) begins(name, text string) (rest string, found bool) {
	text = plain(text[:min(len(text), 200)])
	for end := len(text); end > 0; end-- {
		if l.headings[name][text[:end]] && boundary.MatchString(text[end:]) {
			return text[end:], true
		}
	}
	return "", false
}

// cell returns what is wrong with the citations of a table cell: "Specification, Section: remark; Section; …".
func (l library) cell(text string) (faults []string) {
	var names []string
	remark := false
	for part := range strings.SplitSeq(text, "; ") {
		if m := l.cited.FindStringSubmatchIndex(part); m != nil && m[0] == 0 {
			names, remark = []string{part[m[2]:m[3]]}, false
			if m[4] > 0 {
				names = append(names, part[m[4]:m[5]])
			}
			part = part[m[1]:]
		}
		if len(names) == 0 {
			faults = append(faults, "no specification is named by "+part)
		}
		for _, n := range names {
			rest, found := l.begins(n, part)
			if !found && !remark {
				faults = append(faults, n+" has no section "+part)
			}
			remark = remark || strings.HasPrefix(rest, ":")
		}
	}
	return faults
}

// prose returns the number of citations in a text, and what is wrong with them. It recognizes a specification's name, a
// comma, and then sections in quotation marks, or one section that begins with a capital letter.
func (l library) prose(text string) (seen int, faults []string) {
	text = margin.ReplaceAllString(strings.ReplaceAll(text, `\"`, `"`), " ")
	check := func(name, section string, found bool) {
		if seen++; !found {
			faults = append(faults, name+" has no section "+section[:min(len(section), 80)])
		}
	}
	for _, m := range l.cited.FindAllStringSubmatchIndex(text, -1) {
		name, rest := text[m[2]:m[3]], text[m[1]:]
		_, found := l.begins(name, rest)
		quoted := between.FindStringSubmatch(rest)
		if m[4] > 0 && quoted != nil { // the second of two specifications has the section, too
			check(text[m[4]:m[5]], quoted[1], l.headings[text[m[4]:m[5]]][plain(quoted[1])])
		}
		if found || quoted == nil {
			if found || capital.MatchString(rest) && !l.name.MatchString(rest) {
				check(name, rest, found)
			}
			continue
		}
		for quoted != nil {
			check(name, quoted[1], l.headings[name][plain(quoted[1])])
			rest = rest[len(quoted[0]):]
			after := further.FindString(rest)
			if after == "" {
				break
			}
			rest = rest[len(after)-1:]
			quoted = between.FindStringSubmatch(rest)
		}
	}
	return seen, faults
}

// citation matches a section of a specification, or the page that cites one.
var citation = regexp.MustCompile(`[A-Z]\w+, "[A-Za-z]|; docs/driver/deviations\.md$`)

// Each difference of a driver that the project lists cites a section: the one that it violates, or that permits it.
func TestDifferencesCite(t *testing.T) {
	lists, err := filepath.Glob(filepath.Join(root, "*", "*", "known-failing.txt"))
	testkit.Check(t, err)
	seen := 0
	for _, list := range lists {
		for line := range strings.Lines(testkit.Read(t, list)) {
			_, reason, found := strings.Cut(strings.TrimSpace(line), "  # ")
			if !found || filepath.Base(filepath.Dir(list)) == "dated" || strings.Contains(reason, "does not connect to") {
				continue
			}
			seen++
			testkit.Equal(t, list+": a section in "+reason, citation.MatchString(reason), true)
		}
	}
	testkit.Equal(t, "60 differences or more", seen >= 60, true)
}

// Every cited section exists in the specifications, if there is a checkout of them.
func TestCitations(t *testing.T) {
	all := former()
	for name, file := range texts() {
		path, found := testkit.FindOfficial(t, filepath.FromSlash(file))
		if _, checkout := testkit.FindOfficial(t, "index.md"); !checkout {
			t.Skip("not verified: UTR_SPECIFICATIONS has no texts of the specifications")
		}
		testkit.Equal(t, file+" exists", found, true)
		all[name] = testkit.Read(t, path)
	}
	l, cells, seen := newLibrary(all), 0, 0
	report := func(file string, faults []string) {
		for _, f := range faults {
			t.Errorf("%s: %s", file, f)
		}
	}
	testkit.Check(t, fs.WalkDir(os.DirFS(root), ".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (file == ".git" || file == "program/internal/cli/testdata"): // output; its sources are checked
			return fs.SkipDir
		case file == "docs/drivers.md", // has the reasons in known-failing at the time of a run
			e.IsDir(), !slices.Contains([]string{".go", ".md", ".txt", ".yml", ".py", ".js", ".java", ".rs"},
				filepath.Ext(file)):
			return nil
		}
		text := read(t, file)
		if filepath.Ext(file) == ".yml" {
			text, _, _ = strings.Cut(text, "\nschemaVersion:") // the comments of a suite are before it
		}
		n, faults := l.prose(text)
		seen += n
		report(file, faults)
		if filepath.Ext(file) == ".md" && filepath.Dir(file) != "docs/seeds" { // seeds cite sections of former texts
			for _, c := range column(text, "section") {
				cells++
				report(file, l.cell(c))
			}
		}
		return nil
	}))
	testkit.Equal(t, fmt.Sprintf("%d citations, 200 or more", seen), seen >= 200, true)
	testkit.Equal(t, fmt.Sprintf("%d cells, 100 or more", cells), cells >= 100, true)
}

// column returns the cells of the columns of a page whose title ends in a word.
func column(page, title string) (out []string) {
	at := -1
	for line := range strings.Lines(page) {
		cells := strings.Split(line, " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			at = -1
		case at < 0:
			if at = slices.IndexFunc(cells,
				func(c string) bool { return strings.HasSuffix(strings.Trim(c, " |\n"), title) }); at < 0 {
				at = len(cells)
			}
		case at < len(cells) && !strings.HasPrefix(line, "|---"):
			out = append(out, strings.Trim(cells[at], " |\n"))
		}
	}
	return out
}

// Each form of a citation is recognized, and an invented section is reported.
func TestCitationForms(t *testing.T) {
	l := newLibrary(map[string]string{
		"Reads": "# Reads\n## 3a. Selecting\n### Errors, and `more`\n# \"a\" and \"b\"\n", "Reads of Old": "# Selecting\n",
		"Writes": "# Selecting\n",
	})
	for _, r := range []struct {
		reason, text, prose, cell string // prose and cell: what is reported, for prose with the number of citations
	}{
		{"a section in quotation marks", `(Reads, "Selecting")`, "1 []", ""},
		{"an invented one", `(Reads, "Choosing")`, "1 [Reads has no section Choosing]", ""},
		{"the beginning of a section is not a section", `(Reads, "Errors")`, "1 [Reads has no section Errors]", ""},
		{"two sections", `Reads, "Selecting" and "Choosing"`, "2 [Reads has no section Choosing]", ""},
		{"two specifications", `Reads and Writes, "Errors, and more"`, "2 [Writes has no section Errors, and more]", ""},
		{"a comment of several lines", "// (Reads,\n// \"Errors, and\n// more\")", "1 []", ""},
		{"a string in Go", `"(Reads, \"Choosing\")"`, "1 [Reads has no section Choosing]", ""},
		{"without quotation marks", "Reads, Selecting: a remark", "1 []", "[]"},
		{"an invented one without quotation marks", "Reads, Choosing", "1 [Reads has no section Choosing]",
			"[Reads has no section Choosing]"},
		{"a section that continues is another", "Reads, Selecting more", "1 [Reads has no section Selecting more]",
			"[Reads has no section Selecting more]"},
		{"a list of specifications", "Reads, Writes and others", "0 []", ""},
		{"words after a comma", "Reads, which are", "0 []", ""},
		{"a section with quotation marks", `Reads, "a" and "b": a remark`, "1 []", "[]"},
		{"several citations", "Reads, Errors, and more; Selecting; Writes, Selecting", "2 []", "[]"},
		{"an invented one of several", "Reads, Selecting; Choosing", "1 []", "[Reads has no section Choosing]"},
		{"a remark with a semicolon", "Reads, Selecting: one; two", "1 []", "[]"},
		{"an unknown specification", "Wrotes, Selecting", "0 []", "[no specification is named by Wrotes, Selecting]"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			seen, faults := l.prose(r.text)
			testkit.Equal(t, "prose", fmt.Sprint(seen, faults), r.prose)
			if r.cell != "" {
				testkit.Equal(t, "cell", fmt.Sprint(l.cell(r.text)), r.cell)
			}
		})
	}
	testkit.Equal(t, "column",
		column("| a | its section |\n|---|---|\n| 1 | Reads |\n\n| section | b |\n|---|---|\n| Writes | 2 |\n", "section"),
		[]string{"Reads", "Writes"})
}

//go:build unix

package deployment

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// release returns a folder with a mongod that prints a version, and otherwise runs a shell command. Each start appends
// its process id to the file starts.
func release(t *testing.T, command string) (dir, starts string) {
	t.Helper()
	dir = t.TempDir()
	starts = filepath.Join(dir, "starts")
	text := "#!/bin/sh\n[ \"$1\" = --version ] && { echo db version v8.0.4; exit; }\necho $$ >>" + starts + "\n" +
		command + "\n"
	testkit.Check(t, os.WriteFile(filepath.Join(dir, "mongod"), []byte(text), 0o755))
	return dir, starts
}

// A cluster is started on demand, lent again, and replaced when a test broke it or its server ended. Clusters that are
// started to read parameters run the first tests. The step "has" counts starts.
func TestLocalSource(t *testing.T) {
	self, err := os.Executable()
	testkit.Check(t, err)
	commands := map[string]string{
		"plays":   fmt.Sprintf("export %s=1\nexec %s \"$@\"", envMongod, self),
		"refuses": "echo Illegal option; exit 2",
		"hangs":   "exec sleep 600",
	}
	stories(t, "local", func(t *testing.T, words, steps string) {
		what, more, _ := strings.Cut(words, ", ")
		s := newScript(t)
		dir, where := release(t, commands[what])
		folder := t.TempDir()
		t.Setenv("TMPDIR", folder)
		o := LocalOptions{Where: dir, Note: s.notes.add}
		o.Topologies, o.Auth = []Topology{Single}, new(bool)
		if more == "all topologies" {
			o.Topologies = nil
		}
		if o.Parameters = more == "asks for parameters"; strings.HasPrefix(more, "2 jobs") {
			o.Jobs = 2
		}
		if more == "2 jobs with the fail points of servers" {
			o.FailPointMode = FailPointsServer
		}
		source, err := OpenLocal(t.Context(), o)
		if text, is := strings.CutPrefix(steps, "reject "); is {
			testkit.ErrorContains(t, err, text)
			return
		}
		testkit.Check(t, err)
		defer func() { testkit.Check(t, source.Close()) }()
		s.Source = source
		s.count = func() []int { return []int{lines(where)} }
		s.verbs = map[string]func(string){
			"keep":    func(string) { source.KeepLogs() },
			"started": func(string) { testkit.Until(t, "a start", func() bool { return lines(where) > 0 }) },
			"died": func(n string) {
				testkit.Equal(t, "deaths", strconv.Itoa(strings.Count(s.notes.String(), "mongod ended: signal: killed")), n)
			},
			"told": func(n string) {
				testkit.Equal(t, "logs", strconv.Itoa(strings.Count(s.notes.String(), "the logs of the servers are in "+folder)), n)
			},
			"left": func(n string) { // folders that contain only a log
				for _, pattern := range []string{"*", "*/*", "*/mongod.log"} {
					testkit.Equal(t, pattern, strconv.Itoa(len(files(t, folder, pattern))), n)
				}
			},
			"kill": func(name string) {
				pid, err := strconv.Atoi(strings.Fields(testkit.Read(t, where))[name[0]-'a'])
				testkit.Check(t, err)
				process, err := os.FindProcess(pid)
				testkit.Check(t, err)
				testkit.Check(t, process.Kill())
				testkit.Until(t, "Dead returns an error", func() bool { return s.the(name).Dead() != nil })
			},
			"apart": func(names string) {
				for _, name := range strings.Fields(names) {
					s.the(name).Sessions()
				}
				a, b, _ := strings.Cut(names, " ")
				usable(t, "", s.the(a))
				testkit.Equal(t, "sessions of "+b, len(s.the(b).Sessions()), 0)
				testkit.Equal(t, "sessions of "+a, len(s.the(a).Sessions()) > 0, true)
				testkit.Equal(t, "servers", s.the(a).Description().Servers, s.the(b).Description().Servers)
			},
			"learned": func(name string) {
				about := s.Offers()[0]
				if name != "" {
					about = s.the(name).Description()
				}
				v, err := about.Parameters.LookupErr("enableTestCommands")
				testkit.Check(t, err)
				testkit.Equal(t, "test commands and mechanisms", []any{v.Boolean(), len(about.AuthMechanisms) > 0},
					[]any{true, true})
			},
		}
		s.play(steps)
	})
}

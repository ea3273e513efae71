package ledger

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// envAct makes this test binary act as another run: it adds entries to the ledger in the named folder, prints the
// result, and waits to be killed.
const envAct = "UTR_TEST_LEDGER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envAct); dir != "" {
		l, err := Open(dir)
		for _, e := range []Entry{
			{Kind: Folder, Path: ours("not-there")},
			{Kind: Cluster, URL: "http://localhost:8889/v1", Resource: "servers", ID: "utr-single-1"},
			{Kind: ChildProcess, Process: Process{PID: os.Getpid()}, Command: "itself"},
		} {
			_, failed := l.Add(e)
			err = errors.Join(err, failed)
		}
		fmt.Println(err)
		select {}
	}
	goleak.VerifyTestMain(m)
}

// ours returns the path of a folder that a ledger accepts.
func ours(name string) string { return filepath.Join(os.TempDir(), FolderPrefix+name) }

// run starts another run. kill kills it.
func run(t *testing.T, dir string) (pid int, kill func()) {
	t.Helper()
	child := exec.CommandContext(testkit.Context(t), os.Args[0])
	child.Env = append(os.Environ(), envAct+"="+dir)
	out, err := child.StdoutPipe()
	testkit.Check(t, errors.Join(err, child.Start()))
	kill = sync.OnceFunc(func() { _ = child.Process.Kill(); _ = child.Wait() })
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Fatalf("the other run prints %q, %v", line, err)
	}
	return child.Process.Pid, kill
}

func open(t *testing.T, dir string) *Ledger {
	t.Helper()
	l, err := Open(dir)
	testkit.Check(t, err)
	return l
}

// empty checks that a ledger has no files.
func (l *Ledger) empty(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(l.dir)
	testkit.Check(t, err)
	testkit.Equal(t, "remaining files", len(files), 0)
}

// ledgerOfEndedRun returns a ledger that adds entries of a run that has ended.
func ledgerOfEndedRun(t *testing.T) *Ledger {
	l := open(t, t.TempDir())
	l.run.Started = "long ago"
	return l
}

// leftovers returns the entries of ended runs. It fails the test unless the numbers of entries are as expected.
func (l *Ledger) leftovers(t *testing.T, reason string, dead, elsewhere int) []Leftover {
	t.Helper()
	d, e, err := l.Leftovers()
	if err != nil || len(d) != dead || len(e) != elsewhere {
		t.Fatalf("%s: leftovers are %v and, elsewhere, %v; want %d and %d (%v)", reason, d, e, dead, elsewhere, err)
	}
	return d
}

// Entries of a run become leftovers when the run is killed, even while it is a zombie.
func TestLeftoversOfAKilledRun(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	done, err := l.Add(Entry{Kind: Folder, Path: filepath.Join(dir, "utr-own")})
	testkit.Check(t, err)
	pid, kill := run(t, dir)
	l.leftovers(t, "both runs live", 0, 0)
	p, err := ProcessOf(pid)
	testkit.Check(t, err)
	testkit.Check(t, p.Kill(testkit.Context(t)))
	_, err = ProcessOf(pid)
	testkit.Equal(t, "the killed process does not exist", errors.Is(err, ErrNoProcess), true)
	kill()
	dead := l.leftovers(t, "one run was killed", 3, 0)
	var kinds []Kind
	for _, d := range dead {
		kinds = append(kinds, d.Entry.Kind)
		testkit.Equal(t, d.Entry.String()+" was made by", d.Run.PID, pid)
		testkit.Equal(t, d.Entry.String()+" was made just now", time.Since(d.At) < time.Hour && time.Since(d.At) >= 0, true)
	}
	testkit.Equal(t, "processes come before folders", kinds, []Kind{Cluster, ChildProcess, Folder})
	living, err := dead[1].Entry.Process.Running()
	testkit.Check(t, err)
	testkit.Equal(t, "the killed process lives", living, false)
	testkit.Equal(t, "killing a process that has ended", dead[1].Entry.Process.Kill(t.Context()), nil)
	for range 2 { // two concurrent utr clean
		for _, d := range dead {
			testkit.Check(t, d.Forget())
		}
		testkit.Check(t, done())
	}
	l.empty(t)
}

func TestMakeFolder(t *testing.T) {
	l, parent := ledgerOfEndedRun(t), t.TempDir()
	t.Setenv("TMPDIR", parent)
	folder, err := l.MakeFolder("data")
	testkit.Check(t, err)
	about, err := os.Stat(folder.Path)
	testkit.Check(t, err)
	testkit.Equal(t, "its mode", about.Mode().Perm().String(), "-rwx------")
	testkit.Equal(t, folder.Path+" has the prefix", strings.HasPrefix(folder.Path, filepath.Join(parent, "utr-data-")),
		true)
	testkit.Equal(t, "its entry", l.leftovers(t, "a folder", 1, 0)[0].Entry.Path, folder.Path)
	testkit.Check(t, folder.Close(t.Context()))
	_, err = os.Stat(folder.Path)
	testkit.ErrorContains(t, err)
	t.Setenv("TMPDIR", filepath.Join(parent, "missing"))
	_, err = l.MakeFolder("data")
	testkit.ErrorContains(t, err)
	l.leftovers(t, "none", 0, 0)
}

// TestRefusals shows how Add rejects entries and how accepted ones are described.
func TestRefusals(t *testing.T) {
	l := open(t, t.TempDir())
	testkit.Transcript(t, "testdata/entries.txt", func(t *testing.T, input string) string {
		var e Entry
		mine := []string{"TMP", os.TempDir(), `"SELF"`, fmt.Sprint(os.Getpid())}
		testkit.Check(t, json.Unmarshal([]byte(strings.NewReplacer(mine...).Replace(input)), &e))
		said := e.String()
		done, err := l.Add(e)
		if err == nil {
			testkit.Check(t, done())
		} else {
			said = "refused: " + err.Error()
		}
		return strings.NewReplacer(mine[1], mine[0], "process "+mine[3]+" (", "process SELF (").Replace(said)
	})
	l.empty(t)
}

// TestManyAtOnce checks that no reader sees an incomplete entry.
func TestManyAtOnce(t *testing.T) {
	l := ledgerOfEndedRun(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 25 {
				done, err := l.Add(Entry{Kind: Cluster, URL: "http://h/v1", Resource: "servers", ID: strings.Repeat("x", 4000)})
				if err == nil {
					err = done()
				}
				testkit.Equal(t, "adding and removing", err, nil)
			}
		})
		all.Go(func() {
			for range 25 {
				_, _, err := l.Leftovers()
				testkit.Equal(t, "reading", err, nil)
			}
		})
	}
	all.Wait()
}

// Invalid files are reported, and valid entries are still listed.
func TestUnreadableEntries(t *testing.T) {
	l := ledgerOfEndedRun(t)
	_, err := l.Add(Entry{Kind: Folder, Path: ours("good")})
	testkit.Check(t, err)
	good := `{"run":{"machine":"m","pid":9,"started":"s"},"entry":`
	for name, text := range map[string]string{
		"empty.json": "", "half.json": good, "list.json": "[]", "root.json": good + `{"kind":"folder","path":"/"}}`,
		"norun.json": `{"entry":{"kind":"folder","path":"/tmp/utr-1"}}`, "writing.new": "{",
	} {
		testkit.Check(t, os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600))
	}
	dead, _, err := l.Leftovers()
	if len(dead) != 1 || dead[0].Entry.Path != ours("good") {
		t.Errorf("leftovers are %v", dead)
	}
	testkit.ErrorContains(t, err, "empty.", "half.", "list.", "root.", "norun.")
	testkit.Equal(t, "an incomplete file is reported", strings.Contains(err.Error(), "writing."), false)
}

// A run has certainly ended only if its process can be looked up and does not exist, or if its machine has rebooted
// since.
func TestFate(t *testing.T) {
	self, err := Self()
	testkit.Check(t, err)
	testkit.Equal(t, "this process does not know its place", self.Place == "", false)
	dead := func(r *Run) { r.Started = "long ago" }
	rebooted := func(r *Run) { r.ID, r.Place = "id", "an earlier boot/pid:[1]"; dead(r) }
	for _, r := range []struct {
		reason string
		change func(*Run)
		want   Fate
	}{
		{"this process", func(*Run) {}, Living},
		{"a process that has ended", dead, Ended},
		{"its place is unknown", func(r *Run) { dead(r); r.Place = "" }, Unknown},
		{"its start is unknown", func(r *Run) { r.PID, r.Started = 1<<22, "" }, Unknown},
		{"another container with the same host name", func(r *Run) { dead(r); r.Place += "0" }, Unknown},
		{"another container on a machine with an id", func(r *Run) { dead(r); r.ID, r.Place = "id", r.Place+"0" }, Unknown},
		{"another host name", func(r *Run) { rebooted(r); r.Machine += "0" }, Unknown},
		{"a machine without an id", func(r *Run) { rebooted(r); r.ID = "" }, Unknown},
		{"a process before a reboot of this machine", rebooted, Ended},
	} {
		run, id := self, self.ID
		if r.change(&run); run.ID == "id" {
			id = "id"
		}
		fate, err := run.fate(self.Place, id)
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, fate, r.want)
	}
	l := ledgerOfEndedRun(t)
	l.run.Place += "0"
	_, err = l.Add(Entry{Kind: Folder, Path: ours("1")})
	testkit.Check(t, err)
	l.leftovers(t, "another place", 0, 1)
	l = nil
	done, err := l.Add(Entry{})
	testkit.Check(t, errors.Join(err, done()))
	l.leftovers(t, "nil", 0, 0)
}

// A later process with the same id does not count as running and is not killed. It is the process of this test.
func TestAnotherProcessOfTheSameID(t *testing.T) {
	self, err := ProcessOf(os.Getpid())
	testkit.Check(t, err)
	later := Process{PID: self.PID, Started: self.Started + "0"}
	for p, want := range map[Process]bool{self: true, later: false} {
		living, err := p.Running()
		testkit.Check(t, err)
		testkit.Equal(t, "started at "+p.Started+", alive", living, want)
	}
	testkit.Check(t, later.Kill(t.Context()))
	place, _ := here()
	testkit.Equal(t, place+" contains the PID namespace", runtime.GOOS != "linux" ||
		strings.Contains(place, "/pid:["), true)
}

func TestDir(t *testing.T) {
	here, err := filepath.Abs(".")
	testkit.Check(t, err)
	cache, err := os.UserCacheDir()
	testkit.Check(t, err)
	for _, r := range []struct {
		reason string
		env    map[string]string
		want   string
	}{
		{"the variable", map[string]string{EnvDir: "/a", "XDG_STATE_HOME": "/b"}, "/a"},
		{"a relative path in the variable", map[string]string{EnvDir: "a"}, filepath.Join(here, "a")},
		{"XDG_STATE_HOME", map[string]string{"XDG_STATE_HOME": "/b"}, filepath.Join("/b", "utr")},
		{"a relative XDG_STATE_HOME, which is ignored", map[string]string{"XDG_STATE_HOME": "b"},
			filepath.Join(cache, "utr")},
		{"no variable", nil, filepath.Join(cache, "utr")},
	} {
		got, err := Dir(func(k string) string { return r.env[k] })
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, got, r.want)
	}
}

// FuzzRead checks that no file content makes utr clean remove a foreign folder or kill a system process.
func FuzzRead(f *testing.F) {
	for _, e := range []Entry{
		{Kind: Folder, Path: "/tmp/utr-1"},
		{Kind: Cluster, URL: "http://h/v1", Resource: "servers", ID: "a", Making: true},
		{Kind: Lock, URI: "mongodb://ann:pw@h/?a=b", Name: "x"},
	} {
		text, _ := json.Marshal(Leftover{Run: Run{Machine: "m", Process: Process{9, "s"}}, Entry: e})
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		name := filepath.Join(t.TempDir(), "x.json")
		testkit.Check(t, os.WriteFile(name, text, 0o600))
		left, err := read(name)
		if err != nil {
			return
		}
		path, pid := filepath.Base(left.Entry.Path), left.Entry.Process.PID
		if left.Entry.Kind == Folder && !strings.HasPrefix(path, FolderPrefix) ||
			left.Entry.Kind == ChildProcess && pid <= 1 {
			t.Errorf("%s would be removed, or process %d killed", left.Entry.Path, pid)
		}
	})
}

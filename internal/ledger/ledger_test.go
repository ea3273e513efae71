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

	"github.com/unified-test-runner/utr/internal/testkit"
	"go.uber.org/goleak"
)

// envAct makes this test binary a run of its own: it remembers entries in the
// named folder, says so, and waits to be killed.
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

// ours is the path of a folder that a run may remember.
func ours(name string) string { return filepath.Join(os.TempDir(), FolderPrefix+name) }

// run starts a run of its own, which is killed by the function that it gives.
func run(t *testing.T, dir string) (pid int, kill func()) {
	t.Helper()
	child := exec.CommandContext(testkit.Context(t), os.Args[0])
	child.Env = append(os.Environ(), envAct+"="+dir)
	out, err := child.StdoutPipe()
	testkit.Check(t, errors.Join(err, child.Start()))
	kill = sync.OnceFunc(func() { _ = child.Process.Kill(); _ = child.Wait() })
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Fatalf("the other run says %q, %v", line, err)
	}
	return child.Process.Pid, kill
}

func open(t *testing.T, dir string) *Ledger {
	t.Helper()
	l, err := Open(dir)
	testkit.Check(t, err)
	return l
}

// empty expects that a ledger has no files.
func (l *Ledger) empty(t *testing.T) {
	t.Helper()
	files, err := os.ReadDir(l.dir)
	testkit.Check(t, err)
	testkit.Equal(t, "files that are left", files, "[]")
}

// buried is a ledger whose entries are of a run that is over.
func buried(t *testing.T) *Ledger {
	l := open(t, t.TempDir())
	l.run.Started = "long ago"
	return l
}

// leftovers gives what is left, and fails the test unless it is so much.
func (l *Ledger) leftovers(t *testing.T, reason string, dead, elsewhere int) []Leftover {
	t.Helper()
	d, e, err := l.Leftovers()
	if err != nil || len(d) != dead || len(e) != elsewhere {
		t.Fatalf("%s: left are %v and, of other machines, %v; want %d and %d (%v)", reason, d, e, dead, elsewhere, err)
	}
	return d
}

// What a run made is left once the run was killed, and not before. Its process
// is gone although nobody has asked for its exit code.
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
	testkit.Equal(t, "the killed process is gone", errors.Is(err, ErrNoProcess), true)
	kill()
	dead := l.leftovers(t, "one run was killed", 3, 0)
	var kinds []Kind
	for _, d := range dead {
		kinds = append(kinds, d.Entry.Kind)
		testkit.Equal(t, d.Entry.String()+" was made by", d.Run.PID, pid)
		testkit.Equal(t, d.Entry.String()+" was made just now", time.Since(d.At) < time.Hour && time.Since(d.At) >= 0, true)
	}
	testkit.Equal(t, "processes go before folders", kinds, []Kind{Cluster, ChildProcess, Folder})
	living, err := dead[1].Entry.Process.Living()
	testkit.Check(t, err)
	testkit.Equal(t, "the killed process lives", living, false)
	testkit.Equal(t, "killing a process that is gone", dead[1].Entry.Process.Kill(t.Context()), nil)
	for range 2 { // two utr clean at once
		for _, d := range dead {
			testkit.Check(t, d.Forget())
		}
		testkit.Check(t, done())
	}
	l.empty(t)
}

// A temporary folder is remembered from before it is there until it is
// forgotten.
func TestMakeFolder(t *testing.T) {
	l, parent := buried(t), t.TempDir()
	folder, err := l.MakeFolder(parent, "data")
	testkit.Check(t, err)
	about, err := os.Stat(folder.Path)
	testkit.Check(t, err)
	testkit.Equal(t, "its mode", about.Mode().Perm(), "-rwx------")
	testkit.Equal(t, folder.Path+" is ours", strings.HasPrefix(folder.Path, filepath.Join(parent, "utr-data-")), true)
	testkit.Equal(t, "it is remembered as", l.leftovers(t, "a folder", 1, 0)[0].Entry.Path, folder.Path)
	testkit.Check(t, folder.Close(t.Context()))
	_, err = os.Stat(folder.Path)
	testkit.Fails(t, err)
	_, err = l.MakeFolder(filepath.Join(parent, "missing"), "data")
	testkit.Fails(t, err)
	l.leftovers(t, "none", 0, 0)
}

// What could not be removed later, and what holds credentials, is refused. Of an
// entry that is accepted the transcript has what people are told.
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

// Many add and remove while others read: nobody sees half an entry.
func TestManyAtOnce(t *testing.T) {
	l := buried(t)
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

// Files that are not entries are reported, and do not hide the others.
func TestUnreadableEntries(t *testing.T) {
	l := buried(t)
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
		t.Errorf("%v are left", dead)
	}
	testkit.Fails(t, err, "empty.", "half.", "list.", "root.", "norun.")
	testkit.Equal(t, "a file that is being written is reported", strings.Contains(err.Error(), "writing."), false)
}

// A run is gone only if its process can be looked up from here and is not there,
// or if its machine has started anew since; a nil ledger remembers nothing.
func TestFate(t *testing.T) {
	self, err := Self()
	testkit.Check(t, err)
	testkit.Equal(t, "a process cannot tell where its id means something", self.Place == "", false)
	dead := func(r *Run) { r.Started = "long ago" }
	anew := func(r *Run) { r.ID, r.Place = "id", "an earlier start/pid:[1]"; dead(r) }
	for _, r := range []struct {
		reason string
		change func(*Run)
		want   Fate
	}{
		{"this process", func(*Run) {}, Living},
		{"a process that has ended", dead, Gone},
		{"nobody knows where it is", func(r *Run) { dead(r); r.Place = "" }, Unknown},
		{"nobody knows when it started", func(r *Run) { r.PID, r.Started = 1<<22, "" }, Unknown},
		{"another container of a host name", func(r *Run) { dead(r); r.Place += "0" }, Unknown},
		{"another container, and a name for the machine", func(r *Run) { dead(r); r.ID, r.Place = "id", r.Place+"0" }, Unknown},
		{"another host name", func(r *Run) { anew(r); r.Machine += "0" }, Unknown},
		{"a machine without a name for itself", func(r *Run) { anew(r); r.ID = "" }, Unknown},
		{"this process, before the machine started anew", anew, Gone},
	} {
		run, id := self, self.ID
		if r.change(&run); run.ID == "id" {
			id = "id"
		}
		fate, err := run.fate(self.Place, id)
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, fate, r.want)
	}
	l := buried(t)
	l.run.Place += "0"
	_, err = l.Add(Entry{Kind: Folder, Path: ours("1")})
	testkit.Check(t, err)
	l.leftovers(t, "another place", 0, 1)
	l = nil
	done, err := l.Add(Entry{})
	testkit.Check(t, errors.Join(err, done()))
	l.leftovers(t, "nil", 0, 0)
}

// A later process with the same id is neither alive nor killed: this test would
// not survive it.
func TestAnotherProcessOfTheSameID(t *testing.T) {
	self, err := ProcessOf(os.Getpid())
	testkit.Check(t, err)
	later := Process{PID: self.PID, Started: self.Started + "0"}
	for p, want := range map[Process]bool{self: true, later: false} {
		living, err := p.Living()
		testkit.Check(t, err)
		testkit.Equal(t, "started at "+p.Started+", alive", living, want)
	}
	testkit.Check(t, later.Kill(t.Context()))
	place, _ := here()
	testkit.Equal(t, place+" has the namespace of process ids", runtime.GOOS != "linux" || strings.Contains(place, "/pid:["), true)
}

// The variable goes before the state directory, and that before the cache.
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
		{"the state directory of the user", map[string]string{"XDG_STATE_HOME": "/b"}, filepath.Join("/b", "utr")},
		{"a relative state directory, which is ignored", map[string]string{"XDG_STATE_HOME": "b"}, filepath.Join(cache, "utr")},
		{"no variable", nil, filepath.Join(cache, "utr")},
	} {
		got, err := Dir(func(k string) string { return r.env[k] })
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, got, r.want)
	}
}

// Whatever stands in a file, reading it ends, and what it gives can be written
// again.
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
		if left.Entry.Kind == Folder && !strings.HasPrefix(path, FolderPrefix) || left.Entry.Kind == ChildProcess && pid <= 1 {
			t.Errorf("%s would be removed, or process %d killed", left.Entry.Path, pid)
		}
	})
}

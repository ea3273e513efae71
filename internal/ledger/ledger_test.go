package ledger

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// envAct makes this test binary a run of its own: it remembers entries in the
// named folder, says so, and waits to be killed.
const envAct = "UTR_TEST_LEDGER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envAct); dir != "" {
		actAsRun(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

func actAsRun(dir string) {
	l, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for _, e := range []Entry{
		{Kind: Folder, Path: filepath.Join(os.TempDir(), "utr-not-there")},
		{Kind: Cluster, URL: "http://localhost:8889/v1", Resource: "servers", ID: "utr-single-1"},
		{Kind: ChildProcess, Process: Process{PID: os.Getpid()}, Command: "itself"},
	} {
		if _, err := l.Add(e); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("remembered")
	select {}
}

// patience bounds waits for other processes on a busy machine.
const patience = time.Minute

// run starts a run of its own and gives how to kill it.
func run(t *testing.T, dir string) (pid int, kill func()) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), envAct+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	over := sync.OnceFunc(func() { _ = child.Process.Kill(); _ = child.Wait() })
	t.Cleanup(over)
	timer := time.AfterFunc(patience, over)
	defer timer.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "remembered\n" {
		t.Fatalf("the other run says %q, %v", line, err)
	}
	return child.Process.Pid, over
}

func open(t *testing.T) *Ledger {
	t.Helper()
	l, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What a run made is left once it was killed, and not before.
func TestLeftoversOfAKilledRun(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	done, err := l.Add(Entry{Kind: Folder, Path: filepath.Join(dir, "utr-own")})
	if err != nil {
		t.Fatal(err)
	}
	pid, kill := run(t, dir)
	if dead, elsewhere, err := l.Leftovers(); err != nil || len(dead)+len(elsewhere) != 0 {
		t.Fatalf("both runs live, and these are left: %v %v, %v", dead, elsewhere, err)
	}
	kill()
	dead, _, err := l.Leftovers()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []Kind
	for _, d := range dead {
		kinds = append(kinds, d.Entry.Kind)
		if d.Run.PID != pid || time.Since(d.At) > time.Hour || time.Since(d.At) < 0 {
			t.Errorf("%s was made by %d at %s, and process %d made it just now", d.Entry, d.Run.PID, d.At, pid)
		}
	}
	if want := []Kind{Cluster, ChildProcess, Folder}; !slices.Equal(kinds, want) {
		t.Fatalf("left are %v, want %v: processes go before folders", kinds, want)
	}
	if living, err := dead[1].Entry.Process.Living(); err != nil || living {
		t.Errorf("the killed process lives: %t, %v", living, err)
	}
	if err := dead[1].Entry.Process.Kill(context.Background()); err != nil {
		t.Errorf("a process that is gone cannot be killed, which is no error: %v", err)
	}
	for range 2 { // two utr clean at once
		for _, d := range dead {
			if err := d.Forget(); err != nil {
				t.Error(err)
			}
		}
	}
	if dead, _, err := l.Leftovers(); err != nil || len(dead) != 0 {
		t.Errorf("forgotten, and left all the same: %v, %v", dead, err)
	}
	for range 2 {
		if err := done(); err != nil {
			t.Error(err)
		}
	}
	if files, _ := os.ReadDir(l.dir); len(files) != 0 {
		t.Errorf("all is done, and %v are there", files)
	}
}

func TestRefusals(t *testing.T) {
	l := open(t)
	self := Process{PID: os.Getpid()}
	for _, r := range []struct {
		reason string
		entry  Entry
		ok     bool
	}{
		{"a cluster", Entry{Kind: Cluster, URL: "http://h:1/v1", Resource: "servers", ID: "a"}, true},
		{"a cluster without its service", Entry{Kind: Cluster, Resource: "servers", ID: "a"}, false},
		{"a service's password", Entry{Kind: Cluster, URL: "http://ann:pw@h:1/v1", Resource: "servers", ID: "a"}, false},
		{"a service's user alone", Entry{Kind: Cluster, URL: "http://token@h:1/v1", Resource: "servers", ID: "a"}, false},
		{"a process", Entry{Kind: ChildProcess, Process: self, Command: "mongod"}, true},
		{"no process", Entry{Kind: ChildProcess, Process: Process{PID: 1 << 22}, Command: "mongod"}, false},
		{"init", Entry{Kind: ChildProcess, Process: Process{PID: 1}, Command: "mongod"}, false},
		{"all processes of the group", Entry{Kind: ChildProcess, Process: Process{PID: 0, Started: "x"}, Command: "mongod"}, false},
		{"a command with a password", Entry{Kind: ChildProcess, Process: self, Command: "utr --uri mongodb://a:b@h"}, false},
		{"a folder of ours", Entry{Kind: Folder, Path: filepath.Join(os.TempDir(), "utr-1")}, true},
		{"somebody's folder", Entry{Kind: Folder, Path: os.TempDir()}, false},
		{"a folder that is not absolute", Entry{Kind: Folder, Path: "utr-1"}, false},
		{"a way out of a folder of ours", Entry{Kind: Folder, Path: os.TempDir() + "/utr-1/../../home"}, false},
		{"our name, and a way out", Entry{Kind: Folder, Path: os.TempDir() + "/x/../utr-1"}, false},
		{"a fail point", Entry{Kind: FailPoint, URI: "mongodb://h/?tls=true", Host: "h:27017", Name: "failCommand"}, true},
		{"hidden credentials", Entry{Kind: FailPoint, URI: "mongodb://***@h/", Host: "h:27017", Name: "failCommand"}, true},
		{"a hidden password", Entry{Kind: Lock, URI: "mongodb://***:***@h/", Name: "utr.lock"}, true},
		{"credentials", Entry{Kind: Lock, URI: "mongodb://ann:pw@h/", Name: "utr.lock"}, false},
		{"a user without a password", Entry{Kind: Lock, URI: "mongodb+srv://ann@h/", Name: "utr.lock"}, false},
		{"a token among the options", Entry{Kind: Lock, URI: "mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:x", Name: "utr.lock"}, false},
		{"the password of a key, in other letters", Entry{Kind: Lock, URI: "mongodb://h/?a=b&TLSCertificateKeyFilePassword=x", Name: "utr.lock"}, false},
		{"the same one hidden", Entry{Kind: Lock, URI: "mongodb://h/?tlsCertificateKeyFilePassword=%2A%2A%2A", Name: "utr.lock"}, true},
		{"nothing", Entry{}, false},
		{"another kind", Entry{Kind: "moon"}, false},
	} {
		done, err := l.Add(r.entry)
		if (err == nil) != r.ok {
			t.Errorf("%s: %v", r.reason, err)
		}
		if err == nil {
			if err := done(); err != nil {
				t.Error(err)
			}
		}
	}
	if files, _ := os.ReadDir(l.dir); len(files) != 0 {
		t.Errorf("%d files are left of what was refused or done", len(files))
	}
}

// Many add and remove while others read: nobody sees half an entry.
func TestManyAtOnce(t *testing.T) {
	l := open(t)
	l.run.Started = "long ago" // so that all are left over
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				done, err := l.Add(Entry{Kind: Cluster, URL: "http://h/v1", Resource: "servers", ID: strings.Repeat("x", 4000)})
				if err != nil {
					t.Error(err)
					return
				}
				if err := done(); err != nil {
					t.Error(err)
				}
			}
		})
		all.Go(func() {
			for range 50 {
				if _, _, err := l.Leftovers(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestUnreadableEntries(t *testing.T) {
	l := open(t)
	l.run.Started = "long ago"
	if _, err := l.Add(Entry{Kind: Folder, Path: filepath.Join(os.TempDir(), "utr-good")}); err != nil {
		t.Fatal(err)
	}
	good := `{"run":{"machine":"m","pid":9,"started":"s"},"entry":`
	for name, text := range map[string]string{
		"empty.json": "", "half.json": good, "list.json": "[]",
		"root.json":   good + `{"kind":"folder","path":"/"}}`,
		"norun.json":  `{"entry":{"kind":"folder","path":"/tmp/utr-1"}}`,
		"writing.new": "{",
	} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dead, elsewhere, err := l.Leftovers()
	if len(dead) != 1 || len(elsewhere) != 0 || dead[0].Entry.Path != filepath.Join(os.TempDir(), "utr-good") {
		t.Errorf("%v and %v are left", dead, elsewhere)
	}
	for _, name := range []string{"empty", "half", "list", "root", "norun"} {
		if err == nil || !strings.Contains(err.Error(), name+".json") {
			t.Errorf("nothing is said of %s: %v", name, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "writing") {
		t.Errorf("a file that is being written is no entry: %v", err)
	}
}

// The runs of another machine cannot be judged from here.
func TestElsewhere(t *testing.T) {
	l := open(t)
	l.run.Machine, l.run.Started = "elsewhere", "long ago"
	if _, err := l.Add(Entry{Kind: Folder, Path: filepath.Join(os.TempDir(), "utr-1")}); err != nil {
		t.Fatal(err)
	}
	l.run.Machine = "here"
	dead, elsewhere, err := l.Leftovers()
	if err != nil || len(dead) != 0 || len(elsewhere) != 1 {
		t.Errorf("%v, %v, %v", dead, elsewhere, err)
	}
}

func TestNilRemembersNothing(t *testing.T) {
	var l *Ledger
	done, err := l.Add(Entry{})
	if err != nil || done() != nil {
		t.Error(err)
	}
	if dead, elsewhere, err := l.Leftovers(); len(dead)+len(elsewhere) != 0 || err != nil {
		t.Error(err)
	}
}

// A process of the same id that is another one is neither alive nor killed:
// this test would not survive it.
func TestAnotherProcessOfTheSameID(t *testing.T) {
	self, err := ProcessOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if living, err := self.Living(); err != nil || !living {
		t.Fatalf("this process lives: %t, %v", living, err)
	}
	other := Process{PID: self.PID, Started: self.Started + "0"}
	if living, err := other.Living(); err != nil || living {
		t.Errorf("it is taken for another one: %t, %v", living, err)
	}
	if err := other.Kill(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestKill(t *testing.T) {
	pid, wait := run(t, t.TempDir())
	p, err := ProcessOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Nobody has asked for its exit code yet: what is left of it is no process.
	if err := p.Kill(ctx); err != nil {
		t.Error(err)
	}
	if _, err := ProcessOf(pid); !errors.Is(err, ErrNoProcess) {
		t.Errorf("it was killed, and is found: %v", err)
	}
	wait()
}

func TestDir(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip("there is no cache directory:", err)
	}
	for _, r := range []struct {
		reason string
		env    map[string]string
		want   string
	}{
		{"chosen", map[string]string{EnvDir: "/a", "XDG_STATE_HOME": "/b"}, "/a"},
		{"chosen, relative", map[string]string{EnvDir: "a"}, filepath.Join(here, "a")},
		{"the system's place", map[string]string{"XDG_STATE_HOME": "/b"}, filepath.Join("/b", "utr")},
		{"a place that is to be ignored", map[string]string{"XDG_STATE_HOME": "b"}, filepath.Join(cache, "utr")},
		{"nothing said", nil, filepath.Join(cache, "utr")},
	} {
		if got, err := Dir(func(k string) string { return r.env[k] }); err != nil || got != r.want {
			t.Errorf("%s: %s, %v, want %s", r.reason, got, err, r.want)
		}
	}
}

// Whatever stands in a file, reading it ends, and what it gives can be written
// again.
func FuzzRead(f *testing.F) {
	for _, e := range []Entry{
		{Kind: Folder, Path: "/tmp/utr-1"},
		{Kind: Cluster, URL: "http://h/v1", Resource: "servers", ID: "a", Making: true},
		{Kind: FailPoint, URI: "mongodb://ann:pw@h/?a=b", Host: "h", Name: "x"},
	} {
		text, _ := json.Marshal(record{Run: Run{"m", Process{9, "s"}}, Entry: e})
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		name := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		left, err := read(name)
		if err != nil {
			return
		}
		if left.Entry.Kind == Folder && !strings.HasPrefix(filepath.Base(left.Entry.Path), FolderPrefix) {
			t.Errorf("%s would be removed", left.Entry.Path)
		}
		if left.Entry.Kind == ChildProcess && left.Entry.Process.PID <= 1 {
			t.Errorf("process %d would be killed", left.Entry.Process.PID)
		}
	})
}

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// night writes a matrix of a quick cell, one that waits for minutes with a fail
// point set and has settings of its own, and another quick one.
func night(t *testing.T, slow string) (file, results string) {
	t.Helper()
	dir := t.TempDir()
	file, results = filepath.Join(dir, "night.yml"), filepath.Join(dir, "results")
	text := "clusters: [{name: c, embedded: single}]\nsuites:\n- smoke\n- {name: slow, paths: [" + suiteFile(t, armed) + "]" + slow + "}\n- {name: again, paths: [smoke], retry-failed: 1}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file, results
}

// begun waits until the slow cell runs: its report tells of the first test.
func begun(t *testing.T, results string) {
	t.Helper()
	until(t, "the slow cell runs", func() bool {
		text, _ := os.ReadFile(filepath.Join(results, "c_reference_slow.json.partial"))
		return strings.HasSuffix(string(text), "\n")
	})
}

// child gives the process of the cell that runs.
func child(t *testing.T, u *utr) int {
	t.Helper()
	pid := strconv.Itoa(u.Process.Pid)
	var found int
	until(t, "the process of the cell", func() bool {
		stats, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, s := range stats {
			text, _ := os.ReadFile(s)
			if m := regexp.MustCompile(`^(\d+) \(.*\) \S (\d+) `).FindStringSubmatch(string(text)); m != nil && m[2] == pid {
				found, _ = strconv.Atoi(m[1])
				return true
			}
		}
		return false
	})
	return found
}

// over reports whether a process has ended; a zombie has.
func over(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || regexp.MustCompile(`\) Z `).Match(text)
}

// A signal ends the cell that runs, cleanly, and the night; what was finished
// is kept.
func TestNightIsInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			file, results := night(t, "")
			u := start(t, "matrix", file, "--results", results)
			begun(t, results)
			if err := u.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			u.line(t, "the cell", func(s string) bool {
				return strings.HasPrefix(s, "2/3 ✘ c_reference_slow: interrupted, 1 passed in ")
			})
			u.line(t, "last line", func(s string) bool { return strings.HasPrefix(s, "2 passed, 0 failed, ") })
			if code := u.exit(t); code != 3 || !strings.Contains(u.said(), "1 of 3 cells are finished") {
				t.Errorf("exit code %d\n%s", code, u.said())
			}
			log, err := os.ReadFile(filepath.Join(results, "c_reference_slow.log"))
			if err != nil || !strings.Contains(string(log), "interrupted: 1 of 2 tests ran") {
				t.Errorf("the cell did not end by itself: %v\n%s", err, log)
			}
			again := start(t, "matrix", file, "--results", results, "--only", "smoke|again")
			again.line(t, "what is kept", func(s string) bool { return strings.HasPrefix(s, "2 cells, 1 of them finished already") })
			again.line(t, "last line", func(s string) bool { return s == "2 passed, 0 failed, 0 skipped" })
			if code := again.exit(t); code != 0 {
				t.Errorf("exit code %d\n%s", code, again.said())
			}
		})
	}
}

// A cell whose process is killed breaks, and takes no other with it.
func TestCellIsKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes cannot be looked at without /proc")
	}
	file, results := night(t, "")
	u := start(t, "matrix", file, "--results", results)
	begun(t, results)
	if err := syscall.Kill(child(t, u), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.line(t, "the cell", func(s string) bool {
		return strings.HasPrefix(s, "2/3 ✘ c_reference_slow: 1 passed in ") && strings.HasSuffix(s, "(its process died: signal: killed)")
	})
	u.line(t, "the next cell", func(s string) bool { return strings.HasPrefix(s, "3/3 ✔ c_reference_again: 1 passed") })
	u.line(t, "last line", func(s string) bool { return s == "3 passed, 0 failed, 0 skipped" })
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d\n%s", code, u.said())
	}
}

// A cell does not outlive a night that is killed, and gives its folder back.
func TestNightIsKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("processes cannot be looked at without /proc")
	}
	file, results := night(t, "")
	u := start(t, "matrix", file, "--results", results)
	begun(t, results)
	pid := child(t, u)
	if err := u.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "the cell's process ends", func() bool { return over(pid) })
	again := start(t, "matrix", file, "--results", results, "--only", "smoke")
	again.line(t, "what is kept", func(s string) bool { return strings.HasPrefix(s, "1 cell, 1 of them finished already") })
	if code := again.exit(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, again.said())
	}
}

// A cell that takes too long is cut off, cleans up, and the next one runs.
func TestCellIsCutOff(t *testing.T) {
	file, results := night(t, ", cell-timeout: 2s")
	u := start(t, "matrix", file, "--results", results)
	u.line(t, "the cell", func(s string) bool { return strings.HasSuffix(s, "(cut off after 2s)") })
	u.line(t, "the next cell", func(s string) bool { return strings.HasPrefix(s, "3/3 ✔ c_reference_again: 1 passed") })
	u.line(t, "last line", func(s string) bool { return strings.Contains(s, " passed, 0 failed, ") })
	if code := u.exit(t); code != 3 {
		t.Errorf("exit code %d\n%s", code, u.said())
	}
}

package official

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// git runs git in a folder, and returns what it prints.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		testkit.Lacking(t, "git", err)
	}
	command := exec.CommandContext(testkit.Context(t), "git",
		append([]string{"-c", "user.name=n", "-c", "user.email=e", "-C", dir}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit writes a suite into a repository, and returns the commit.
func commit(t *testing.T, dir, text string) string {
	t.Helper()
	file := filepath.Join(dir, source, "crud", "tests", "find.yml")
	testkit.Check(t, os.MkdirAll(filepath.Dir(file), 0o755))
	testkit.Check(t, os.WriteFile(file, []byte(text), 0o600))
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "--message", text)
	return git(t, dir, "rev-parse", "HEAD")
}

// Commits, branches and tags are fetched one after the other. A commit that exists already needs no remote.
func TestFetch(t *testing.T) {
	remote, dir := t.TempDir(), filepath.Join(t.TempDir(), "a", "specifications", source)
	git(t, remote, "init", "--quiet", "--initial-branch", "master")
	first := commit(t, remote, "one")
	git(t, remote, "tag", "v1")
	second := commit(t, remote, "two")
	for _, r := range []struct{ reason, remote, revision, want, text string }{
		{"a commit", remote, first, first, "one"},
		{"a branch", remote, "master", second, "two"},
		{"a tag", remote, "v1", first, "one"},
		{"the commit that is there", "nowhere", first, first, "one"},
	} {
		at, err := Fetch(t.Context(), dir, r.remote, r.revision)
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, at, r.want)
		testkit.Equal(t, r.reason, testkit.Read(t, filepath.Join(dir, "crud", "tests", "find.yml")), r.text)
	}
}

// A failed fetch leaves the suites unchanged and reports why.
func TestFetchFails(t *testing.T) {
	remote, theirs := t.TempDir(), t.TempDir()
	git(t, remote, "init", "--quiet", "--initial-branch", "master")
	first := commit(t, remote, "one")
	git(t, theirs, "init", "--quiet")
	before := commit(t, theirs, "theirs")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, r := range []struct {
		reason                      string
		ctx                         context.Context
		dir, remote, revision, says string
	}{
		{"no such remote", t.Context(), filepath.Join(t.TempDir(), source), filepath.Join(remote, "nowhere"), first,
			"git fetch"},
		{"no such revision", t.Context(), filepath.Join(t.TempDir(), source), remote, "nothing",
			"couldn't find remote ref nothing"},
		{"a checkout of the user", t.Context(), filepath.Join(theirs, source), remote, first,
			"utr specs fetch did not create it"},
		{"a folder that is not source", t.Context(), filepath.Join(t.TempDir(), "suites"), remote, first,
			"$UTR_SPECIFICATIONS must end in source"},
		{"an interruption", canceled, filepath.Join(t.TempDir(), source), remote, first, "context canceled"},
	} {
		t.Run(r.reason, func(t *testing.T) {
			_, err := Fetch(r.ctx, r.dir, r.remote, r.revision)
			testkit.ErrorContains(t, err, r.says)
		})
	}
	testkit.Equal(t, "the user's checkout", git(t, theirs, "rev-parse", "HEAD"), before)
	at, err := Fetch(t.Context(), filepath.Join(theirs, source), remote, before)
	testkit.Equal(t, "a checkout of the user that is at the commit already", at, before)
	testkit.Check(t, err)
	t.Setenv("PATH", "")
	_, err = Fetch(t.Context(), filepath.Join(t.TempDir(), source), remote, first)
	testkit.ErrorContains(t, err, "requires git")
}

// After a failure, for example an interruption, the same command fetches the suites.
func TestFetchAgain(t *testing.T) {
	remote, dir := t.TempDir(), filepath.Join(t.TempDir(), source)
	git(t, remote, "init", "--quiet", "--initial-branch", "master")
	first := commit(t, remote, "one")
	_, err := Fetch(t.Context(), dir, remote, "nothing")
	testkit.ErrorContains(t, err, "nothing")
	at, err := Fetch(t.Context(), dir, remote, first)
	testkit.Check(t, err)
	testkit.Equal(t, "the commit", at, first)
}

// CI runs the official suites of the same commit.
func TestRevision(t *testing.T) {
	testkit.Contains(t, testkit.Read(t, filepath.Join(testkit.Root(t), ".github", "workflows", "ci.yml")),
		"SPECIFICATIONS: "+Revision+"\n")
}

func TestDir(t *testing.T) {
	for _, r := range []struct {
		reason string
		env    map[string]string
		want   string
	}{
		{"as the variable says", map[string]string{EnvDir: "/s/source", "UTR_CACHE_DIR": "/c"}, "/s/source"},
		{"in the cache folder", map[string]string{"UTR_CACHE_DIR": "/c"}, "/c/specifications/source"},
	} {
		dir, err := Dir(func(name string) string { return r.env[name] })
		testkit.Check(t, err)
		testkit.Equal(t, r.reason, filepath.ToSlash(dir), r.want)
	}
}

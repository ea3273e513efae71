package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/processgroup"
)

// Version is major, minor and patch of a server.
type Version [3]int

// String is the usual spelling.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// atLeast reports whether v is another version or a later one.
func (v Version) atLeast(other Version) bool { return slices.Compare(v[:], other[:]) >= 0 }

// oldest is the oldest version that can be used.
var oldest = Version{4, 2, 0}

// Release is a pair of programs.
type Release struct {
	Mongod  string // path
	Mongos  string // path; "" if there is none beside it
	Version Version
}

// Find finds a release and asks it for its version. Where is a folder with
// bin/mongod or mongod, a mongod itself, or a name that is looked up in $PATH,
// such as "mongod". The error says where was looked.
func Find(ctx context.Context, where string) (Release, error) {
	mongod, err := findMongod(where)
	if err != nil {
		return Release{}, err
	}
	if mongod, err = filepath.Abs(mongod); err != nil {
		return Release{}, err
	}
	r := Release{Mongod: mongod}
	if r.Version, err = askVersion(ctx, mongod); err != nil {
		return Release{}, err
	}
	if !r.Version.atLeast(oldest) {
		return Release{}, fmt.Errorf("%s is of version %s: %d.%d is the oldest that can be used", mongod, r.Version, oldest[0], oldest[1])
	}
	mongos, err := exec.LookPath(beside(mongod))
	if err != nil {
		return r, nil // sharded clusters cannot be had
	}
	router, err := askVersion(ctx, mongos)
	if err != nil {
		return Release{}, err
	}
	if router[0] != r.Version[0] || router[1] != r.Version[1] {
		return Release{}, fmt.Errorf("%s is of version %s, and %s of version %s: a cluster cannot be made of both", mongod, r.Version, mongos, router)
	}
	r.Mongos = mongos
	return r, nil
}

// beside gives the mongos that belongs to a mongod: mongod-8.0 has mongos-8.0.
func beside(mongod string) string {
	folder, name := filepath.Split(mongod)
	if strings.Contains(name, "mongod") {
		return filepath.Join(folder, strings.Replace(name, "mongod", "mongos", 1))
	}
	return filepath.Join(folder, "mongos")
}

func findMongod(where string) (string, error) {
	if about, err := os.Stat(where); err != nil || !about.IsDir() {
		found, err := exec.LookPath(where)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return "", fmt.Errorf("%q is neither a folder nor a program: %w", where, err)
		}
		return found, nil
	}
	folder, err := filepath.Abs(where)
	if err != nil {
		return "", err
	}
	var looked []error
	for _, at := range []string{filepath.Join(folder, "bin", "mongod"), filepath.Join(folder, "mongod")} {
		found, err := exec.LookPath(at)
		if err == nil {
			return found, nil
		}
		looked = append(looked, err)
	}
	return "", fmt.Errorf("there is no mongod in the folder %s: %w", where, errors.Join(looked...))
}

// versionLimit bounds the question for a version. The first start of a big
// program can be slow.
const versionLimit = 30 * time.Second

// askVersion runs a program with --version.
func askVersion(ctx context.Context, path string) (v Version, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionLimit, fmt.Errorf("no answer within %s", versionLimit))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = environment()
	cmd.WaitDelay = time.Second // what it left behind may hold the pipe
	processgroup.Isolate(cmd)
	cmd.Cancel = func() error { return processgroup.Kill(cmd.Process) }
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		v, err = parseVersion(string(out))
	}
	if err != nil {
		return v, fmt.Errorf("%s --version: %w%s", path, err, quoted(string(out)))
	}
	return v, nil
}

// versionPattern finds the version in "db version v4.2.24" and "mongos version
// v8.0.4-rc0".
var versionPattern = regexp.MustCompile(`(?m)\bversion v(\d+)\.(\d+)\.(\d+)`)

func parseVersion(out string) (v Version, err error) {
	found := versionPattern.FindStringSubmatch(out)
	if found == nil {
		return v, errors.New("it does not tell a version")
	}
	for i := range v {
		if v[i], err = strconv.Atoi(found[i+1]); err != nil {
			return v, err
		}
	}
	return v, nil
}

// environment is what children get: ours without what may hold secrets.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{"UTR_URI", "UTR_SINGLE_URI", "UTR_PASSWORD"}, name)
	})
}

// Plan plans a cluster; the error says why it cannot be made of the release.
func (r Release) Plan(s Shape) (Plan, error) {
	p, err := NewPlan(s, r.Version)
	if err == nil && r.Mongos == "" && (s.Topology == Sharded || s.Topology == LoadBalanced) {
		err = fmt.Errorf("a %s cannot be had: there is no %s", s.Topology, beside(r.Mongod))
	}
	return p, err
}

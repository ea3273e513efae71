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
	"strings"
	"time"

	"github.com/unified-test-runner/utr/internal/process/processgroup"
)

// Version is the major, minor and patch version of a server.
type Version [3]int

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v Version) atLeast(other Version) bool { return slices.Compare(v[:], other[:]) >= 0 }

// oldest is the oldest supported version.
var oldest = Version{4, 2, 0}

// Release is a mongod and the mongos of the same version.
type Release struct {
	Mongod  string // path
	Mongos  string // path, or ""
	Version Version
}

// Find finds a release and runs its programs with --version. where is a folder with bin/mongod or mongod, the path of a
// mongod, or a name in $PATH. The error lists where it looked.
func Find(ctx context.Context, where string) (r Release, err error) {
	if r.Mongod, err = findMongod(where); err != nil {
		return r, err
	}
	if r.Version, err = readVersion(ctx, r.Mongod); err != nil {
		return r, err
	}
	if !r.Version.atLeast(oldest) {
		return r, fmt.Errorf("%s is of version %s: %d.%d is the oldest supported version", r.Mongod, r.Version,
			oldest[0], oldest[1])
	}
	mongos, err := exec.LookPath(mongosFor(r.Mongod))
	if err != nil {
		return r, nil // no sharded clusters
	}
	router, err := readVersion(ctx, mongos)
	if err != nil {
		return r, err
	}
	if router[0] != r.Version[0] || router[1] != r.Version[1] {
		return r, fmt.Errorf("%s is of version %s, and %s of version %s: they must be of the same release", r.Mongod,
			r.Version, mongos, router)
	}
	r.Mongos = mongos
	return r, nil
}

// mongosFor returns the path of the mongos for a mongod: mongos-8.0 for mongod-8.0.
func mongosFor(mongod string) string {
	folder, name := filepath.Split(mongod)
	if strings.Contains(name, "mongod") {
		return filepath.Join(folder, strings.Replace(name, "mongod", "mongos", 1))
	}
	return filepath.Join(folder, "mongos")
}

// findMongod returns the absolute path of a mongod.
func findMongod(where string) (string, error) {
	if about, err := os.Stat(where); err != nil || !about.IsDir() {
		found, err := exec.LookPath(where)
		if err != nil && !errors.Is(err, exec.ErrDot) {
			return "", fmt.Errorf("%q is neither a folder nor a program", where)
		}
		return filepath.Abs(found)
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
	return "", fmt.Errorf("no mongod in the folder %s: %w", where, errors.Join(looked...))
}

// versionLimit bounds --version. The first start of a large program can be slow.
const versionLimit = 30 * time.Second

func readVersion(ctx context.Context, path string) (v Version, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, versionLimit, fmt.Errorf("no answer within %s", versionLimit))
	defer cancel()
	cmd := exec.Command(path, "--version")
	var out strings.Builder
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(), &out, &out
	cmd.WaitDelay = time.Second // its children may hold the pipe
	if err = processgroup.Run(ctx, cmd); err == nil {
		v, err = parseVersion(out.String())
	}
	if err != nil {
		return v, fmt.Errorf("%s --version: %w%s", path, err, quoted(out.String()))
	}
	return v, nil
}

// versionPattern matches "db version v4.2.24" and "mongos version v8.0.4-rc0".
var versionPattern = regexp.MustCompile(`\bversion v\d+\.\d+\.\d+`)

func parseVersion(out string) (v Version, err error) {
	if _, err := fmt.Sscanf(versionPattern.FindString(out), "version v%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return v, errors.New("no version in the output")
	}
	return v, nil
}

// environment returns our environment without variables that may contain secrets.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains([]string{"UTR_URI", "UTR_SINGLE_URI", "UTR_PASSWORD"}, name)
	})
}

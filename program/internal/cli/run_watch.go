package cli

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/specs"
)

const watchInterval = 200 * time.Millisecond

// stamps returns the modification time and size of every readable suite at or below the paths.
func stamps(paths []string) map[string]string {
	found := map[string]string{}
	for _, p := range paths {
		_ = filepath.WalkDir(p, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			about, err := e.Info()
			if err == nil && about.Mode().IsRegular() && specs.IsSuiteName(name) {
				found[name] = fmt.Sprint(about.ModTime(), about.Size())
			}
			return nil
		})
	}
	maps.DeleteFunc(found, func(name, _ string) bool { // the JSON form of a YAML suite
		stem, isJSON := strings.CutSuffix(name, ".json")
		return isJSON && found[stem+".yml"]+found[stem+".yaml"] != ""
	})
	return found
}

// watch runs the suites, and those that change again, until it is interrupted.
func (r *runFlags) watch(ctx context.Context, c *invocation) error {
	paths := c.paths
	seen := stamps(paths)
	if len(seen) == 0 {
		return usage("--watch requires suites in files")
	}
	for {
		err := r.act(ctx, c)
		switch e := exitOf(err); {
		case ctx.Err() != nil, e != nil && e.hint: // a changed suite cannot fix a usage error
			return err
		case err != nil && (e == nil || e.err != nil):
			c.note(err.Error())
		}
		c.note("waiting for a suite to change; interrupt to stop")
		var now map[string]string
		for c.paths = nil; len(c.paths) == 0; seen = now {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(watchInterval):
			}
			now = stamps(paths)
			for name, s := range now {
				if s != seen[name] {
					c.paths = append(c.paths, name)
				}
			}
		}
		slices.Sort(c.paths)
		c.note(fmt.Sprintf("changed: %s", strings.Join(c.paths, ", ")))
	}
}

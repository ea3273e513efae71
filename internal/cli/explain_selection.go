package cli

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
)

type selectionFlags struct {
	file          string
	preference    *selection.Preference
	deprioritized []string
}

func (s *selectionFlags) declare(f *flags) {
	f.file(&s.file, "select", "explain server selection in the topology that this file describes")
	set(f, &s.preference, "read-preference", "PREFERENCE", "read preference of the selection: a mode, or a document with mode, tag_sets, maxStalenessSeconds",
		func(text string) (*selection.Preference, error) {
			p, err := selection.ParsePreference(text)
			return &p, err
		})
	f.texts(&s.deprioritized, "deprioritized", "ADDRESS", "deprioritized server")
}

// explain prints the servers left after each step. Without an operation, the file decides between read and write.
func (s *selectionFlags) explain(c *call, out *explanation, operation string) error {
	if len(c.paths) > 0 {
		return usage("--select cannot be used with rules")
	}
	var simulated retry.Operation
	var err error
	if operation != "" {
		if simulated, err = operationNamed(operation); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return invalid(err)
	}
	one, err := selection.ParseCase(text)
	if err != nil {
		return invalid(fmt.Errorf("%s: %w", s.file, err))
	}
	if s.preference != nil {
		one.Preference = *s.preference
	}
	if len(s.deprioritized) > 0 {
		one.Deprioritized = s.deprioritized
	}
	for _, address := range one.Deprioritized {
		if !slices.ContainsFunc(one.Topology.Servers, func(v selection.Server) bool { return v.Address == address }) {
			return usage("%s has no server %q", s.file, address)
		}
	}
	if operation != "" {
		one.Options.Write = simulated.Class == retry.Write
	}
	steps, err := selection.Explain(one.Topology, one.Preference, one.Deprioritized, one.Options)
	if err != nil {
		return invalid(err)
	}
	out.add(nil, "%s\n", one.Topology.Type)
	for _, v := range one.Topology.Servers {
		out.add(nil, "    %s %s, %s%s\n", v.Address, v.Type, v.RTT.Round(time.Millisecond/10), tagsOf(v.Tags))
	}
	for _, step := range steps {
		left := mapSlice(step.Servers, func(v selection.Server) string { return v.Address })
		out.add(map[string]any{"rule": step.Rule, "servers": left}, "%s: %s\n", step.Rule, cmp.Or(strings.Join(left, " "), "none"))
	}
	switch left := steps[len(steps)-1].Servers; len(left) {
	case 0:
		out.add(nil, "no server is suitable: the operation waits until the topology changes, or serverSelectionTimeoutMS has passed\n")
	case 1:
		out.add(nil, "selected: %s\n", left[0].Address)
	default:
		out.add(nil, "selected: of two of these at random, the one with fewer operations under way\n")
	}
	return c.print(out.String())
}

func tagsOf(tags map[string]string) (text string) {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		text += ", " + name + ": " + tags[name]
	}
	return text
}

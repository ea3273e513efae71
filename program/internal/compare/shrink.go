package compare

import (
	"maps"
	"slices"
)

// plainest is the preferred topology of small schedules.
const plainest = "replicaset"

// smaller returns the schedules that are one step simpler, the simplest first: with
// fewer faults, the plainest topology, fewer options, or simpler faults.
func smaller(s Schedule) []Schedule {
	var out []Schedule
	add := func(change func(*Schedule)) {
		c := s
		c.Faults = slices.Clone(s.Faults)
		change(&c)
		if c.String() != s.String() {
			out = append(out, c)
		}
	}
	if len(s.Faults) > 1 {
		add(func(c *Schedule) { c.Faults = c.Faults[1:] })
		add(func(c *Schedule) { c.Faults = c.Faults[:len(c.Faults)-1] })
	}
	if s.Topology != "" && s.Topology != plainest {
		add(func(c *Schedule) { c.Topology = plainest })
	}
	for _, name := range slices.Sorted(maps.Keys(s.Options)) {
		add(func(c *Schedule) {
			c.Options = maps.Clone(c.Options)
			delete(c.Options, name)
		})
	}
	for i := range s.Faults {
		add(func(c *Schedule) { c.Faults[i] = Fault{} })
	}
	for i := range s.Faults {
		for _, plainer := range []func(*Fault){
			func(f *Fault) { f.BlockMS = 0 },
			func(f *Fault) { f.Labels = nil },
			func(f *Fault) { f.Backoff = 0 },
		} {
			add(func(c *Schedule) { plainer(&c.Faults[i]) })
		}
	}
	return out
}
